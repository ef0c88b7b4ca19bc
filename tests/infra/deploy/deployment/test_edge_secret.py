"""A replacement of the edge's secret never refuses requests from the edge."""

from pathlib import Path

import pytest

from chalicelib.core.settings import read
from tests.infra.conftest import Aws, commit
from tests.infra.deploy.deployment.helpers import API, CHAT, Deploy, killed_before

pytestmark = pytest.mark.slow


def sent_secret(aws: Aws) -> str:
    """Return the secret that the edge sends."""
    return aws.deployment().stack("edge").parameters()["EdgeSecret"]


def accepted(aws: Aws, function: str) -> tuple[str, ...]:
    about = aws.client("lambda").get_function_configuration(FunctionName=function)
    return read(about["Environment"]["Variables"]).edge_secrets


def replace_secret(aws: Aws, value: str) -> str:
    aws.client("secretsmanager").put_secret_value(
        SecretId="workspace-api/dev/edge-secret", SecretString=value
    )
    return value


@pytest.mark.parametrize("step", ["Functions and API", "Stack workspace-api-dev-edge ", "Base URL"])
def test_functions_accept_what_the_edge_sends_after_every_step(
    aws: Aws, deploy: Deploy, step: str
) -> None:
    deploy()
    old = sent_secret(aws)
    new = replace_secret(aws, "n" * 48)
    with killed_before(aws, step):
        deploy()
    for function in (API, CHAT):
        assert sent_secret(aws) in accepted(aws, function)
    deploy()
    assert sent_secret(aws) == new
    for function in (API, CHAT):
        assert accepted(aws, function) == (new,)
        assert old not in accepted(aws, function)


def test_both_secrets_are_accepted_while_the_edge_still_sends_the_former(
    aws: Aws, deploy: Deploy
) -> None:
    deploy()
    old = sent_secret(aws)
    replace_secret(aws, "m" * 48)  # was never deployed
    new = replace_secret(aws, "n" * 48)
    with killed_before(aws, "Stack workspace-api-dev-edge "):
        deploy()
    assert sent_secret(aws) == old
    assert accepted(aws, API) == (new, old)


def test_a_rollback_keeps_the_secret_that_the_edge_sends(
    aws: Aws, deploy: Deploy, checkout: Path
) -> None:
    deploy()
    commit(checkout, "app = 2\n")
    deploy()
    old = sent_secret(aws)
    new = replace_secret(aws, "n" * 48)
    aws.deployment(checkout).rollback(None, break_lock=False, python=None)
    assert accepted(aws, API) == (new, old)
    deploy()
    assert accepted(aws, API) == (new,)
