"""The operator's command line.

A command prints a table or a JSON object to stdout and messages to stderr. Its exit code is 0, or
1 if it failed.
"""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from infra.operator import operation_commands, printing
from infra.operator.cli_errors import OneLineErrors
from infra.operator.operation_commands import FILE, call


def connect(
    stage: str | None, *, region: str | None = None, table_prefix: str | None = None
) -> None:
    """Connect the stores to a deployed stage, or to the data of ``make dev``.

    ``table_prefix`` is that of restored tables, which the stage itself does not use.
    """
    if stage:
        _connect_to_deployed(stage, region)
    else:
        _connect_to_local()
    if table_prefix:
        os.environ["TABLE_PREFIX"] = table_prefix


def _connect_to_local() -> None:
    state = Path(os.environ.get("DATA_DIR", ".local")) / "dev.json"
    if "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ:
        endpoint = os.environ.get("DYNAMODB_ENDPOINT")
        if endpoint is None:
            if not state.is_file():
                msg = (
                    f"No local database: {state} is missing. Run make dev, or choose a deployed "
                    "stage with --stage."
                )
                raise click.ClickException(msg)
            endpoint = json.loads(state.read_text())["endpoint"]
        os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint
        from infra.local import workarounds  # noqa: PLC0415  for a start without the database

        workarounds.be_patient()
    os.environ.setdefault("OBJECT_STORE", f"file://{state.parent.absolute() / 'objects'}")
    if state.is_file() and (port := json.loads(state.read_text()).get("port")):
        os.environ.setdefault("PUBLIC_URL", f"http://127.0.0.1:{port}")
    from infra.local.stack import DEMO_BALANCE, LOCAL_AWS, REAL_AWS  # noqa: PLC0415  for a fast start

    os.environ.setdefault("DEMO_BALANCE", DEMO_BALANCE)
    os.environ.setdefault("WEBHOOKS_TO_LOOPBACK", "1")

    for name in REAL_AWS:
        os.environ.pop(name, None)
    os.environ.update(LOCAL_AWS)


def _connect_to_deployed(stage: str, region: str | None) -> None:
    """Connect the stores to a stage, with the settings that its deployment published.

    Raises:
        click.ClickException: the stage is not deployed, or is in another region.
    """
    from infra.deploy.aws.account import sign_in  # noqa: PLC0415  for a start without boto3
    from infra.deploy.published_settings import published  # noqa: PLC0415

    account = sign_in(region)
    variables = published(account, stage)
    if not variables:
        msg = (
            f"The stage {stage} is not deployed in {account.region} of the account {account.id}. "
            f"Set its --region, or run make deploy STAGE={stage}."
        )
        raise click.ClickException(msg)
    os.environ.update(variables, STAGE=stage, AWS_DEFAULT_REGION=account.region)


class AdminCommands(OneLineErrors):
    """The commands of this module, and a generated command for each operation of the operator."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *operation_commands.commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and import operations only for a generated command."""
        declared = super().get_command(ctx, cmd_name)
        return declared or operation_commands.commands().get(cmd_name)


@click.group(cls=AdminCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stage", help="A deployed stage. Default: the local data of make dev.")
@click.option("--region", help="AWS region of the stage. Default: the region that the shell sets.")
@click.option("--table-prefix", help="Of restored tables, to read them beside the stage's own.")
@click.pass_context
def admin(
    ctx: click.Context, stage: str | None, *, region: str | None, table_prefix: str | None
) -> None:
    """Manage accounts, workspaces, keys, money, bots, files, sites and products."""
    ctx.obj = partial(connect, stage, region=region, table_prefix=table_prefix)


@admin.command("import-products")
@click.option("--workspace", required=True)
@click.option(
    "--csv", "path", type=FILE, required=True, help="The table. Most encodings are detected."
)
@click.option(
    "--prices",
    type=click.Choice(["rubles", "kopecks", "major", "minor"]),
    help="Unit of the table's prices: rubles or kopecks, and major or minor units of another "
    "currency. Not needed for a file of export-products.",
)
@click.option("--dry-run", is_flag=True, help="Only report what would happen.")
@click.option("--create-categories", is_flag=True, help="Create the categories that do not exist.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="CSV file to write refused rows to. Default: a file next to the table.",
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

    Headers are Russian or English: артикул or sku, название or name, цена or price, остаток or
    stock, штрихкод or barcode, категория or category (a name, or a path such as A / B), описание
    or description, изображения or images (URLs separated by |), статус or status. Exports of
    shops are recognized by their headers: Shopify, WooCommerce, InSales, OpenCart, Tilda, Ozon,
    Wildberries, MoySklad and others.

    Columns that are not read are named before anything is written. Refused rows are written to
    a report with the reasons. Correct them there and import the report. The command is safe to
    repeat. It also reads the tables that export-products writes.
    """
    ctx.obj()
    from infra.operator import product_import  # noqa: PLC0415  for a fast start

    options = product_import.Options(
        prices=prices,
        report=report or path.with_name(f"{path.stem}.refused.csv"),
        dry_run=dry_run,
        create_categories=create_categories,
    )
    if options.report.resolve() == path.resolve():
        msg = "The report would overwrite the table. Choose another file with --report."
        raise click.ClickException(msg)
    run = partial(call, workspace=workspace)
    printing.show(product_import.import_products(run, workspace, path, options), as_json=as_json)


@admin.command("export-products")
@click.option("--workspace", required=True)
@click.option(
    "--csv",
    "path",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    required=True,
    help="File to write. An existing file is replaced.",
)
@click.pass_context
def export_products(ctx: click.Context, *, workspace: str, path: Path) -> None:
    """Write all products of a workspace to a CSV table that import-products reads.

    No value is shortened. Importing the unchanged table into the same workspace changes nothing.
    Importing it into another workspace creates the same products and, with --create-categories,
    their categories. A product without an SKU is identified by its id. Prices are
    in kopecks, or in units of another currency, as the header says. Images are URLs.
    """
    ctx.obj()
    from infra.operator import product_export  # noqa: PLC0415  for a fast start

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
    help="File to create, such as bakery.zip. Only your user can read it.",
)
@printing.AS_JSON
@click.pass_context
def export_workspace(ctx: click.Context, *, workspace: str, path: Path, as_json: bool) -> None:
    """Write a workspace to a zip file that the import command reads.

    The file contains no accounts, keys, balances, audit log or blog. It contains unencrypted
    personal data. Protect it as you protect the database. The workspace can be used during the
    export, so the file is not a snapshot.
    """
    ctx.obj()
    from infra.operator.transfer import export  # noqa: PLC0415  for a fast start

    printing.show(export.export(workspace, path), as_json=as_json)


@admin.command("import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--account",
    "--owner",
    "owner",
    help="E-mail of the account that will own it. Default: the former owner's e-mail.",
)
@click.option(
    "--ids",
    type=click.Choice(["keep", "new"]),
    help="new: import a copy with new ids. keep: keep the ids. Required for another stage's file.",
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
    """Create a workspace from a file of the export command. Repeat it after an interruption.

    The whole file is checked before anything is written, and nothing is overwritten. Members who
    have an account on this stage become members. API keys are not imported.
    """
    ctx.obj()
    from infra.operator.transfer import importing  # noqa: PLC0415  for a fast start

    printing.show(importing.import_workspace(path, owner=owner, ids=ids), as_json=as_json)


@admin.command("telegram-webhook")
@click.option("--set", "action", flag_value="set", help="Make Telegram send updates to the stage.")
@click.option("--delete", "action", flag_value="delete", help="Make Telegram keep the updates.")
@click.option(
    "--show", "action", flag_value="show", default="show", help="Only show the state. The default."
)
@printing.AS_JSON
@click.pass_context
def telegram_webhook(ctx: click.Context, *, action: str, as_json: bool) -> None:
    """Register the webhook of the stage's Telegram bot, or show its state at Telegram.

    Set the webhook once after you have stored the bot's token, and again after you have replaced
    the token or the stage's URL. A bot with a webhook is not polled by make dev.
    """
    ctx.obj()
    from infra.operator import telegram_webhook as webhook  # noqa: PLC0415  for a fast start

    printing.show(webhook.change(action), as_json=as_json)


@admin.command("max-webhook")
@click.option("--set", "action", flag_value="set", help="Make MAX send updates to the stage only.")
@click.option("--delete", "action", flag_value="delete", help="Make MAX send no updates.")
@click.option(
    "--show", "action", flag_value="show", default="show", help="Only show the URLs. The default."
)
@printing.AS_JSON
@click.pass_context
def max_webhook(ctx: click.Context, *, action: str, as_json: bool) -> None:
    """Register the webhook of the stage's bot at MAX, or show which URLs get its updates.

    Set the webhook once after you have stored the bot's token, and again after you have replaced
    the token or the stage's URL.
    """
    ctx.obj()
    from infra.operator import max_webhook as webhook  # noqa: PLC0415  for a fast start

    printing.show(webhook.change(action), as_json=as_json)
