"""Errors of AWS, reported on one line with advice."""

import subprocess
import sys
from pathlib import Path

import pytest
from botocore import exceptions

from infra.deploy.aws.errors import explain
from infra.deploy.package import build as package


def client_error(code: str, message: str = "Because.") -> exceptions.ClientError:
    return exceptions.ClientError({"Error": {"Code": code, "Message": message}}, "CreateStack")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (exceptions.NoCredentialsError(), "There are no AWS credentials. Sign in"),
        (exceptions.NoRegionError(), "No AWS region is chosen. Give --region"),
        (exceptions.ProfileNotFound(profile="x"), "Set AWS_PROFILE to one that"),
        (exceptions.UnauthorizedSSOTokenError(), "have expired. Sign in again"),
        (exceptions.EndpointConnectionError(endpoint_url="https://x"), "AWS does not answer"),
        (client_error("ExpiredToken"), "have expired. Sign in again"),
        (client_error("InvalidClientTokenId"), "AWS does not know these credentials"),
        (client_error("AccessDenied"), "These credentials may not call CreateStack: Because."),
        (client_error("LimitExceeded"), "AWS refused CreateStack (LimitExceeded): Because."),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_aws_error_is_explained_with_advice(error: Exception, says: str) -> None:
    assert says in (explain(error) or "")


def test_other_errors_are_not_explained() -> None:
    assert explain(ValueError("x")) is None


COMMANDS = (
    ("deploy", "--stage", "dev", "--yes", "--allow-dirty"),
    ("rollback", "--stage", "dev"),
    ("releases", "--stage", "dev"),
    ("destroy", "--stage", "dev", "--yes"),
    ("admin", "--stage", "dev", "balance", "--account", "a@b.example"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("region", "says"), [("eu-central-1", "no AWS credentials"), (None, "No AWS region is chosen")]
)
@pytest.mark.slow
def test_every_command_prints_an_aws_error_in_one_line(
    command: tuple[str, ...], region: str | None, says: str, tmp_path: Path
) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"AWS_DEFAULT_REGION": region} if region else {}),
    }
    process = subprocess.run(
        [sys.executable, "-m", "infra", *command],
        cwd=package.ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    assert says in line
