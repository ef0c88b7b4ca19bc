"""The Lambda zip, built once for all tests that run it."""

from pathlib import Path

import pytest

from infra.deploy import stage_config
from infra.deploy.package import build as package
from tests.fakes.lambda_process import unpack

ENVIRONMENT = {
    **stage_config.environment(
        stage_config.load(), "dev", stage_config.StageFacts(bucket="workspace-dev-objects")
    ),
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}
FUNCTION = {"AWS_LAMBDA_FUNCTION_NAME": "workspace-api-dev"}


@pytest.fixture(scope="session")
def built_zip(tmp_path_factory: pytest.TempPathFactory) -> package.Package:
    """The zip of the stage dev."""
    return package.build("dev", tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def unpacked_zip(built_zip: package.Package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip, unpacked as Lambda does, with its file modes."""
    return unpack(built_zip.zip, tmp_path_factory.mktemp("task"))
