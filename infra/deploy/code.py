"""Functions, routes, roles and schedules of a stage, which Chalice creates and updates.

``python -m infra deploy``, ``rollback`` and a plain ``chalice deploy`` all end here.
"""

import base64
import hashlib
import json
from pathlib import Path

import click

from infra.deploy import policies, stage_config
from infra.deploy.aws import chalice_state, functions, gateway
from infra.deploy.aws.account import Account
from infra.deploy.package import build as package
from infra.deploy.progress import Progress
from infra.deploy.releases import Release
from infra.deploy.stage_config import StageFacts

UPLOAD_SECONDS = 300
"""Timeout for the upload of a zip of 26 MiB to Lambda. Chalice's default is one minute."""
CHANGES = ("Creating", "Updating", "Deleting")
"""First words of the lines in which Chalice names a resource."""


def configure(account: Account, stage: str, facts: StageFacts, folder: Path, *, root: Path) -> None:
    """Write the stage's config, which contains secrets, and its policies into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    # The config contains secrets of the stage, such as the edge's secret.
    folder.chmod(0o700)
    target = policies.Target(account.region, account.id)
    stage_config.write(folder, stage, facts, target, root)


def configure_checkout(
    account: Account,
    stage: str,
    facts: StageFacts,
    resources: list[chalice_state.Resource],
    root: Path,
) -> Path:
    """Write the files that plain Chalice commands need into the checkout, and return the folder."""
    folder = stage_config.folder_of(stage, root)
    configure(account, stage, facts, folder, root=root)
    chalice_state.write(root, stage, resources)
    return folder


def configure_release(stage: str, facts: StageFacts, project: Path, release: Release) -> None:
    """Write the stage's config into the copy of an earlier release.

    The release keeps its own policies, because its code may need other rights than the current
    code. They are adapted to the current tables.
    """
    (project / ".chalice").chmod(0o700)
    config = stage_config.generate(stage_config.load(project), stage, facts)
    (project / ".chalice" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    policies.replace_table_prefix(project, stage, old_prefix=release.tables, now=facts.table_prefix)


def put(  # noqa: PLR0913  what Chalice deploys, and where
    account: Account,
    stage: str,
    python: package.Python,
    project: Path,
    *,
    release: Release,
    progress: Progress,
    seconds: int | None = None,
) -> list[chalice_state.Resource]:
    """Run ``chalice deploy`` in a copy of the project; return what Chalice has recorded.

    Raises:
        click.ClickException: Chalice failed, or has deployed another zip than the checked one.
    """
    with progress.step("Functions and API (chalice deploy)"):
        # Chalice would create every resource again if its record of deployed resources were
        # missing.
        chalice_state.write(project, stage, chalice_state.existing(account, stage))
        arguments = (
            "deploy",
            "--stage",
            stage,
            "--connection-timeout",
            str(seconds or UPLOAD_SECONDS),
        )
        output = package.chalice(python, project, *arguments, region=account.region)
        for line in output.splitlines():
            if line.startswith(CHANGES) and not line.endswith(" package."):
                progress.note(line)
        resources = chalice_state.read(project, stage)
        _verify(account, resources, project)
        deployed = {resource["name"] for resource in resources}
        functions.discard_late_runs(account.client("lambda"), stage, deployed)
    with progress.step("Answers and throttle of API Gateway"):
        api = chalice_state.value(resources, "rest_api", field="rest_api_id")
        gateway.apply(account.client("apigateway"), api, stage=stage, about=release.id)
    return resources


def _verify(account: Account, resources: list[chalice_state.Resource], project: Path) -> None:
    """Check that the functions run exactly the zip that was checked."""
    (zipped,) = (project / ".chalice" / "deployments").glob("*.zip")
    ours = base64.b64encode(hashlib.sha256(zipped.read_bytes()).digest()).decode()
    client = account.client("lambda")
    for function in chalice_state.functions(resources):
        # Chalice packs again if any file of the copy has changed since its cached zip.
        if client.get_function_configuration(FunctionName=function)["CodeSha256"] != ours:
            msg = (
                f"{function} does not have the zip that was checked: Chalice packed another. "
                "Delete build/ and run again."
            )
            raise click.ClickException(msg)


def set_addresses(
    account: Account, resources: list[chalice_state.Resource], facts: StageFacts
) -> None:
    """Set addresses that were unknown when the functions were created, as for a new edge.

    The edge sends its current secret by now, so functions no longer accept the former one.
    """
    client = account.client("lambda")
    new_addresses = stage_config.addresses(facts)
    for function in chalice_state.functions(resources):
        about = client.get_function_configuration(FunctionName=function)
        environment = about["Environment"]["Variables"]
        other = {name: value for name, value in environment.items() if name not in new_addresses}
        variables = other | {name: value for name, value in new_addresses.items() if value}
        if variables != environment:
            client.update_function_configuration(
                FunctionName=function, Environment={"Variables": variables}
            )
            # Lambda refuses another update while one is in progress (ResourceConflictException).
            client.get_waiter("function_updated_v2").wait(FunctionName=function)
