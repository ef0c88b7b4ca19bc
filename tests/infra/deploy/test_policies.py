"""The functions' IAM policies allow what is needed, and nothing in other stages."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import app as application
from chalicelib.engine import tables
from infra.deploy import lock, policies, releases, stage_config

CONFIG = stage_config.load()
PLACE = policies.Target("eu-central-1", "123456789012")
FUNCTIONS = list(policies.FUNCTIONS)

MODELS = {
    "arn:aws:bedrock:*::foundation-model/*",
    "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/*",
}
"""AWS's models, and the inference profiles of the account for these models."""

HOSTS = {"NewHosts", "HostTags", "Hosts", "Certificates"}
"""Statements on CloudFront and its certificates, which are in no region."""

KEYS = {"files/*", "*/sites/*", "*/uploads/*", "*/answers/*", "*/knowledge/*", "*/exports/*"}
KEYS |= {"*/imports/*"}
"""Kinds of objects, by the beginning of their keys after the workspace's id."""

Allowed = set[tuple[str, str]]
"""Actions, each with a resource."""


@pytest.fixture(params=CONFIG["stages"])
def stage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def policy(stage: str, function: str) -> dict[str, Any]:
    facts = stage_config.StageFacts(bucket=f"workspace-{stage}-objects")
    return policies.policy(
        stage_config.generate(CONFIG, stage, facts), stage, function=function, target=PLACE
    )


def statements(stage: str, function: str) -> list[dict[str, Any]]:
    return policy(stage, function)["Statement"]


def allowed(stage: str, function: str) -> Allowed:
    return {
        (action, resource)
        for statement in statements(stage, function)
        for action in statement["Action"]
        for resource in statement["Resource"]
    }


def arn(stage: str, table: str) -> str:
    return f"arn:aws:dynamodb:eu-central-1:123456789012:table/workspace-{stage}-{table}"


def actions_on(stage: str, function: str, table: str) -> set[str]:
    return {a for a, resource in allowed(stage, function) if resource == arn(stage, table)}


def test_every_function_of_the_app_has_a_policy_that_chalice_finds() -> None:
    functions = {
        policies.API,
        *(function.name for function in application.app.pure_lambda_functions),
    }
    functions |= {source.name for source in application.app.event_sources}
    assert functions == set(FUNCTIONS)
    assert functions == set(CONFIG["lambda_functions"])
    assert CONFIG["autogen_policy"] is False


def test_every_table_is_used_by_some_function(stage: str) -> None:
    for table in tables.TABLES:
        assert any(actions_on(stage, function, table) for function in FUNCTIONS), table


@pytest.mark.parametrize("function", FUNCTIONS)
class TestPolicy:
    def test_policy_names_no_resource_of_another_stage(self, stage: str, function: str) -> None:
        names = {r.rpartition(":")[2].partition("/")[2] for _, r in allowed(stage, function)}
        others = set(CONFIG["stages"]) - {stage}
        assert not [name for name in names if any(f"-{other}" in name for other in others)]

    def test_policy_allows_no_change_of_audit_records(self, stage: str, function: str) -> None:
        audit = actions_on(stage, function, "audit")
        assert "dynamodb:PutItem" in audit
        assert audit <= {"dynamodb:PutItem", "dynamodb:Query"}

    def test_policy_allows_no_deletion_from_the_ledger(self, stage: str, function: str) -> None:
        assert "dynamodb:PutItem" in actions_on(stage, "chat-stream", "ledger")
        assert "dynamodb:DeleteItem" not in actions_on(stage, function, "ledger")

    def test_policy_names_actions_and_resources_without_wildcards(
        self, stage: str, function: str
    ) -> None:
        objects, logs = f"arn:aws:s3:::workspace-{stage}-objects/", ":log-group:/aws/lambda/"
        for action, resource in allowed(stage, function):
            assert "*" not in action
            if resource.startswith(objects):
                assert resource.removeprefix(objects) in KEYS
            elif action.split(":")[0] in {"cloudfront", "acm"}:
                assert function == "run-jobs"
            elif "*" in resource and resource not in MODELS:
                ours = logs in resource and resource.count("*") == 1 and resource.endswith(":*")
                assert ours or action.startswith("xray:")

    def test_policy_allows_no_access_to_objects_of_deployments(
        self, stage: str, function: str
    ) -> None:
        private_keys = (releases.KEY, lock.KEY)
        for _, resource in allowed(stage, function):
            for key in private_keys:
                place = f"arn:aws:s3:::workspace-{stage}-objects/{key}"
                assert not fnmatchcase(place, resource) or resource == "*"

    def test_policy_names_region_and_account(self, stage: str, function: str) -> None:
        for statement in statements(stage, function):
            if "s3" in statement["Action"][0]:
                condition = {"StringEquals": {"aws:ResourceAccount": "123456789012"}}
                assert statement["Condition"] == condition
            elif statement["Sid"] in {"Models", "Profiles"}:
                assert set(statement["Resource"]) <= MODELS
            elif statement["Sid"] not in {"Traces", *HOSTS}:
                assert all(":eu-central-1:123456789012:" in r for r in statement["Resource"])

    def test_policy_allows_only_the_functions_own_log(self, stage: str, function: str) -> None:
        name = f"workspace-api-{stage}" + ("" if function == policies.API else f"-{function}")
        groups = {r.split(":")[6] for a, r in allowed(stage, function) if a.startswith("logs:")}
        assert groups == {f"/aws/lambda/{name}"}

    def test_policy_fits_the_size_limit_of_a_role(self, stage: str, function: str) -> None:
        """10,240 characters for all inline policies of a role (IAM quotas)."""
        assert len(json.dumps(policy(stage, function))) < 10_240


def test_no_function_may_create_log_groups(stage: str) -> None:
    """The data stack creates log groups with a retention. Lambda would create them without one."""
    assert not [
        f for f in FUNCTIONS if ("logs:CreateLogGroup") in {a for a, _ in allowed(stage, f)}
    ]


def test_scheduled_jobs_may_write_only_knowledge_exports_and_what_imports_need(
    stage: str,
) -> None:
    def keys(action: str) -> set[str]:
        resources = (r for a, r in allowed(stage, "run-jobs") if a == f"s3:{action}")
        return {resource.partition("-objects/")[2] for resource in resources}

    # An import stores its rows and the images of its products.
    written = {policies.KNOWLEDGE, policies.EXPORTS, policies.IMPORTS, policies.FILES}
    assert keys("PutObject") == written
    assert keys("GetObject") == {*written, policies.HTML}


def test_only_functions_that_call_models_may_call_bedrock(stage: str) -> None:
    asking = {f for f in FUNCTIONS if any(a.startswith("bedrock:") for a, _ in allowed(stage, f))}
    assert asking == {policies.API, "chat-stream"}


def test_functions_may_wake_the_runner_of_events_for_which_lambda_polls(stage: str) -> None:
    queue = f"arn:aws:sqs:eu-central-1:123456789012:workspace-api-{stage}-events"
    reports = f"arn:aws:sqs:eu-central-1:123456789012:workspace-api-{stage}-mail-feedback"
    polls = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
    for function in FUNCTIONS:
        queue_rights = {right for right in allowed(stage, function) if right[0].startswith("sqs:")}
        read = {(action, arn) for action in polls for arn in (queue, reports)}
        is_runner = function == "run-events"
        assert queue_rights == {("sqs:SendMessage", queue)} | (read if is_runner else set())


def test_only_the_runner_of_events_may_send_e_mails(stage: str) -> None:
    variables = {"MAIL": "ses", "MAIL_FROM": "mail@notify.example.com"}
    facts = stage_config.StageFacts(bucket="objects", variables=variables)
    config = stage_config.generate(CONFIG, stage, facts)
    for function in FUNCTIONS:
        statements = policies.policy(config, stage, function=function, target=PLACE)["Statement"]
        mails = [
            statement["Resource"]
            for statement in statements
            if statement["Action"] == ["ses:SendEmail"]
        ]
        here = "arn:aws:ses:eu-central-1:123456789012"
        expected = [
            f"{here}:identity/notify.example.com",
            f"{here}:configuration-set/workspace-api-{stage}",
        ]
        assert mails == ([expected] if function == "run-events" else [])
    assert "ses:SendEmail" not in {a for f in FUNCTIONS for a, _ in allowed(stage, f)}


def test_chat_function_only_reads_objects_of_what_bots_know(stage: str) -> None:
    rights = {(a, r) for a, r in allowed(stage, "chat-stream") if a.startswith("s3:")}
    assert {action for action, _ in rights} == {"s3:GetObject", "s3:ListBucket"}
    assert all(r.endswith(policies.KNOWLEDGE) for a, r in rights if a == "s3:GetObject")


class TestWrite:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / ".chalice").mkdir()
        stage_config.write(
            tmp_path / ".chalice", "prod", stage_config.StageFacts(), policies.Target()
        )
        return tmp_path

    def test_unknown_target_leaves_placeholders(self, project: Path) -> None:
        for function in FUNCTIONS:
            text = (project / ".chalice" / policies.file_name(function)).read_text()
            assert "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/workspace-prod-" in text
            assert json.loads(text)["Version"] == "2012-10-17"

    def test_known_target_sets_region_and_account(self, project: Path) -> None:
        for file in policies.write(project / ".chalice", "prod", PLACE):
            text = file.read_text()
            assert "arn:aws:dynamodb:eu-central-1:123456789012:table/" in text
            assert "${AWS::" not in text


class TestHosts:
    """Rights to serve customers' domains, which one function has."""

    def test_rights_to_tenants_cover_the_same_stage_only(self, stage: str) -> None:
        by_sid = {statement["Sid"]: statement for statement in statements(stage, "run-jobs")}
        tag = "workspace-api-stage"
        for sid in ("NewHosts", "HostTags"):
            assert by_sid[sid]["Condition"] == {"StringEquals": {f"aws:RequestTag/{tag}": stage}}
        assert by_sid["Hosts"]["Condition"] == {"StringEquals": {f"aws:ResourceTag/{tag}": stage}}
        tenants = "arn:aws:cloudfront::123456789012:distribution-tenant/*"
        assert by_sid["Hosts"]["Resource"] == [tenants]

    def test_jobs_may_write_only_claims_on_domains(self, stage: str) -> None:
        (claims,) = (
            statement
            for statement in statements(stage, "run-jobs")
            if statement["Sid"] == "DomainClaims"
        )
        assert claims["Resource"] == [arn(stage, "identity")]
        assert claims["Action"] == ["dynamodb:PutItem", "dynamodb:UpdateItem"]
        keys = {"dynamodb:LeadingKeys": ["CLAIM#domain#*"]}
        assert claims["Condition"] == {"ForAllValues:StringLike": keys}

    @pytest.mark.parametrize("function", [policies.API, "chat-stream"])
    def test_belong_to_no_other_function(self, stage: str, function: str) -> None:
        services = {action.split(":")[0] for action, _ in allowed(stage, function)}
        assert not services & {"acm", "cloudfront"}
