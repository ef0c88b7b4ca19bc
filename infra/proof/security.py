"""The part of the proof with hostile inputs against every entry of the service.

The inputs and what must not happen are tests of the suite. ``attacks.toml`` names them by kind.
This part runs and counts them. A kind whose tests are gone fails.
"""

import shlex
import time
import tomllib
from pathlib import Path

from infra.proof.parts import Figures, Part, count_tests

ATTACKS = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text())["attacks"]
PROMISE = """\
Hostile inputs change no data, reveal no data and reach no internal host.
[threat-model.md](threat-model.md) lists what is protected. A case is one input at one entry, or a
random search for such an input. This part fails if one case succeeds.
"""


def run(minutes: float) -> Figures:
    """Run the attacks one after another, as many as fit in the time.

    Raises:
        BrokenPromiseError: an attack succeeded, or its tests are gone.
    """
    end = time.monotonic() + minutes * 60
    return {
        "attacks": [
            {"kind": attack["kind"], "cases": count_tests(attack["tests"], end), "failures": 0}
            for attack in ATTACKS
            if time.monotonic() < end
        ]
    }


def section(figures: Figures) -> str:
    """Return the figures as Markdown."""
    cases = {figure["kind"]: figure["cases"] for figure in figures["attacks"]}
    ran = [attack for attack in ATTACKS if cases.get(attack["kind"])]
    rows = (
        f"| {kind['kind']} | {kind['inputs']} | {kind['entries']} | {cases[kind['kind']]} | 0 |"
        for kind in ran
    )
    head = ("| attack | inputs | entries | cases | succeeded |", "|---|---|---|---|---|")
    commands = (shlex.join(["python", "-m", "pytest", "-q", *attack["tests"]]) for attack in ran)
    return "\n".join([PROMISE, *head, *rows, "\n```", *commands, "```"])


PART = Part(
    name="security",
    title="Hostile inputs",
    minutes=8,
    minutes_in_ci=0,
    run=run,
    section=section,
)
