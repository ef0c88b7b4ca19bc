"""The part of the proof with each failure of the database and gateways at each call site.

The attack is in ``tests/proof``, because it uses the examples and the database of the tests.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.proof.parts import KEPT, ROOT, Figures, Part

SEED = 20_261_125
"""Decides the order of the attacks, and so which ones a short run makes."""
_ATTACK = "tests/proof/attack_error_paths.py"
_SHOWN = 10
LOG = KEPT / "error-paths.log"
"""The output of the last attack."""


class PathWithoutEndError(Exception):
    """A request did not end as it should."""


def run(minutes: float) -> Figures:
    """Attack for some minutes.

    Raises:
        PathWithoutEndError: a request broke a promise. The message names the first ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        variables = {"SEED": str(SEED), "MINUTES": str(minutes), "FIGURES": str(file)}
        environment = os.environ | {f"PROOF_{name}": value for name, value in variables.items()}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:logging", "--timeout=0", _ATTACK]
        with LOG.open("w") as log:
            process = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False
            )
        if process.returncode:
            reasons = [line for line in LOG.read_text().splitlines() if line.startswith("E  ")]
            msg = "\n".join([*reasons[:_SHOWN], f"The whole output: {LOG}"])
            raise PathWithoutEndError(msg)
        figures: Figures = json.loads(file.read_text())
    if broken := figures["broken"]:
        first = "\n".join(f"{path}\n  {why}" for path, why in list(broken.items())[:_SHOWN])
        msg = f"{len(broken)} error paths, seed {SEED}:\n{first}"
        raise PathWithoutEndError(msg)
    return figures


PART = Part(
    name="error-paths",
    minutes=10,
    minutes_in_ci=1.5,
    run=run,
)
