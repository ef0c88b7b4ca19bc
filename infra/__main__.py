"""``python -m infra``: the local stand and the operator's commands."""

import sys

import click

from infra import local
from infra.admin import admin
from infra.dynamodb import SetupError
from infra.oneline import OneLine


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run and operate the service."""


@main.command()
def dev() -> None:
    """Run everything on one base URL, with a persistent database (make dev)."""
    try:
        local.dev()
    except SetupError as error:
        click.echo(f"make dev: {error}", err=True)
        sys.exit(1)


main.add_command(admin)
main(prog_name="python -m infra")
