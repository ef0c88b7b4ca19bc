"""The operator's commands: a table or a JSON object on stdout, messages on stderr, exit 0 or 1."""

import base64
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from infra.operator import printing
from infra.operator.cli_errors import OneLineErrors


def connect(stage: str | None, region: str | None = None) -> None:
    """Point the stores at a deployed stage, or at what ``make dev`` keeps."""
    if stage:
        _connect_to_deployed(stage, region)
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
    from infra.local.stack import DEMO_BALANCE, LOCAL_AWS, REAL_AWS  # noqa: PLC0415  the command line starts without it

    os.environ.setdefault("DEMO_BALANCE", DEMO_BALANCE)

    for name in REAL_AWS:
        os.environ.pop(name, None)
    os.environ.update(LOCAL_AWS)


def _connect_to_deployed(stage: str, region: str | None) -> None:
    """Point the stores at a stage, where its deployment said that it is.

    Raises:
        click.ClickException: it was not deployed, or in another region.
    """
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  the command line starts without boto3
    from infra.deploy.settings import published  # noqa: PLC0415

    account = sign_in(region)
    known = published(account, stage)
    if not known:
        msg = (
            f"The stage {stage} is not deployed in {account.region} of the account {account.id}. "
            f"Give its --region, or run make deploy STAGE={stage}."
        )
        raise click.ClickException(msg)
    os.environ.update(known, STAGE=stage, AWS_DEFAULT_REGION=account.region)


def call(
    operation: str, arguments: dict[str, Any], *, workspace: str | None = None
) -> dict[str, Any]:
    """Run an operation as the operator; return what is inside the envelope.

    In a workspace's place, if one is named, where the operation is for keys as well. Warnings go to
    stderr.

    Raises:
        AppError: any failure.
    """
    from uuid import uuid4  # noqa: PLC0415  the help needs no service

    from chalicelib.application.invoke import invoke  # noqa: PLC0415
    from chalicelib.core.operations import REGISTRY, load_all  # noqa: PLC0415
    from chalicelib.core.principals import OperatorPrincipal  # noqa: PLC0415
    from chalicelib.domains.identity.store import workspaces  # noqa: PLC0415

    load_all()
    principal = OperatorPrincipal()
    if workspace is not None:
        plan = workspaces.get(workspace).plan
        principal = OperatorPrincipal(workspace_id=workspace, plan=plan)
    reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id=str(uuid4()))
    data: dict[str, Any] = json.loads(reply.body)["data"]
    del data["status"]
    for warning in data.pop("warnings", ()):
        click.echo(warning, err=True)
    return data


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stage", help="A deployed stage; without it, the database of make dev.")
@click.option("--region", help="The stage's. Default: that of the shell.")
@click.pass_context
def admin(ctx: click.Context, stage: str | None, region: str | None) -> None:
    """Operate accounts, workspaces, keys, money, bots, files, sites and products."""
    ctx.obj = partial(connect, stage, region)


def _option(name: str, **attributes: Any) -> click.Option:  # noqa: ANN401  click's own
    required = "default" not in attributes
    return click.Option(
        [f"--{name}"], **{"required": required, "show_default": not required, **attributes}
    )


def _account(name: str, *more: str, about: str = "E-mail address of the account.") -> click.Option:
    """Return the option that names an account: ``--account``, or one of its other names."""
    return click.Option(["--account", *more, name], required=True, help=about)


_JSON = "Print JSON on a terminal, too, as into a pipe."
_AS_JSON = click.option("--json", "as_json", is_flag=True, help=_JSON)


def _command(
    name: str,
    operation: str,
    about: str,
    *options: click.Option,
    table: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    then: Callable[[dict[str, Any]], None] | None = None,
    **renamed: str,
) -> None:
    """Add a command that runs an operation with its options as the input.

    ``renamed`` maps options to inputs where the names differ. ``table`` returns what a terminal
    shows in place of the result. ``then`` runs with the arguments and the result.
    """

    @click.pass_context
    def run(ctx: click.Context, /, *, as_json: bool, **values: Any) -> None:  # noqa: ANN401  click's own
        ctx.obj()
        arguments = {
            renamed.get(option, option): _wire(value)
            for option, value in values.items()
            if value is not None
        }
        if isinstance(path := values.get("path"), Path):
            arguments["name"] = path.name
        result = _flat(call(operation, arguments))
        if then is not None:
            then({**arguments, **result})
        printing.show(result, as_json=as_json, table=table and table(result))

    params: list[click.Parameter] = [
        *options,
        click.Option(["--json", "as_json"], is_flag=True, help=_JSON),
    ]
    admin.add_command(click.Command(name, callback=run, params=params, help=about))


def _wire(value: Any) -> Any:  # noqa: ANN401  JSON
    """Return an option's value as an operation takes it: a path stands for the file's bytes."""
    if isinstance(value, Path):
        return base64.b64encode(value.read_bytes()).decode()
    return None if value is NO_LIMIT else value


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    """Return a result's fields; a record wrapped by its noun is printed without the wrapper."""
    values = list(data.values())
    return values[0] if len(values) == 1 and isinstance(values[0], dict) else data


class _Words(click.ParamType[list[str]]):
    """Comma-separated words."""

    name = "words"

    def convert(self, value: Any, *_: Any) -> list[str]:  # noqa: ANN401  click's own
        """Return the words."""
        return value if isinstance(value, list) else str(value).split(",")


NO_LIMIT = object()
"""What the word ``none`` stands for: null, while an option that is not given is omitted."""


class _Limit(click.ParamType[Any]):
    """Kopecks, or ``none``."""

    name = "kopecks|none"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401  click's own
        """Return the kopecks."""
        return NO_LIMIT if value in ("none", NO_LIMIT) else click.INT.convert(value, param, ctx)


def _credit_demo_balance(workspace: dict[str, Any]) -> None:
    """Credit the owner of a new workspace, where DEMO_BALANCE gives an amount."""
    from chalicelib.core.settings import settings  # noqa: PLC0415  the command line starts without it

    if kopecks := settings().demo_balance:
        money = {"kopecks": kopecks, "reason": "Demo balance"}
        key = f"demo-{workspace['workspaceId']}"
        call("credit", {"account": workspace["owner"], **money, "idempotencyKey": key})


_command(
    "create-account",
    "create_account",
    "Create an account.",
    _account("email", "--email", about="E-mail address of the new account."),
    _option("password"),
    _option("role", type=click.Choice(["user", "admin"]), default="user"),
    _option("name", default=""),
)
_command(
    "set-password",
    "set_password",
    "Set an account's password, and end its sessions.",
    _account("email", "--email"),
    _option("password", prompt="New password", hide_input=True, confirmation_prompt=True),
)
_command(
    "disable-account",
    "disable_account",
    "Keep an account from signing in, and revoke its keys; run again, it finishes the job.",
    _account("email", "--email"),
)
_command(
    "create-workspace",
    "create_workspace",
    "Create a workspace.",
    _account("owner", "--owner", about="E-mail address of the account that owns and pays."),
    _option("name"),
    _option("plan", default="business", help="free, start, business or enterprise."),
    _option("timezone", default="Europe/Moscow", help="IANA name."),
    _option("country", default="RU", help="ISO 3166 code: how its phones are read."),
    then=_credit_demo_balance,
)
_command(
    "set-workspace",
    "set_workspace",
    "Change a workspace's name, time zone or country; give at least one of them.",
    _option("workspace"),
    _option("name", required=False),
    _option("timezone", required=False, help="IANA name: the days of statistics, times shown."),
    _option("country", required=False, help="ISO 3166 code: how its phones are read from now on."),
    workspace="workspaceId",
)
_command(
    "set-plan",
    "set_plan",
    "Change a workspace's plan; its keys see it on the next request.",
    _option("workspace"),
    _option("plan", help="free, start, business or enterprise."),
    workspace="workspaceId",
)
_command(
    "add-member",
    "add_member",
    "Add an account to a workspace, or change its role there; a member's keys are revoked.",
    _option("workspace"),
    _account("email", "--email"),
    _option("role", default="member", help="member or manager."),
    workspace="workspaceId",
)
_command(
    "remove-member",
    "remove_member",
    "Remove an account from a workspace, and revoke its keys there.",
    _option("workspace"),
    _account("email", "--email"),
    workspace="workspaceId",
)
_command(
    "list-members",
    "list_members",
    "Print who works in a workspace.",
    _option("workspace"),
    workspace="workspaceId",
)
_command(
    "create-key",
    "create_key",
    "Create an API key; its token is shown this once.",
    _option("workspace"),
    _option("name"),
    _option("scopes", type=_Words(), help="Comma-separated, such as projects:read,*:write."),
    _option("expires", required=False, help="ISO 8601; without an offset it is UTC."),
    workspace="workspaceId",
)
_command(
    "list-keys",
    "list_keys",
    "Print a workspace's API keys, newest first, revoked ones included; tokens are masked.",
    _option("workspace"),
    workspace="workspaceId",
)
_command(
    "revoke-key",
    "revoke_key",
    "Revoke an API key for good.",
    _option("key", help="The keyId that create-key printed."),
    key="id",
)
_command(
    "audit-log",
    "list_audit_log",
    "Print who has changed what in a workspace, newest first; it is kept for 90 days.",
    _option("workspace"),
    _option("limit", type=int, required=False, help="At most so many, up to 100; default: 50."),
    _option("before", required=False, help="The next that the last page printed: go on there."),
    workspace="workspaceId",
)
_command(
    "suspend-site",
    "suspend_site",
    "Suspend a site; only resume-site lifts it.",
    _option("site"),
    site="id",
)
_command("resume-site", "resume_site", "Lift a site's suspension.", _option("site"), site="id")
_command(
    "erase-client",
    "erase_client",
    "Remove what is known of a person, for good; what was counted stays.",
    _option("workspace"),
    _option("client", required=False, help="Client id."),
    _option("email", required=False),
    _option("phone", required=False, help="In any spelling."),
    _option("dry-run", is_flag=True, default=False, help="Only print what would be removed."),
    workspace="workspaceId",
    client="clientId",
    dry_run="dryRun",
)
_ACCOUNT = _account("account")
_ONCE = _option("idempotency-key", help="The same again prints the same and adds nothing.")
_command(
    "credit",
    "credit",
    "Add money to an account.",
    _ACCOUNT,
    _option("kopecks", type=int),
    _option("reason"),
    _ONCE,
    idempotency_key="idempotencyKey",
)
_command(
    "adjust",
    "adjust",
    "Correct an account's balance, never below 0.",
    _ACCOUNT,
    _option("kopecks", type=int, help="How much more, or less if negative."),
    _option("reason"),
    _ONCE,
    idempotency_key="idempotencyKey",
)
_command("balance", "get_balance", "Print what an account has.", _ACCOUNT)
_command(
    "ledger",
    "list_ledger",
    "Print the last entries of an account's ledger, newest first; a table has a row for an answer.",
    _ACCOUNT,
    _option("limit", type=int, required=False, help="At most so many; default: 100."),
    table=printing.one_row_an_answer,
)
_AGENT = _option("agent", help="Bot id.")
_command(
    "set-bot",
    "set_bot",
    "Set whether a bot answers, and whether it asks for a bot key.",
    _AGENT,
    _option("active", type=bool, required=False, help="true or false."),
    _option("private", type=bool, required=False, help="true or false."),
    agent="id",
    active="isActive",
    private="isPrivate",
)
_command(
    "set-bot-limits",
    "set_bot_limits",
    "Set what a bot may spend, in kopecks; what it has spent before counts.",
    _AGENT,
    *(
        _option(window, type=_Limit(), required=False, help="Kopecks; none lifts the limit.")
        for window in ("daily", "weekly", "monthly")
    ),
    agent="agentId",
)
_command(
    "bot-limits",
    "get_bot_limits",
    "Print what a bot may spend, and has spent, in the present day, week and month.",
    _AGENT,
    agent="agentId",
)
_command(
    "create-bot-key",
    "create_bot_key",
    "Create a key of a bot; its token is shown this once.",
    _AGENT,
    _option("name"),
    agent="agentId",
)
_command(
    "delete-bot-key",
    "delete_bot_key",
    "Delete a key of a bot.",
    _AGENT,
    _option("key", help="The keyId that create-bot-key printed."),
    agent="agentId",
    key="keyId",
)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_command(
    "add-file",
    "add_file",
    "Put a file of this machine into a workspace, within its quota.",
    _option("workspace"),
    _option("folder", help="Name of a folder at the root; made if need be."),
    _option("path", type=_FILE),
    workspace="workspaceId",
    path="content",
)


@admin.command("import-products")
@click.option("--workspace", required=True)
@click.option("--csv", "path", type=_FILE, required=True, help="UTF-8 or Windows-1251.")
@click.option(
    "--prices",
    type=click.Choice(["rubles", "kopecks"]),
    help="What the table's prices are in; a table of export-products says so itself.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would happen.")
@click.option("--create-categories", is_flag=True, help="Those that are missing, by their paths.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Where refused rows go as CSV; beside the table if omitted.",
)
@_AS_JSON
@click.pass_context
def import_products(  # noqa: PLR0913  an option each
    ctx: click.Context,
    *,
    workspace: str,
    path: Path,
    prices: Any,  # noqa: ANN401  one of the choices, or None
    dry_run: bool,
    create_categories: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    """Create or update products by SKU from a table; what is left empty stays as it is.

    Columns go by their Russian or English headers: артикул / sku, название / name, цена / price,
    остаток / stock, штрихкод / barcode, категория / category (a name, or a path such as A / B),
    описание / description, изображения / images (addresses separated by |), статус / status.
    Refused rows are reported with the reason; put right, the report can be imported itself. Safe to
    repeat. A table that export-products has written is taken as it is.
    """
    ctx.obj()
    from infra.operator import product_import  # noqa: PLC0415  the command line starts without it

    options = product_import.Options(
        prices=prices,
        report=report or path.with_name(f"{path.stem}.refused.csv"),
        dry_run=dry_run,
        create_categories=create_categories,
    )
    if options.report.resolve() == path.resolve():
        msg = "The report would overwrite the table; name another --report."
        raise click.ClickException(msg)
    run = partial(call, workspace=workspace)
    printing.show(product_import.import_products(run, path, options), as_json=as_json)


@admin.command("export-products")
@click.option("--workspace", required=True)
@click.option(
    "--csv",
    "path",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    required=True,
    help="Where to write; a file that is there is replaced.",
)
@click.pass_context
def export_products(ctx: click.Context, *, workspace: str, path: Path) -> None:
    """Write all products of a workspace into a table, for import-products.

    Every field is there and whole. Imported into the same workspace unchanged, the table changes
    nothing; into another one it makes equal products, with --create-categories their categories,
    too. A product without an SKU keeps its id there, so that it is found again. Prices are in
    kopecks, and images are URLs.
    """
    ctx.obj()
    from infra.operator import product_export  # noqa: PLC0415  the command line starts without it

    run = partial(call, workspace=workspace)
    printed = product_export.export_products(run, workspace, path)
    click.echo(json.dumps(printed, ensure_ascii=False))


@admin.command("export")
@click.option("--workspace", required=True)
@click.option(
    "--out",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="A new file, such as bakery.jsonl.gz; only you may read it.",
)
@_AS_JSON
@click.pass_context
def export_workspace(ctx: click.Context, *, workspace: str, path: Path, as_json: bool) -> None:
    """Write everything of a workspace into a file, for import.

    Accounts, keys, money, audit log and blog stay behind. The file holds personal data in clear:
    keep it as you keep the database. The workspace works on meanwhile, so it is no snapshot.
    """
    ctx.obj()
    from infra.operator.transfer import export  # noqa: PLC0415  the command line starts without it

    printing.show(export.export(workspace, path), as_json=as_json)


@admin.command("import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--account",
    "--owner",
    "owner",
    help="E-mail of the account to own it; that of its former owner if omitted.",
)
@click.option(
    "--ids",
    type=click.Choice(["keep", "new"]),
    help="new: a copy, beside the original. keep: needed for a file of another stage.",
)
@_AS_JSON
@click.pass_context
def import_workspace(
    ctx: click.Context,
    *,
    path: Path,
    owner: str | None,
    ids: Any,  # noqa: ANN401  one of the choices
    as_json: bool,
) -> None:
    """Make a workspace of a file that export wrote; safe to repeat after an interruption.

    Nothing is written over, and nothing is written before the whole file was checked. Members who
    have an account here join; keys are not copied.
    """
    ctx.obj()
    from infra.operator.transfer import importing  # noqa: PLC0415  the command line starts without it

    printing.show(importing.import_workspace(path, owner=owner, ids=ids), as_json=as_json)
