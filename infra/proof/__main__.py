"""Entry point of ``make proof``, which attacks every promise and writes docs/proof.md.

Each part runs in a process of its own. The soak runs in parallel, because it lasts as long as all
other parts together. With names of parts, only these are run and printed. With ``--ci``, parts take
their share of ten minutes, and the page is not written.
"""

import subprocess
import sys

import click

from infra.proof import (
    emulators,
    error_paths,
    mutations,
    schedules,
    security,
    soak,
    strangers,
    upgrade,
)
from infra.proof.parts import ROOT, Part

_IN_ORDER: tuple[Part, ...] = (
    schedules.PART,
    error_paths.PART,
    soak.PART,
    mutations.PART,
    emulators.PART,
    strangers.PART,
    security.PART,
    upgrade.PART,
)
PARTS = {part.name: part for part in _IN_ORDER}
BESIDE = frozenset({"soak"})
"""Parts that run in parallel with the others."""
PAGE = ROOT / "docs" / "proof.md"
INTRODUCTION = """\
# Proof

This page shows how the guarantees of the service are tested beyond the test suite. `make proof`
writes it. Each part states a guarantee, the attack, the number of attempts, and the command that
repeats the attack. A part that was not run is not on the page. Compare only counts and ratios,
because machines differ in speed.
"""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--ci", is_flag=True, help="The form of make pr: ten minutes in all.")
@click.option("--minutes", type=float, help="Time of each named part, instead of its own.")
@click.option("--page", is_flag=True, help="Run nothing: write the page of the last runs.")
@click.option("--inside", is_flag=True, hidden=True)
def main(
    *, names: tuple[str, ...], ci: bool, minutes: float | None, page: bool, inside: bool
) -> None:
    """Attack every promise and write docs/proof.md, or print only the parts in NAMES."""
    if page:
        PAGE.write_text(_page())
        return
    chosen_parts = [PARTS[name] for name in names or PARTS]
    times = {part.name: minutes or _minutes(part, ci=ci) for part in chosen_parts}
    if inside:
        for part in chosen_parts:
            part.attack(times[part.name])
        return
    attack_parts = [part for part in chosen_parts if times[part.name]]
    beside = {part.name: _start(part, times) for part in attack_parts if part.name in BESIDE}
    others = (part for part in attack_parts if part.name not in BESIDE)
    failed = [part.name for part in others if _start(part, times).wait()]
    failed += [name for name, process in beside.items() if process.wait()]
    if failed:
        msg = f"These parts found a broken promise: {', '.join(failed)}"
        raise click.ClickException(msg)
    if names or ci:
        click.echo("\n".join(part.report() for part in attack_parts))
    else:
        PAGE.write_text(_page())
        click.echo(_page())


def _page() -> str:
    """Return the page, without the parts that were never run here."""
    return "\n".join([INTRODUCTION, *filter(None, (part.report() for part in PARTS.values()))])


def _minutes(part: Part, *, ci: bool) -> float:
    return part.minutes_in_ci if ci else part.minutes


def _start(part: Part, times: dict[str, float]) -> "subprocess.Popen[bytes]":
    """Start a part in a process of its own."""
    words = ["-m", "infra.proof", part.name, "--inside", "--minutes", str(times[part.name])]
    return subprocess.Popen([sys.executable, *words])


main(prog_name="python -m infra.proof")
