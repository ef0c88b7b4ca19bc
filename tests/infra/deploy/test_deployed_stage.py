"""The state of a stage that was deployed twice, from two machines."""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.deploy import deployed_stage, published_settings, releases
from infra.deploy.aws import gateway
from infra.deploy.aws.store import Store
from infra.deploy.deployment import DeployOptions
from infra.deploy.names import queue_url
from tests.infra.conftest import REGION, Aws, commit, connected, moto, new_checkout, quick_chalice
from tests.support.zips import digests

pytestmark = pytest.mark.slow
BUCKET = "workspace-dev-123456789012-eu-central-1"
API = "workspace-api-dev"
JOBS, EVENTS, CHAT = f"{API}-run-jobs", f"{API}-run-events", f"{API}-chat-stream"
FUNCTIONS = (API, JOBS, EVENTS, CHAT)


@dataclass
class Deployments:
    """A first deployment, and a second one from another checkout with other code."""

    aws: Aws
    first: dict[str, Any]
    second: dict[str, Any]
    messages: list[str]
    commits: tuple[str, str]
    fresh: dict[str, str]
    """The variables of a function after the first deployment."""
    checkout: Path

    def arn(self, secret: str) -> str:
        client = self.aws.client("secretsmanager")
        return str(client.describe_secret(SecretId=f"workspace-api/dev/{secret}")["ARN"])

    @property
    def store(self) -> Store:
        return Store(self.aws.account, BUCKET)

    def variables(self, function: str) -> dict[str, str]:
        about = self.aws.client("lambda").get_function_configuration(FunctionName=function)
        variables: dict[str, str] = about["Environment"]["Variables"]
        return variables

    def secret(self, name: str) -> str:
        client = self.aws.client("secretsmanager")
        answer = client.get_secret_value(SecretId=f"workspace-api/dev/{name}")
        return str(answer["SecretString"])


@pytest.fixture(scope="module")
def deployments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployments]:
    with moto() as address, pytest.MonkeyPatch.context() as patch:
        aws = connected(address, patch)
        quick_chalice(aws, patch)
        one, two = (new_checkout(tmp_path_factory.mktemp("machine") / "x") for _ in range(2))
        commits = commit(one), commit(two, "app = 2\n")
        options = DeployOptions("dev", {"AlarmEmail": "ops@example.com"})
        first = aws.deployment(one).deploy(options)
        deployments = Deployments(aws, first, {}, list(aws.messages), commits, {}, two)
        deployments.fresh = deployments.variables(CHAT)
        key = aws.client("secretsmanager")
        key.put_secret_value(SecretId="workspace-api/dev/llm-api-key", SecretString="sk-1")
        deployments.second = aws.deployment(two).deploy(DeployOptions("dev"))
        yield deployments


def test_omitted_options_keep_their_values(deployments: Deployments) -> None:
    alarms = deployments.aws.deployment().stack("alarms")
    assert alarms.parameters()["AlarmEmail"] == "ops@example.com"


def test_every_step_is_reported_with_its_duration(deployments: Deployments) -> None:
    messages = deployments.messages
    steps = [line.removesuffix(" …") for line in messages if line.endswith(" …")]
    assert "Zip" in steps
    for step in steps:
        assert any(line.startswith(f"{step}: done in ") for line in messages)
    assert "  Add AWS::DynamoDB::Table ContentTable" in messages


def test_functions_have_the_edges_addresses_after_the_first_deployment(
    deployments: Deployments,
) -> None:
    assert (
        deployments.fresh["PUBLIC_URL"]
        == deployments.first["baseUrl"]
        == "https://d1.cloudfront.example"
    )
    assert deployments.fresh["SITE_HOSTS"] == "cloudfront:D2/cg_1/d2.cloudfront.example"
    assert deployments.fresh["AWS_LAMBDA_EXEC_WRAPPER"] == "/var/task/stream_bootstrap"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_have_the_variables_of_their_stage(
    deployments: Deployments, function: str
) -> None:
    wrapper = {"AWS_LAMBDA_EXEC_WRAPPER": "/var/task/stream_bootstrap"}
    assert deployments.variables(function) == {
        "STAGE": "dev",
        "TABLE_PREFIX": "workspace",
        "OBJECT_STORE": f"s3://{BUCKET}",
        "PUBLIC_URL": "https://d1.cloudfront.example",
        "SITE_HOSTS": "cloudfront:D2/cg_1/d2.cloudfront.example",
        "EDGE_SECRET": deployments.secret("edge-secret"),
        "LLM_PROVIDER": "bedrock",
        "LLM_MODEL": "nova-lite",
        "LLM_API_KEY_SECRET": deployments.arn("llm-api-key"),
        "MASTER_KEY_SECRET": deployments.arn("master-key"),
        "EVENTS_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/workspace-api-dev-events",
        "MAX_TOKEN_SECRET": deployments.arn("max-token"),
        "TELEGRAM_BOT_TOKEN_SECRET": deployments.arn("telegram-bot-token"),
        "SMS_KEY_SECRET": deployments.arn("sms-key"),
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        **(wrapper if function == CHAT else {}),
    }


@pytest.mark.parametrize(
    ("function", "secrets"),
    [
        (API, ["llm-api-key", "master-key", "max-token", "telegram-bot-token"]),
        (JOBS, ["master-key"]),
        (EVENTS, ["master-key", "max-token", "telegram-bot-token"]),
        (CHAT, ["llm-api-key", "master-key"]),
    ],
)
def test_functions_may_read_the_secrets_that_they_need_and_no_others(
    deployments: Deployments, function: str, secrets: list[str]
) -> None:
    role = f"{API}-api_handler" if function == API else function
    answer = deployments.aws.client("iam").get_role_policy(RoleName=role, PolicyName=role)
    grants = [
        (statement["Action"], statement["Resource"])
        for statement in answer["PolicyDocument"]["Statement"]
        if "secretsmanager" in json.dumps(statement)
    ]
    read = ["secretsmanager:GetSecretValue"]
    assert grants == [(read, [deployments.arn(secret)]) for secret in secrets]


def test_no_function_has_the_models_key_in_its_variables(deployments: Deployments) -> None:
    for function in FUNCTIONS:
        assert "sk-1" not in json.dumps(deployments.variables(function))


def test_roles_are_pinned_to_region_and_account(deployments: Deployments) -> None:
    answer = deployments.aws.client("iam").get_role_policy(RoleName=JOBS, PolicyName=JOBS)
    text = json.dumps(answer["PolicyDocument"])
    assert "arn:aws:dynamodb:eu-central-1:123456789012:table/workspace-dev-content" in text
    assert "${AWS::" not in text


def test_edge_has_the_api_as_origin_and_the_secret(deployments: Deployments) -> None:
    values = deployments.aws.replacement_values("edge").split(";")
    assert values[:3] == ["dev", deployments.first["apiId"], "dev"]
    assert values[3] == deployments.first["chatUrl"]
    assert values[4:6] == [BUCKET, deployments.secret("edge-secret")]
    assert values[6].startswith("arn:aws:wafv2:us-east-1:")


def test_published_settings_contain_no_secret(deployments: Deployments) -> None:
    assert published_settings.published(deployments.aws.account, "dev") == {
        "TABLE_PREFIX": "workspace",
        "OBJECT_STORE": f"s3://{BUCKET}",
        "PUBLIC_URL": "https://d1.cloudfront.example",
        "EVENTS_QUEUE_URL": queue_url("dev", region=REGION, account="123456789012"),
        "MASTER_KEY_SECRET": deployments.arn("master-key"),
        "MAX_TOKEN_SECRET": deployments.arn("max-token"),
        "TELEGRAM_BOT_TOKEN_SECRET": deployments.arn("telegram-bot-token"),
    }


def test_commands_find_addresses_secret_and_previous_release(
    deployments: Deployments,
) -> None:
    deployment = deployments.aws.deployment()
    origins = (deployments.second["apiUrl"], deployments.second["chatUrl"])
    target = deployed_stage.smoke_target(deployment, deployed_stage.addresses(deployment))
    assert (target.url, target.origins) == (deployments.second["baseUrl"], origins)
    assert (target.edge_secret, target.chat_url) == (deployments.secret("edge-secret"), None)
    assert deployed_stage.earlier_release(deployment) == deployments.first["release"]


@pytest.mark.parametrize("function", [JOBS, EVENTS])
def test_a_scheduled_run_is_not_repeated_and_not_started_late(
    deployments: Deployments, function: str
) -> None:
    client = deployments.aws.client("lambda")
    config = client.get_function_event_invoke_config(FunctionName=function)
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (0, 60)


class TestGateway:
    @pytest.fixture
    def answers(self, deployments: Deployments) -> dict[str, Any]:
        client = deployments.aws.client("apigateway")
        gateway_responses = client.get_gateway_responses(restApiId=deployments.first["apiId"])[
            "items"
        ]
        return {response["responseType"]: response for response in gateway_responses}

    def test_gateway_errors_have_the_envelope(self, answers: dict[str, Any]) -> None:
        assert {"MISSING_AUTHENTICATION_TOKEN", "DEFAULT_4XX", "DEFAULT_5XX"} <= answers.keys()
        for answer in answers.values():
            envelope = json.loads(answer["responseTemplates"]["application/json"])
            data = envelope["data"]
            assert list(envelope) == ["data"]
            assert list(data) == ["status", "message", "code", "requestId"]
            assert data["status"] is False
            assert data["requestId"] == "$context.requestId"

    def test_gateway_errors_omit_api_gateways_messages(self, answers: dict[str, Any]) -> None:
        """One of API Gateway's own messages contains the Authorization header."""
        assert "error.message" not in json.dumps(answers)

    def test_gateway_errors_are_readable_from_any_origin(self, answers: dict[str, Any]) -> None:
        for answer in answers.values():
            headers = answer["responseParameters"]
            assert headers["gatewayresponse.header.Access-Control-Allow-Origin"] == "'*'"
            assert headers["gatewayresponse.header.X-Request-Id"] == "context.requestId"

    def test_gateway_answers_404_for_unknown_paths(self, answers: dict[str, Any]) -> None:
        for kind in ("MISSING_AUTHENTICATION_TOKEN", "INVALID_SIGNATURE"):
            assert answers[kind]["statusCode"] == "404"
        assert (
            "statusCode" not in answers["DEFAULT_5XX"]
        )  # 500, 502, 503 and 504 stay what they are

    def test_throttled_requests_get_retry_after(self, answers: dict[str, Any]) -> None:
        headers = answers["THROTTLED"]["responseParameters"]
        assert headers["gatewayresponse.header.Retry-After"] == "'1'"

    def test_stage_is_throttled_and_has_the_newest_deployment(
        self, deployments: Deployments
    ) -> None:
        client, api = deployments.aws.client("apigateway"), deployments.first["apiId"]
        stage = client.get_stage(restApiId=api, stageName="dev")
        limits = stage["methodSettings"]["*/*"]
        assert limits["throttlingRateLimit"] == gateway.RATE
        assert limits["throttlingBurstLimit"] == gateway.BURST
        stored_deployments = client.get_deployments(restApiId=api)["items"]
        described = {
            deployment["id"]: deployment.get("description") for deployment in stored_deployments
        }
        assert described[stage["deploymentId"]] == deployments.second["release"]


class TestReleases:
    def test_releases_are_named_by_their_commits(self, deployments: Deployments) -> None:
        assert deployments.first["release"].endswith(f"Z-{deployments.commits[0]}")
        assert deployments.second["release"].endswith(f"Z-{deployments.commits[1]}")
        stored_releases = releases.list_releases(deployments.store)
        assert [release.id for release in stored_releases] == [
            deployments.second["release"],
            deployments.first["release"],
        ]
        assert [release.commit for release in stored_releases] == list(
            reversed(deployments.commits)
        )

    def test_release_contains_the_zip_of_the_functions(
        self, deployments: Deployments, tmp_path: Path
    ) -> None:
        releases.unpack(
            deployments.store, releases.list_releases(deployments.store)[0], tmp_path / "project"
        )
        (zipped,) = (tmp_path / "project" / ".chalice" / "deployments").glob("*.zip")
        code = digests(zipped.read_bytes())
        for function in FUNCTIONS:
            assert digests(deployments.aws.code_of(function)) == code

    def test_releases_contain_no_secret(self, deployments: Deployments, tmp_path: Path) -> None:
        stored_bytes = b""
        for release in releases.list_releases(deployments.store):
            archive = tmp_path / "release.tar.gz"
            deployments.store.download(releases.KEY, version=release.version, path=archive)
            with tarfile.open(archive) as tar:
                assert ".chalice/policy-chat-stream.json" in tar.getnames()
                for member in tar:
                    file = tar.extractfile(member)
                    stored_bytes += file.read() if file else b""
        assert deployments.secret("edge-secret").encode() not in stored_bytes
        assert b"sk-1" not in stored_bytes


def test_files_with_secrets_are_readable_by_their_owner_only(deployments: Deployments) -> None:
    project = deployments.checkout / "build" / "project-dev" / ".chalice"
    for folder in (project, deployments.checkout / ".chalice" / "dev"):
        assert deployments.secret("edge-secret") in (folder / "config.json").read_text()
        assert folder.stat().st_mode & 0o077 == 0
