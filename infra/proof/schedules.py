"""The part of the proof with threads, failures and crashes in an order that a seed chooses."""

import json
import subprocess
import sys

from infra.proof.parts import KEPT, ROOT, Figures, Part

ABOUT = """\
Only one thread runs at a time. A thread can be interrupted at a seam: a request to the database, a
pause, or a wait for a lock or another thread. At each seam, the seed chooses the next thread. A
request to the database may be throttled, fail, conflict, or lose its response. It may also be
carried out up to 20 seconds after the sender has given up. A read may return data that is one
second old, a part of a transaction, or only some of its keys. Processes end before or after a
request. Time, ids and random numbers are derived from the seed. At the end, jobs run without
faults, and the responses to clients are compared with the stored records.

`pytest tests/simulation --schedule booking:17` repeats one schedule."""


def run(minutes: float) -> Figures:
    """Run as many schedules as fit, and count the schedules until each planted bug is found."""
    figures = KEPT / "schedules-figures.json"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-o", "timeout=0"]
    options = [f"--schedule-minutes={minutes}", f"--schedule-figures={figures}"]
    subprocess.run([*tests, "tests/simulation", *options], cwd=ROOT, check=True)
    figures_read: Figures = json.loads(figures.read_text())
    return figures_read


def section(figures: Figures) -> str:
    """Return the schedules of each scenario, the faults, and the schedules that a bug needed."""
    seeds, found_faults, faults = figures["seeds"], figures["found"], figures["faults"]
    promises = [f"| {figures['promises'][name]} | {count:,} | 0 |" for name, count in seeds.items()]
    bugs = [f"| {name} | {count} |" for name, count in found_faults.items()]
    kinds = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in sorted(faults.items()))
    return "\n".join(
        [
            ABOUT,
            "",
            f"{sum(seeds.values()):,} schedules with {figures['seams']:,} seams. Faults: {kinds}.",
            "",
            "| guarantee | schedules | violations |",
            "|---|---:|---:|",
            *promises,
            "",
            "Planted bugs show that the schedules can find errors:",
            "",
            "| planted bug | first schedule that found it |",
            "|---|---:|",
            *bugs,
        ]
    )


PART = Part(
    name="schedules",
    title="Schedules of threads, faults and crashes",
    minutes=8,  # and two more for the planted bugs
    minutes_in_ci=0,  # ``make test`` runs 290 schedules anyway
    run=run,
    section=section,
)
