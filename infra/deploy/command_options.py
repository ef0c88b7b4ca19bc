"""Options that the deployment's commands share, and how they start and end."""

import json
from typing import TYPE_CHECKING, Any

import click

from infra.deploy.progress import Progress

if TYPE_CHECKING:
    from infra.deploy.deployment import Deployment

STAGE = click.option("--stage", required=True, help="As in .chalice/config.json, such as dev.")
STAGE_OR_DEV = click.option(
    "--stage", default="dev", show_default=True, help="As in .chalice/config.json."
)
REGION = click.option("--region", help="Default: that of the shell (AWS_REGION, AWS_PROFILE).")
BREAK_LOCK = click.option(
    "--break-lock", is_flag=True, help="Take over from a deployment that is dead for certain."
)
YES = click.option("--yes", is_flag=True, help="Do not ask.")
PYTHON = click.option("--python", help="The Python to package with. Default: the first that fits.")


def open_deployment(stage: str, region: str | None) -> "Deployment":
    """Sign in, and return a stage in the account, which is printed to stderr."""
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  the help must not import boto3
    from infra.deploy.deployment import Deployment  # noqa: PLC0415  as above

    account = sign_in(region)
    click.echo(
        f"{stage} in {account.region} of the account {account.id}, as {account.user}", err=True
    )
    return Deployment(account, stage, Progress())


def print_result(result: dict[str, Any]) -> None:
    """Print the result of a command as a JSON object on stdout."""
    click.echo(json.dumps(result, ensure_ascii=False))
