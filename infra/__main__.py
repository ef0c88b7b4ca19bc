"""Entry point of ``python -m infra``, which starts the tools by their names."""

import json
import sys

import click

from infra.deploy import check_commands, commands
from infra.local import dev as local
from infra.local.dynamodb import SetupError
from infra.local.stack import LocalStack
from infra.operator.admin import admin, connect
from infra.operator.cli_errors import OneLineErrors
from infra.operator.registry_entry import server_json


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run and operate the service."""


@main.command()
def dev() -> None:
    """Run the whole service locally, on one base URL and with a persistent database (make dev)."""
    try:
        local.dev()
    except SetupError as error:
        click.echo(f"make dev: {error}", err=True)
        sys.exit(1)


@main.command("seed")
@click.option("--noun", required=True, help="Records to create: products or leads.")
@click.option(
    "--count", type=click.IntRange(1, 10**6), required=True, help="Total number of records."
)
@click.option(
    "--seed",
    "number",
    default=1,
    help="Seed of the generator. The same seed creates the same records.",
)
@click.option("--workspace", help="Workspace id; without it, the demo workspace of make dev.")
def seed(noun: str, count: int, *, number: int, workspace: str | None) -> None:
    """Fill a workspace of the local database with generated records, to try large lists.

    To continue after an interruption, run the same command again.
    """
    connect(None)
    from infra.local.seed import NOUNS  # noqa: PLC0415  only this command loads the store
    from infra.local.seed import seed as create_records  # noqa: PLC0415

    if noun not in NOUNS:
        msg = f'--noun: expected {" or ".join(NOUNS)}, received "{noun}".'
        raise click.ClickException(msg)
    target = workspace or LocalStack.from_environment().data.demo.get("workspaceId")
    if not target:
        msg = "There is no demo workspace. Run make dev, or add --workspace ID."
        raise click.ClickException(msg)
    with click.progressbar(length=count, label=f"{noun} in {target}", file=sys.stderr) as bar:
        for created_count in create_records(target, noun=noun, count=count, seed=number):
            bar.update(created_count)
    click.echo(json.dumps({"workspaceId": target, "noun": noun, "count": count, "seed": number}))


@main.command("quick")
@click.option("--base", default="main", help="Branch or commit with which to compare.")
def quick(base: str) -> None:
    """Run the tests that a change reaches (make quick)."""
    from infra.local.quick import run  # noqa: PLC0415  only this command needs all operations

    sys.exit(run(base))


@main.command("reference")
def reference() -> None:
    """Write docs/reference.md from recorded responses (make update records them first).

    The tables of docs/data-model.md, docs/limits.md, docs/notifications.md, docs/runbook.md and
    docs/surfaces.md are written from their declarations, and those of docs/benchmarks.md from
    recorded counts.
    """
    from chalicelib.core.operations import load_all  # noqa: PLC0415  only this command needs it

    load_all()
    from infra.bench import recorded_tables  # noqa: PLC0415  as above
    from infra.local import (  # noqa: PLC0415  as above
        alarms_page,
        limits_page,
        reference,
        rows_page,
        surfaces,
        told_table,
    )

    click.echo(reference.write())
    click.echo(rows_page.write())
    click.echo(alarms_page.write())
    click.echo(told_table.write())
    click.echo(limits_page.write())
    click.echo(surfaces.write())
    click.echo(recorded_tables.write())


@main.command("new-noun")
@click.argument("name")
@click.option("--domain", default="catalog", help="Folder in chalicelib/domains.")
@click.option("--plural", default="", help="Plural in snake case, if it is irregular.")
def new_noun(name: str, *, domain: str, plural: str) -> None:
    """Write the skeleton of a noun, such as coupon or gift_card (make new-noun)."""
    from infra.local.new_noun import writing  # noqa: PLC0415  only this command needs it
    from infra.local.new_noun.noun import WrongNounError  # noqa: PLC0415  as above

    try:
        written = writing.write(name, plural=plural, domain=domain)
    except WrongNounError as error:
        raise click.ClickException(str(error)) from error
    for line in written.report():
        click.echo(line)


@main.command("sdk")
def sdk() -> None:
    """Write the sources of the TypeScript and the Python package into build/sdk (make sdk)."""
    from chalicelib.core.operations import load_all  # noqa: PLC0415  only this command needs it

    load_all()
    from infra.local import sdk as sources  # noqa: PLC0415  as above

    click.echo(sources.write())


for command in (admin, *commands.COMMANDS, *check_commands.COMMANDS, server_json):
    main.add_command(command)
main(prog_name="python -m infra")
