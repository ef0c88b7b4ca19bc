"""A deployment with the stand-in of AWS, and the store of its state."""

from pathlib import Path
from typing import Any

import pytest

from infra.deploy import commands
from infra.deploy.aws.store import Store
from infra.deploy.deployment import DeployOptions
from tests.infra.conftest import Aws, QuickChalice
from tests.infra.deploy.deployment.helpers import BUCKET, Deploy


@pytest.fixture
def deploy(aws: Aws, chalice: QuickChalice, checkout: Path) -> Deploy:
    def deploy(
        root: Path = checkout, *, allow_dirty: bool = False, **choices: str
    ) -> dict[str, Any]:
        aws.messages.clear()
        choices = {commands.CHOICES[name]: value for name, value in choices.items()}
        return aws.deployment(root).deploy(DeployOptions("dev", choices, allow_dirty))

    return deploy


@pytest.fixture
def store(aws: Aws) -> Store:
    return Store(aws.account, BUCKET)
