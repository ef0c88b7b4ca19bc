"""The master key of a stage that was deployed before there was one."""

from typing import Any

import pytest

from infra.deploy.stacks import build, data
from tests.infra.conftest import Aws
from tests.infra.deploy.deployment.helpers import API, Deploy

pytestmark = pytest.mark.slow


def former_template() -> dict[str, Any]:
    """Return the data stack's template without the master key."""
    template = data.template()
    del template["Resources"]["MasterKeySecret"]
    del template["Outputs"]["MasterKeySecretArn"]
    return template


def variables(aws: Aws) -> dict[str, str]:
    about = aws.client("lambda").get_function_configuration(FunctionName=API)
    variables: dict[str, str] = about["Environment"]["Variables"]
    return variables


def secrets(aws: Aws) -> dict[str, str]:
    listed_secrets = aws.client("secretsmanager").list_secrets()["SecretList"]
    return {secret["Name"]: secret["ARN"] for secret in listed_secrets}


def test_deployment_adds_a_master_key_to_an_existing_stage(
    aws: Aws, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(build._MADE, "data", former_template)
        deploy()
    assert "MASTER_KEY_SECRET" not in variables(aws)
    old_secrets, tables = secrets(aws), aws.client("dynamodb").list_tables()["TableNames"]
    deploy()
    new_secrets = secrets(aws)
    key = new_secrets.pop("workspace-api/dev/master-key")
    assert new_secrets == old_secrets
    assert aws.client("dynamodb").list_tables()["TableNames"] == tables
    assert variables(aws)["MASTER_KEY_SECRET"] == key
    deploy()
    assert variables(aws)["MASTER_KEY_SECRET"] == key
