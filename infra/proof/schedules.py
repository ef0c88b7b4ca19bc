"""The part of the proof with threads, failures and crashes in an order that a seed chooses."""

import json
import subprocess
import sys

from infra.proof.parts import KEPT, ROOT, Figures, Part

SCHEDULES = "tests/simulation/test_schedules.py"


def run(minutes: float) -> Figures:
    """Run as many schedules as fit, and count the schedules until each planted bug is found."""
    figures = KEPT / "schedules-figures.json"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-o", "timeout=0"]
    # With all planted bugs, also those that the quick tests leave out.
    chosen = ["-m", "", "--deselect", f"{SCHEDULES}::test_no_further_schedule_breaks_a_promise"]
    options = [f"--schedule-minutes={minutes}", f"--schedule-figures={figures}"]
    subprocess.run([*tests, *chosen, "tests/simulation", *options], cwd=ROOT, check=True)
    figures_read: Figures = json.loads(figures.read_text())
    return figures_read


PART = Part(
    name="schedules",
    minutes=8,  # and two more for the planted bugs
    minutes_in_ci=0,  # ``make test`` runs 319 schedules anyway
    run=run,
)
