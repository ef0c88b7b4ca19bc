"""Fail if a cold start or a warm call takes more instructions than before (``make check-speed``).

Valgrind counts the instructions. They are divided by the instructions of a process that only
imports the libraries, in the same run. The number hardly depends on the machine or on its load.
``RATIOS`` has the committed ratios. A ratio that has fallen is lowered there by ``--update``. To
raise one, raise it in the file and name the file in a line of CHANGELOG.md, in the same commit.
"""

import json
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click

from infra.bench import cold_start

ROOT = cold_start.ROOT
RATIOS = ROOT / "infra" / "bench" / "ratios.json"
COLD = ("read", "write", "tools/call", "jobs", "chat")
WARM = ("read", "tools/call")
CALLS = 250
"""Warm calls of one process, for several garbage collections. The ratio is given for 1,000 calls.
"""
TOLERANCE = 0.02
"""Share by which a ratio may exceed the committed one, as another build of Python or of a library
may change it."""


@click.command()
@click.option("--update", is_flag=True, help="Lower the committed ratios to the measured ones.")
def main(update: bool) -> None:  # noqa: FBT001  click's
    """Compare the instructions of cold starts and warm calls with the committed ratios."""
    if shutil.which("valgrind") is None:
        click.echo("No valgrind was found: the instructions are not compared.")
        return
    committed = json.loads(RATIOS.read_text())
    measured = _measured()
    for name, ratio in measured.items():
        click.echo(f"{name}: {ratio:.3f} times the libraries, committed {committed.get(name)}")
    if update:
        lower = {name: min(ratio, committed.get(name, ratio)) for name, ratio in measured.items()}
        RATIOS.write_text(json.dumps(lower, indent=2) + "\n")
        return
    if faults := [*_risen(measured, committed=committed), *_raised(committed)]:
        raise click.ClickException("\n".join(faults))


def _measured() -> dict[str, float]:
    """Return the ratio of each cold start, and of 1,000 warm calls."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        project = cold_start.packaged(Path(folder) / "project")
        cost = partial(cold_start.first_answer_cost, project)
        baseline = pool.submit(cold_start.cost, Path(folder), "-c", cold_start.BASELINE)
        cold = {kind: pool.submit(cost, kind) for kind in COLD}
        repeated = {kind: pool.submit(cost, kind, 1 + CALLS) for kind in WARM}
        ratios = {f"first {kind}": task.result() for kind, task in cold.items()}
        for kind, task in repeated.items():
            ratios[f"1,000 warm {kind}"] = (task.result() - cold[kind].result()) * 1000 / CALLS
        return {name: round(ratio / baseline.result(), 3) for name, ratio in ratios.items()}


def _risen(measured: dict[str, float], *, committed: dict[str, float]) -> list[str]:
    return [
        f"{name}: expected at most {committed.get(name, 0)}, measured {ratio}. Make it cheaper, or "
        f"raise it in {RATIOS.relative_to(ROOT)} and say why in CHANGELOG.md."
        for name, ratio in measured.items()
        if ratio > committed.get(name, 0) * (1 + TOLERANCE)
    ]


def _raised(committed: dict[str, float]) -> list[str]:
    """Return the ratios that the last commit of the file raised without a line of the changelog."""
    name = str(RATIOS.relative_to(ROOT))
    revisions = _git("log", "-2", "--format=%H", "--", name).split()
    if len(revisions) < 2:  # noqa: PLR2004  the file is new, or the clone has no history
        return []
    former_ratios = json.loads(_git("show", f"{revisions[1]}:{name}"))
    raised = [key for key in committed if committed[key] > former_ratios.get(key, committed[key])]
    changelog_diff = _git("diff", f"{revisions[0]}~", "--", "CHANGELOG.md").splitlines()
    if not raised or any(line.startswith("+") and RATIOS.name in line for line in changelog_diff):
        return []
    return [f"{key} was raised, and no new line of CHANGELOG.md names {name}." for key in raised]


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(prog_name="python -m infra.bench.ratchet")
