"""The part of the proof with hostile inputs against every entry of the service.

The inputs and what must not happen are tests of the suite. ``attacks.toml`` names them by kind.
This part runs and counts them. A kind whose tests are gone fails.
"""

import subprocess
import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from infra.proof.parts import ROOT, BrokenPromiseError, Figures, Part

ATTACKS = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text())["attacks"]


def run(minutes: float) -> Figures:
    """Run the attacks one after another, as many as fit, and count the cases of each kind.

    Raises:
        BrokenPromiseError: an attack succeeded, or its tests are gone.
    """
    end = time.monotonic() + minutes * 60
    return {
        attack["kind"]: _count_tests(attack["tests"], end)
        for attack in ATTACKS
        if time.monotonic() < end
    }


def _count_tests(words: list[str], end: float) -> int:
    """Run tests until a time of the monotonic clock. Return how many ran, or 0 if it was up.

    Raises:
        BrokenPromiseError: a test failed, or was not found.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", *words, f"--junitxml={report}"]
        seconds_left = max(1.0, end - time.monotonic())
        try:
            subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=seconds_left, check=True
            )
        except subprocess.TimeoutExpired:
            return 0
        except subprocess.CalledProcessError as error:
            raise BrokenPromiseError(error.stdout + error.stderr) from None
        suite = ET.parse(report).getroot()[0]  # noqa: S314  pytest has written it  # nosec B314
    return int(suite.get("tests", 0))


PART = Part(
    name="security",
    minutes=8,
    minutes_in_ci=0,
    run=run,
)
