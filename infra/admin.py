"""The operator's commands: one JSON object on stdout, words on stderr, exit 0 or 1 (contract)."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import click

from infra.cli_errors import OneLineErrors

P = ParamSpec("P")
ROOT = Path(__file__).parent.parent


def connect(stage: str | None) -> None:
    """Point the stores at a deployed stage, or at what ``make dev`` keeps."""
    if stage:
        os.environ["STAGE"] = stage
        stages = json.loads((ROOT / ".chalice" / "config.json").read_text())["stages"]
        for name, value in stages.get(stage, {}).get("environment_variables", {}).items():
            os.environ.setdefault(name, value)
        return
    state = Path(os.environ.get("DATA_DIR", ".local")) / "dev.json"
    if "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ:
        endpoint = os.environ.get("DYNAMODB_ENDPOINT")
        if endpoint is None:
            if not state.is_file():
                msg = f"No local database: {state} is missing. Run make dev, or name a --stage."
                raise click.ClickException(msg)
            endpoint = json.loads(state.read_text())["endpoint"]
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint
    os.environ.setdefault("OBJECT_STORE", f"file://{state.parent.absolute() / 'objects'}")
    if state.is_file() and (port := json.loads(state.read_text()).get("port")):
        os.environ.setdefault("PUBLIC_URL", f"http://127.0.0.1:{port}")
    from infra.local_stack import LOCAL_AWS, REAL_AWS  # noqa: PLC0415  the command line starts without it

    for name in REAL_AWS:
        os.environ.pop(name, None)
    os.environ.update(LOCAL_AWS)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stage", help="A deployed stage; without it, the database of make dev.")
@click.pass_context
def admin(ctx: click.Context, stage: str | None) -> None:
    """Operate accounts, workspaces, keys, files and sites."""
    ctx.obj = stage


def _prints(command: Callable[P, dict[str, Any]]) -> Callable[P, None]:
    """Connect, run a command, and print its result as JSON."""

    @wraps(command)
    def run(*args: P.args, **options: P.kwargs) -> None:
        connect(click.get_current_context().obj)
        click.echo(json.dumps(command(*args, **options), ensure_ascii=False))

    return run


@admin.command("create-account")
@click.option("--email", required=True)
@click.option("--password", required=True)
@click.option("--role", type=click.Choice(["user", "admin"]), default="user")
@click.option("--name", default="")
@_prints
def create_account(email: str, password: str, role: str, name: str) -> dict[str, Any]:
    """Create an account."""
    from chalicelib.store import accounts  # noqa: PLC0415

    account = accounts.create(email, password, role, name)
    return {"accountId": account.id, "email": account.email, "role": account.role}


@admin.command("create-workspace")
@click.option("--owner", required=True, help="E-mail address of the owner's account.")
@click.option("--name", required=True)
@click.option("--plan", default="business", help="free, start, business or enterprise.")
@click.option("--timezone", default="Europe/Moscow", help="IANA name.")
@_prints
def create_workspace(owner: str, name: str, plan: str, timezone: str) -> dict[str, Any]:
    """Create a workspace."""
    from chalicelib.store import workspaces  # noqa: PLC0415

    workspace = workspaces.create(owner, name, plan, timezone)
    return {
        "workspaceId": workspace.id,
        "slug": workspace.slug,
        "plan": workspace.plan,
        "timezone": workspace.timezone,
    }


@admin.command("add-member")
@click.option("--workspace", required=True)
@click.option("--email", required=True)
@click.option("--role", default="member", help="member or manager.")
@_prints
def add_member(workspace: str, email: str, role: str) -> dict[str, Any]:
    """Add an account to a workspace, or change its role there."""
    from chalicelib.store import workspaces  # noqa: PLC0415

    membership = workspaces.add_member(workspace, email, role)
    return {
        "workspaceId": workspace,
        "accountId": membership.account_id,
        "role": membership.role,
    }


@admin.command("create-key")
@click.option("--workspace", required=True)
@click.option("--name", required=True)
@click.option("--scopes", required=True, help="Comma-separated, such as projects:read,*:write.")
@click.option("--expires", help="ISO 8601; without an offset it is UTC.")
@_prints
def create_key(workspace: str, name: str, scopes: str, expires: str | None) -> dict[str, Any]:
    """Create an API key; its token is shown this once."""
    from chalicelib.store import api_keys, workspaces  # noqa: PLC0415

    key, token = api_keys.create(
        workspaces.get(workspace), name, scopes.split(","), _moment(expires)
    )
    return {"keyId": key.key_id, "token": token, "scopes": key.scopes}


def _moment(text: str | None) -> datetime | None:
    from chalicelib.core.errors import ValidationError  # noqa: PLC0415

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f'expected ISO 8601, such as 2030-01-31T12:00:00Z, received "{text[:80]}"'
        raise ValidationError.of("expires", message) from None


@admin.command("revoke-key")
@click.option("--key", required=True, help="The keyId that create-key printed.")
@_prints
def revoke_key(key: str) -> dict[str, Any]:
    """Revoke an API key for good."""
    from chalicelib.core.schema import iso  # noqa: PLC0415
    from chalicelib.store import api_keys  # noqa: PLC0415

    revoked = api_keys.revoke(key)
    return {"keyId": key, "revokedAt": iso(revoked.revoked_at)}


@admin.command("set-plan")
@click.option("--workspace", required=True)
@click.option("--plan", required=True, help="free, start, business or enterprise.")
@_prints
def set_plan(workspace: str, plan: str) -> dict[str, Any]:
    """Change a workspace's plan; its keys see it on the next request."""
    from chalicelib.store import workspaces  # noqa: PLC0415

    return {"workspaceId": workspace, "plan": workspaces.set_plan(workspace, plan).plan}


@admin.command("add-file")
@click.option("--workspace", required=True)
@click.option("--folder", required=True, help="Name of a folder at the root; made if need be.")
@click.option("--path", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_prints
def add_file(workspace: str, folder: str, path: Path) -> dict[str, Any]:
    """Put a file of this machine into a workspace, within its quota."""
    from uuid import uuid4  # noqa: PLC0415

    from chalicelib.core.retry import retry_on_conflict  # noqa: PLC0415
    from chalicelib.core.unit import AuditEvent  # noqa: PLC0415
    from chalicelib.domains.files.records import FileOut  # noqa: PLC0415
    from chalicelib.domains.files.uploads import add_file as stage_file  # noqa: PLC0415
    from chalicelib.store import workspaces  # noqa: PLC0415
    from chalicelib.store.unit import UnitOfWork  # noqa: PLC0415

    plan, body = workspaces.get(workspace).plan, path.read_bytes()
    unit = UnitOfWork(workspace, str(uuid4()))

    def add() -> FileOut:
        unit.begin()
        file = stage_file(unit, plan, folder, path.name, body)
        unit.commit(AuditEvent.by_operator("add_file", f"file:{file.id}"))
        return file

    try:
        return retry_on_conflict(add).model_dump(mode="json", by_alias=True)
    except BaseException:
        unit.fail()
        raise


@admin.command("suspend-site")
@click.option("--site", required=True)
@_prints
def suspend_site(site: str) -> dict[str, Any]:
    """Suspend a site; only resume-site lifts it."""
    from chalicelib.store import sites  # noqa: PLC0415

    return {"id": site, "status": sites.suspend(site).status}


@admin.command("resume-site")
@click.option("--site", required=True)
@_prints
def resume_site(site: str) -> dict[str, Any]:
    """Lift a site's suspension."""
    from chalicelib.store import sites  # noqa: PLC0415

    return {"id": site, "status": sites.resume(site).status}
