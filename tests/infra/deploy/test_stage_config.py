"""The Chalice config of one stage, as Chalice reads it."""

from pathlib import Path
from typing import Any

import click
import pytest
from chalice.config import Config

from chalicelib.domains.chat.flows import model_calls
from chalicelib.domains.webhooks.flows import due_deliveries
from chalicelib.engine import jobs
from chalicelib.gateways import post
from chalicelib.transports import scheduled_functions
from infra.deploy import policies, stage_config
from infra.deploy.stage_config import StageFacts

CHECKOUT = stage_config.load()
DEPLOYED = StageFacts(
    bucket="workspace-dev-1-eu-central-1",
    public_url="https://d1.cloudfront.example",
    edge_secret="known to the edge",
    table_prefix="bakery",
    edge_secret_previous="the former one",
    variables={"LLM_PROVIDER": "openai", "LLM_API_KEY_SECRET": "arn:of:the:key"},
)
FUNCTIONS = list(policies.FUNCTIONS)
EVERYWHERE = {"LLM_PROVIDER", "LLM_MODEL", "PYDANTIC_DISABLE_PLUGINS"}
"""The variables that every stage has."""


@pytest.fixture(params=CHECKOUT["stages"])
def stage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def chalice_config(stage: str, function: str, facts: StageFacts = DEPLOYED) -> Config:
    config = stage_config.generate(CHECKOUT, stage, facts)
    return Config(chalice_stage=stage, function_name=function, config_from_disk=config)


@pytest.mark.parametrize("function", FUNCTIONS)
class TestEveryFunction:
    def test_every_function_has_its_own_policy_and_tracing(self, stage: str, function: str) -> None:
        config = chalice_config(stage, function)
        assert config.iam_policy_file == policies.file_name(function)
        assert config.autogen_policy is False
        assert config.xray_enabled is True


def test_each_function_has_a_suitable_timeout(stage: str) -> None:
    limits = {name: chalice_config(stage, name).lambda_timeout for name in FUNCTIONS}
    assert limits["api_handler"] == 29, "as long as API Gateway waits"
    # Work that begins just in time ends, and before another runner may take it (ADR 13).
    assert scheduled_functions.TIME_LIMIT_SECONDS < limits["run-jobs"] < jobs.LEASE.total_seconds()
    # A turn that begins just in time ends, too, with its last requests.
    last = scheduled_functions.TIME_LIMIT_SECONDS + due_deliveries.TURN_SECONDS + post.TOTAL_SECONDS
    assert last < limits["run-events"] < jobs.LEASE.total_seconds()
    # What was said is settled and the chat ends, however long the model takes.
    assert limits["chat-stream"] >= model_calls.MODEL_SECONDS + 60


def test_checked_in_config_has_no_values_of_an_account_or_a_shell(
    stage: str,
) -> None:
    """``chalice local`` would replace a developer's own values by values of the file."""
    assert CHECKOUT["stages"][stage] == {}
    assert "environment_variables" not in CHECKOUT
    assert set(stage_config.DEPLOYED) == EVERYWHERE


def test_stage_that_sends_by_ses_has_a_configuration_set(
    stage: str,
) -> None:
    mail = {"MAIL": "ses", "MAIL_FROM": "mail@notify.example.com"}
    variables = stage_config.environment(
        {**CHECKOUT, "environment_variables": mail}, stage, StageFacts()
    )
    assert variables["MAIL_SES_CONFIGURATION_SET"] == f"workspace-api-{stage}"
    mail["MAIL_SES_CONFIGURATION_SET"] = "own"
    variables = stage_config.environment(
        {**CHECKOUT, "environment_variables": mail}, stage, StageFacts()
    )
    assert variables["MAIL_SES_CONFIGURATION_SET"] == "own"
    assert "MAIL_SES_CONFIGURATION_SET" not in stage_config.environment(
        CHECKOUT, stage, StageFacts()
    )


def test_variables_in_the_config_override_defaults(stage: str) -> None:
    config = {**CHECKOUT, "environment_variables": {"LLM_MODEL": "claude-sonnet-4.5"}}
    variables = stage_config.environment(config, stage, StageFacts())
    assert variables["LLM_MODEL"] == "claude-sonnet-4.5"
    assert variables["LLM_PROVIDER"] == "bedrock"


def test_a_generated_config_has_one_stage_with_its_own_gateway_stage(stage: str) -> None:
    config = stage_config.generate(CHECKOUT, stage, DEPLOYED)
    assert list(config["stages"]) == [stage]
    read = chalice_config(stage, "api_handler")
    assert (read.api_gateway_stage, read.api_gateway_endpoint_type) == (stage, "REGIONAL")


@pytest.mark.parametrize(
    "reserved", [{}, {"run-jobs": 4}, {"run-jobs": 4, "run-events": 8, "chat-stream": 445}]
)
def test_functions_reserve_what_the_facts_of_the_stage_allow(reserved: dict[str, int]) -> None:
    facts = StageFacts(reserved=reserved)
    reservations = {f: chalice_config("dev", f, facts).reserved_concurrency for f in FUNCTIONS}
    assert reservations == dict.fromkeys(FUNCTIONS) | reserved


def test_release_without_one_of_the_functions_is_configured_without_it() -> None:
    functions = {name: {} for name in FUNCTIONS if name != "run-events"}
    facts = StageFacts(reserved={"run-jobs": 4, "run-events": 8})
    config = stage_config.generate({**CHECKOUT, "lambda_functions": functions}, "dev", facts)
    stage_functions = config["stages"]["dev"]["lambda_functions"]
    assert stage_functions.keys() == functions.keys()
    assert stage_functions["run-jobs"]["reserved_concurrency"] == 4


def test_given_variables_cannot_replace_the_stages_own() -> None:
    facts = StageFacts(bucket="ours", variables={"STAGE": "prod", "OBJECT_STORE": "s3://theirs"})
    variables = chalice_config("dev", "api_handler", facts).environment_variables
    assert (variables["STAGE"], variables["OBJECT_STORE"]) == ("dev", "s3://ours")


@pytest.mark.parametrize("architecture", stage_config.ARCHITECTURES)
def test_either_architecture_may_be_chosen(architecture: str) -> None:
    facts = StageFacts(architecture=architecture)
    assert stage_config.architecture(CHECKOUT, "dev", facts) == architecture
    assert chalice_config("dev", "run-jobs", facts).lambda_architecture == architecture


@pytest.mark.parametrize(
    ("stage", "facts", "message"),
    [
        ("prd", StageFacts(), 'No stage "prd" .* dev, prod'),
        ("dev", StageFacts(architecture="sparc"), 'x86_64 and arm64, not "sparc"'),
        (
            "dev",
            StageFacts(variables={"LLM_PROVIDER": "oracle"}),
            "LLM_PROVIDER: expected .* 'oracle'",
        ),
    ],
    ids=["stage", "architecture", "setting"],
)
def test_invalid_settings_are_named(stage: str, facts: StageFacts, message: str) -> None:
    with pytest.raises(click.ClickException, match=message):
        stage_config.generate(CHECKOUT, stage, facts)


def test_secrets_are_not_shown() -> None:
    assert "known to the edge" not in repr(DEPLOYED)
    assert "the former one" not in repr(DEPLOYED)


def test_writing_again_replaces_the_former_config(tmp_path: Path) -> None:
    (tmp_path / ".chalice").mkdir()

    def write(facts: StageFacts) -> dict[str, Any]:
        stage_config.write(tmp_path / ".chalice", "dev", facts, policies.Target())
        return stage_config.load(tmp_path)

    write(StageFacts(edge_secret="old", reserved={"run-jobs": 1}))
    assert write(DEPLOYED) == stage_config.generate(CHECKOUT, "dev", DEPLOYED)
    policy = (tmp_path / ".chalice" / policies.file_name("api_handler")).read_text()
    assert "arn:aws:s3:::workspace-dev-1-eu-central-1/*" in policy
