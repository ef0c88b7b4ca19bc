"""The parts of the proof, and the figures that they keep."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree as ET

from chalicelib.core import clock

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "proof"
"""The folder for figures of the last runs, and for other files of the parts."""

Figures = dict[str, Any]
"""Measurements of a part, as JSON."""


class BrokenPromiseError(Exception):
    """A promise of the service that a part has found broken."""


def count_tests(words: list[str], end: float) -> int:
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


@dataclass(frozen=True)
class Part:
    """A part of the proof.

    ``run`` attacks for at most the given number of minutes and returns figures. The folder ``KEPT``
    is there for its files. It fails, by an exception, if a promise is broken. ``section`` turns the
    figures into Markdown under the title.
    ``minutes`` is the part's time in a full run, ``minutes_in_ci`` in ``make pr``; a part with 0
    does not run there.
    """

    name: str
    title: str
    minutes: float
    minutes_in_ci: float
    run: Callable[[float], Figures]
    section: Callable[[Figures], str]

    def attack(self, minutes: float) -> None:
        """Run the part and keep its figures."""
        KEPT.mkdir(parents=True, exist_ok=True)
        figures = self.run(minutes)
        attack_record = {
            "at": clock.iso(clock.now()),
            "python": platform.python_version(),
            "minutes": minutes,
            "figures": figures,
        }
        self._file.write_text(json.dumps(attack_record, indent=1, ensure_ascii=False))

    @property
    def _file(self) -> Path:
        return KEPT / f"{self.name}.json"

    def report(self) -> str:
        """Return the Markdown of the last run, or "" if the part never ran."""
        if not self._file.exists():
            return ""
        attack_record = json.loads(self._file.read_text())
        command = f"make proof ARGS='{self.name} --minutes {attack_record['minutes']:g}'"
        day, python = attack_record["at"][:10], attack_record["python"]
        head = f"## {self.title}\n\n`{command}` · {day}, Python {python}\n"
        return f"{head}\n{self.section(attack_record['figures']).strip()}\n"
