"""The parts of the proof, and their figures."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chalicelib.core import clock

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "proof"
"""The folder for logs and other files of the parts."""

Figures = dict[str, Any]
"""Counts of a part by name: numbers, strings, and dictionaries and lists of these."""


class BrokenPromiseError(Exception):
    """A promise of the service that a part has found broken."""


@dataclass(frozen=True)
class Part:
    """A part of the proof.

    ``run`` attacks for at most the given number of minutes and returns figures. The folder ``KEPT``
    is there for its files. It fails, by an exception, if a promise is broken. ``minutes`` is the
    part's time in a full run, ``minutes_in_ci`` in ``make pr``; a part with 0 does not run there.
    """

    name: str
    minutes: float
    minutes_in_ci: float
    run: Callable[[float], Figures]

    def attack(self, minutes: float) -> str:
        """Run the part, and return its figures as indented lines."""
        KEPT.mkdir(parents=True, exist_ok=True)
        figures = self.run(minutes)
        head = f"{self.name}, {minutes:g} minutes, {clock.now():%Y-%m-%d}, Python"
        return "\n".join([f"{head} {platform.python_version()}", *_lines(figures, "  ")])


def _lines(figures: Figures | list[Any], indent: str) -> Iterator[str]:
    named = figures.items() if isinstance(figures, dict) else (("-", value) for value in figures)
    for name, value in named:
        if isinstance(value, dict | list):
            yield f"{indent}{name}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {value}"
