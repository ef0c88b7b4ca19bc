"""Entry point of ``make bench``, which measures every section and writes docs/benchmarks.md.

Each section is measured in its own process with its own database. With the name of a section, the
command measures only that section and prints it.
"""

import subprocess
import sys
from pathlib import Path

import click

from chalicelib import VERSION
from infra.bench import (
    cold_start,
    floor,
    imports,
    jobs,
    lists,
    reports,
    rest,
    round_trips,
    tool_server,
    written_rows,
)

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
SECTIONS = {
    "tool-server": tool_server.section,
    "rest": rest.section,
    "cold-start": cold_start.section,
    "floor": floor.section,
    "round-trips": round_trips.section,
    "write-units": written_rows.section,
    "lists": lists.section,
    "imports": imports.section,
    "reports": reports.section,
    "jobs": jobs.section,
}
INTRODUCTION = f"""\
# Benchmarks

`make bench` writes this page. Each section is measured in one run on one machine. Machines differ,
so compare only ratios and counts. Measured with version {VERSION}.
"""


@click.command()
@click.argument("only", type=click.Choice(list(SECTIONS)), required=False)
def main(only: str | None) -> None:
    """Measure everything and write docs/benchmarks.md, or print the one section named ONLY."""
    if only:
        click.echo(SECTIONS[only]())
        return
    measure = [sys.executable, "-m", "infra.bench"]
    sections = (subprocess.check_output([*measure, section], text=True) for section in SECTIONS)
    page = "\n".join([INTRODUCTION, *sections])
    PAGE.write_text(page)
    click.echo(page)


main(prog_name="python -m infra.bench")
