"""``make bench``: measure every section and write docs/benchmarks.md, or print one section."""

from pathlib import Path

import click

from infra.bench import chat, cold_start, lists, slots, tool_server

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
SECTIONS = {
    "tool-server": tool_server.section,
    "cold-start": cold_start.section,
    "lists": lists.section,
    "slots": slots.section,
    "chat": chat.section,
}
INTRODUCTION = """\
# Benchmarks

Written by `make bench`, each section in one run on one machine. Machines differ, so only ratios and
counts are worth comparing.
"""


@click.command()
@click.argument("only", type=click.Choice(list(SECTIONS)), required=False)
def main(only: str | None) -> None:
    """Measure everything and write docs/benchmarks.md; with ONLY, print one section."""
    if only:
        click.echo(SECTIONS[only]())
        return
    page = "\n".join([INTRODUCTION, *(measure() for measure in SECTIONS.values())])
    PAGE.write_text(page)
    click.echo(page)


main(prog_name="python -m infra.bench")
