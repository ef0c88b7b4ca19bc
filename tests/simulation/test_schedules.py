"""Promises hold under many schedules of threads, failures and crashes.

Each schedule is a seed. Options of pytest run more schedules, or only one (``conftest.py``).
"""

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.domains.identity.store import workspaces
from chalicelib.gateways import post
from tests.conftest import PASSWORD, Owner, call_operator
from tests.simulation.conftest import ALL, QUICK, Schedules
from tests.simulation.database import SimulatedDatabase
from tests.simulation.planted import BUGS
from tests.simulation.scenarios import SCENARIOS, Events, Scenario
from tests.simulation.simulation import START, Simulation, forget
from tests.support.effort import slow_but_for
from tests.support.restoring import moto_tables

OWNER = "owner@example.com"
SEED = 7
WITHIN = 500
"""Schedules within which each planted bug must be found."""
QUICKLY_FOUND = [
    *("a lost condition", "a retry without a marker", "a counter outside the transaction"),
]

World = Callable[[str], Scenario]


@pytest.fixture
def scenario_worlds() -> dict[str, tuple[Scenario, Any]]:
    """The worlds of a test. Their objects are removed with the database."""
    return {}


@pytest.fixture
def world(
    database: None,
    empty_database: Callable[[], None],
    scenario_worlds: dict[str, tuple[Scenario, Any]],
) -> Iterator[World]:
    """Return a function that restores the world of a scenario. Its ids are always the same."""

    def restore(name: str) -> Scenario:
        if name not in scenario_worlds:
            empty_database()
            scenario = _make(SCENARIOS[name])
            scenario_worlds[name] = (
                scenario,
                {n: _partitions(t.items) for n, t in moto_tables().items()},
            )
        scenario, rows = scenario_worlds[name]
        for table, saved in rows.items():
            items = moto_tables()[table].items
            items.clear()
            items.update(_partitions(saved))
        forget()
        return scenario

    # A function, because the world of the scenario is made later.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            post, "post", lambda *request: _world_of_kind(Events, scenario_worlds).receive(*request)
        )
        yield restore


def _partitions(items: dict[Any, Any]) -> dict[Any, Any]:
    """Return a copy of a table's partitions. The rows are shared, because they never change."""
    return {pk: dict(rows) for pk, rows in items.items()}


def _world_of_kind(kind: type[Scenario], worlds: dict[str, tuple[Scenario, Any]]) -> Any:
    return next(world for world, _ in worlds.values() if isinstance(world, kind))


def _make(kind: type[Scenario]) -> Scenario:
    entropy = random.Random(0)
    with pytest.MonkeyPatch.context() as patch, clock.using(lambda: START):
        patch.setattr(os, "urandom", entropy.randbytes)
        patch.setattr(random, "_urandom", entropy.randbytes)
        call_operator("create_account", email=OWNER, password=PASSWORD, role="admin")
        workspace = call_operator("create_workspace", owner=OWNER, name="Bakery", plan="business")
        owner = Owner(workspaces.get(workspace["workspaceId"]))
        return kind(owner, owner.api())


def run(world: World, name: str, seed: int, database: type[SimulatedDatabase]) -> Simulation:
    """Run one schedule of a scenario and check its promise."""
    scenario = world(name)
    simulation = Simulation(seed, database)
    try:
        simulation.run(scenario.begin)
        with clock.using(simulation.time):
            scenario.check()
    except BaseException as error:
        error.add_note(f"Repeat it alone: pytest tests/simulation --schedule {name}:{seed}")
        raise
    return simulation


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_schedule_breaks_a_promise(name: str, world: World, schedules: Schedules) -> None:
    for seed in schedules.seeds_of(name):
        simulation = run(world, name, seed, SimulatedDatabase)
        schedules.note(name, simulation)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_further_schedule_breaks_a_promise(name: str, world: World) -> None:
    for seed in range(QUICK, ALL):
        run(world, name, seed, SimulatedDatabase)


@pytest.mark.parametrize("name", slow_but_for(QUICKLY_FOUND, BUGS))
def test_a_planted_bug_is_found(
    name: str, world: World, monkeypatch: pytest.MonkeyPatch, schedules: Schedules
) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    for seed in range(schedules.first_seed(bug.seed), WITHIN):
        try:
            run(world, bug.scenario, seed, bug.database)
        except Exception:
            schedules.found[name] = seed + 1
            return
    pytest.fail(f"{name} was not found within {WITHIN} schedules")


@pytest.mark.parametrize("name", slow_but_for(["booking", "charging", "events"], SCENARIOS))
def test_a_seed_repeats_its_schedule(name: str, world: World) -> None:
    first, second = (run(world, name, SEED, SimulatedDatabase) for _ in range(2))
    assert first.schedule.trace == second.schedule.trace
