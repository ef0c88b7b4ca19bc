"""Entry point of ``make proof``.

Each part runs in a process of its own, and prints its figures at its end. The soak runs in
parallel, because it lasts as long as all other parts together. With names of parts, only these are
run. With ``--ci``, parts take their share of a few minutes.
"""

import subprocess
import sys

import click

from infra.proof import error_paths, mutations, schedules, security, soak
from infra.proof.parts import Part

_IN_ORDER: tuple[Part, ...] = (
    schedules.PART,
    error_paths.PART,
    soak.PART,
    mutations.PART,
    security.PART,
)
PARTS = {part.name: part for part in _IN_ORDER}
BESIDE = frozenset({"soak"})
"""Parts that run in parallel with the others."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--ci", is_flag=True, help="The form of make pr: a few minutes in all.")
@click.option("--minutes", type=float, help="Time of each named part, instead of its own.")
@click.option("--inside", is_flag=True, hidden=True)
def main(*, names: tuple[str, ...], ci: bool, minutes: float | None, inside: bool) -> None:
    """Attack every promise, or those of the parts in NAMES, and print what was counted."""
    chosen_parts = [PARTS[name] for name in names or PARTS]
    times = {part.name: minutes or _minutes(part, ci=ci) for part in chosen_parts}
    if inside:
        for part in chosen_parts:
            click.echo(part.attack(times[part.name]))
        return
    attack_parts = [part for part in chosen_parts if times[part.name]]
    beside = {part.name: _start(part, times) for part in attack_parts if part.name in BESIDE}
    others = (part for part in attack_parts if part.name not in BESIDE)
    failed = [part.name for part in others if _start(part, times).wait()]
    failed += [name for name, process in beside.items() if process.wait()]
    if failed:
        msg = f"These parts found a broken promise: {', '.join(failed)}"
        raise click.ClickException(msg)


def _minutes(part: Part, *, ci: bool) -> float:
    return part.minutes_in_ci if ci else part.minutes


def _start(part: Part, times: dict[str, float]) -> "subprocess.Popen[bytes]":
    """Start a part in a process of its own."""
    words = ["-m", "infra.proof", part.name, "--inside", "--minutes", str(times[part.name])]
    return subprocess.Popen([sys.executable, *words])


main(prog_name="python -m infra.proof")
