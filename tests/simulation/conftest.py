"""Options for the number of schedules, and fixtures of the simulation."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.simulation.scenarios import SCENARIOS
from tests.simulation.simulation import Simulation

QUICK, ALL = 6, 29
"""Schedules of each scenario in ``make test`` and with the slow tests: 78 and 377 in all."""


class Schedules:
    """The schedules of a run, and its figures."""

    def __init__(self, one: str | None, minutes: float | None) -> None:
        self._one, self._minutes = one, minutes
        self.seeds, self.found = Counter[str](), dict[str, int]()
        self.seams, self.faults = 0, Counter[str]()

    def seeds_of(self, name: str) -> Iterator[int]:
        """Yield the seeds of a scenario. With a time, each scenario has an equal share of the
        time."""
        if self._one is not None:
            scenario, _, seed = self._one.partition(":")
            yield from [int(seed)] if scenario == name else []
        elif self._minutes is None:
            yield from range(QUICK)
        else:
            end = monotonic() + self._minutes * 60 / len(SCENARIOS)
            for seed in count():
                if seed >= QUICK and monotonic() > end:
                    return
                yield seed

    def first_seed(self, usual: int) -> int:
        """Return the seed at which the search for a planted bug starts.

        ``usual`` is a seed that finds it. A run with a time counts the schedules from the first.
        """
        return usual if self._minutes is None else 0

    def note(self, name: str, simulation: Simulation) -> None:
        """Count a schedule that broke no promise."""
        self.seeds[name] += 1
        self.seams += simulation.schedule.seams
        self.faults += simulation.database.faults

    def write(self, path: Path) -> None:
        """Write the figures as JSON."""
        names = ("seeds", "found", "seams", "faults")
        figures = {name: getattr(self, name) for name in names}
        figures["promises"] = {name: scenario.PROMISE for name, scenario in SCENARIOS.items()}
        path.write_text(json.dumps(figures))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--schedule", help="run one schedule, such as booking:17")
    parser.addoption("--schedule-minutes", type=float, help="run as many schedules as fit")
    parser.addoption("--schedule-figures", type=Path, help="write the figures to this file")


@pytest.fixture(scope="session")
def schedules(request: pytest.FixtureRequest) -> Iterator[Schedules]:
    """The schedules to run."""

    def option(name: str) -> Any:
        # They are unknown to a run that does not name this folder.
        return request.config.getoption(name, None)

    session_schedules = Schedules(option("--schedule"), option("--schedule-minutes"))
    yield session_schedules
    if path := option("--schedule-figures"):
        session_schedules.write(path)
