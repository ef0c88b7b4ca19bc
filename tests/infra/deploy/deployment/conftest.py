"""A deployment with the stand-in of AWS, and the store of its state."""

from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core import clock
from infra.deploy import commands
from infra.deploy.aws.store import Store
from infra.deploy.deployment import DeployOptions
from tests.infra.conftest import Aws, QuickChalice
from tests.infra.deploy.deployment.helpers import BUCKET, Deploy


@pytest.fixture
def deploy(aws: Aws, chalice: QuickChalice, checkout: Path) -> Deploy:
    number = count()

    def deploy(
        root: Path = checkout, *, allow_dirty: bool = False, **choices: str
    ) -> dict[str, Any]:
        aws.messages.clear()
        choices = {commands.CHOICES[name]: value for name, value in choices.items()}
        # Ids of releases are compared by their seconds, and a real deployment takes more than one.
        started = clock.now() + timedelta(seconds=next(number))
        with clock.using(lambda: started):
            return aws.deployment(root).deploy(DeployOptions("dev", choices, allow_dirty))

    return deploy


@pytest.fixture
def store(aws: Aws) -> Store:
    return Store(aws.account, BUCKET)
