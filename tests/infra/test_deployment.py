"""Deploying a stage, again, from elsewhere, half-way, back and away: on moto, but for the edge."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from infra.deploy import chalice_state, releases, settings
from infra.deploy.deployment import Deployment, Wanted
from infra.deploy.destruction import destroy
from infra.deploy.lock import LockedError
from infra.deploy.store import Store
from tests.infra.conftest import Aws, Killed, QuickChalice, commit

BUCKET = "workspace-dev-123456789012-eu-central-1"
API, JOBS, CHAT = "workspace-api-dev", "workspace-api-dev-run-jobs", "workspace-api-dev-chat-stream"


@pytest.fixture
def deploy(aws: Aws, chalice: QuickChalice, checkout: Path) -> Callable[..., dict[str, Any]]:
    def deploy(root: Path = checkout, **wanted: Any) -> dict[str, Any]:
        aws.said.clear()
        return aws.deployment(root).deploy(Wanted("dev", **wanted))

    return deploy


Deploy = Callable[..., dict[str, Any]]


def variables(aws: Aws, function: str) -> dict[str, str]:
    about = aws.client("lambda").get_function_configuration(FunctionName=function)
    found: dict[str, str] = about["Environment"]["Variables"]
    return found


def test_a_first_deployment_tells_where_it_is(aws: Aws, deploy: Deploy) -> None:
    result = deploy()
    print("\n".join(aws.said))
    assert result["baseUrl"] == "https://d1.cloudfront.example"
    assert [result["apiId"]] == aws.apis()
