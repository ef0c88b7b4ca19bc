"""The operator's commands: a table or a JSON object on stdout, messages on stderr, exit 0 or 1."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from infra.operator import operation_commands, printing
from infra.operator.cli_errors import OneLineErrors
from infra.operator.operation_commands import FILE, call


def connect(stage: str | None, region: str | None = None) -> None:
    """Connect the stores to a deployed stage, or to the data of ``make dev``."""
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
    """Connect the stores to a stage, with the settings that its deployment published.

    Raises:
        click.ClickException: the stage is not deployed, or is in another region.
    """
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  the command line starts without boto3
    from infra.deploy.published_settings import published  # noqa: PLC0415

    account = sign_in(region)
    known = published(account, stage)
    if not known:
        msg = (
            f"The stage {stage} is not deployed in {account.region} of the account {account.id}. "
            f"Give its --region, or run make deploy STAGE={stage}."
        )
        raise click.ClickException(msg)
    os.environ.update(known, STAGE=stage, AWS_DEFAULT_REGION=account.region)


class AdminCommands(OneLineErrors):
    """The commands below, and one for each of the operator's operations."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *operation_commands.commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. Operations are imported only if the command is generated from one."""
        declared = super().get_command(ctx, cmd_name)
        return declared or operation_commands.commands().get(cmd_name)


@click.group(cls=AdminCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stage", help="A deployed stage; without it, the database of make dev.")
@click.option("--region", help="The stage's. Default: that of the shell.")
@click.pass_context
def admin(ctx: click.Context, stage: str | None, region: str | None) -> None:
    """Manage accounts, workspaces, keys, money, bots, files, sites and products."""
    ctx.obj = partial(connect, stage, region)


@admin.command("import-products")
@click.option("--workspace", required=True)
@click.option("--csv", "path", type=FILE, required=True, help="UTF-8 or Windows-1251.")
@click.option(
    "--prices",
    type=click.Choice(["rubles", "kopecks"]),
    help="Unit of the table's prices. A table of export-products states its own.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would happen.")
@click.option("--create-categories", is_flag=True, help="Those that are missing, by their paths.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Where refused rows go as CSV; beside the table if omitted.",
)
@printing.AS_JSON
@click.pass_context
def import_products(  # noqa: PLR0913  one for each option
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
    """Create or update products by SKU from a table; empty cells leave fields unchanged.

    Columns have Russian or English headers: артикул
    sku, название
    name, цена
    price, остаток
    stock, штрихкод
    barcode, категория
    category (a name, or a path such as A
    B), описание
    description, изображения
    images (URLs separated by |), статус
    status. Refused rows are reported with the reason; once corrected, the report itself can be
    imported. Safe to repeat. A table written by export-products is imported unchanged.
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
    """Write all products of a workspace to a table, for import-products.

    Every field is complete. Importing the unchanged table into the same workspace changes nothing.
    Importing it into another workspace creates equal products and, with --create-categories, their
    categories. A product without an SKU is identified by its id. Prices are in kopecks, and images
    are URLs.
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
    help="A new file, such as bakery.zip; only you may read it.",
)
@printing.AS_JSON
@click.pass_context
def export_workspace(ctx: click.Context, *, workspace: str, path: Path, as_json: bool) -> None:
    """Write a complete workspace to a zip file, for import.

    The file does not contain accounts, keys, money, audit log and blog. It contains unencrypted
    personal data: protect it as you protect the database. The workspace stays in use during the
    export, so the file is not a snapshot.
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
@printing.AS_JSON
@click.pass_context
def import_workspace(
    ctx: click.Context,
    *,
    path: Path,
    owner: str | None,
    ids: Any,  # noqa: ANN401  one of the choices
    as_json: bool,
) -> None:
    """Create a workspace from a file that export wrote; safe to repeat after an interruption.

    Nothing is overwritten, and nothing is written before the whole file is checked. Members who
    have an account here join; keys are not copied.
    """
    ctx.obj()
    from infra.operator.transfer import importing  # noqa: PLC0415  the command line starts without it

    printing.show(importing.import_workspace(path, owner=owner, ids=ids), as_json=as_json)
