"""Only a stage that sends by SES has the stack for SES's reports."""

import json
from pathlib import Path

import pytest

from infra.deploy import destruction
from tests.infra.conftest import Aws
from tests.infra.deploy.deployment.helpers import Deploy


def stacks(aws: Aws) -> set[str]:
    stacks = aws.client("cloudformation").describe_stacks()["Stacks"]
    return {stack["StackName"] for stack in stacks}


def configure(checkout: Path, **variables: str) -> None:
    path = checkout / ".chalice" / "config.json"
    config = json.loads(path.read_text())
    config["stages"]["dev"]["environment_variables"] = variables
    path.write_text(json.dumps(config))


@pytest.mark.usefixtures("chalice")
def test_stage_that_sends_by_ses_gets_the_mail_stack(
    aws: Aws, deploy: Deploy, checkout: Path
) -> None:
    deploy()
    assert "workspace-api-dev-mail" not in stacks(aws)
    configure(checkout, MAIL="ses", MAIL_FROM="mail@notify.example.com")
    deploy(allow_dirty=True)
    assert "workspace-api-dev-mail" in stacks(aws)
    destruction.destroy(aws.deployment(checkout), with_data=False, break_lock=False)
    assert "workspace-api-dev-mail" not in stacks(aws)
