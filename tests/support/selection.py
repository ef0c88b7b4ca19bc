"""Leaves out tests that a run does not need."""

from collections.abc import Iterable, Iterator

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.scopes import Scope


def left_out(config: pytest.Config, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that are left out while files are recorded, or by ``--operations``.

    A file is recorded by one test, and may be read by others.
    """
    records = config.getoption("--update-snapshots")
    chosen = config.getoption("--operations")
    others = others_than(chosen.split(",")) if chosen else set()
    for item in items:
        is_recording = "update_snapshots" in getattr(item, "fixturenames", ())
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if (records and not is_recording) or {name_of(value) for value in parameters} & others:
            yield item


def others_than(operations: Iterable[str]) -> set[str]:
    """Return the names of all other operations, and the scopes that only those require."""
    names = {*operations}
    scopes = {REGISTRY[name].scope for name in names}
    return {entry.name for entry in REGISTRY.entries()} - names | {*Scope} - {*scopes}


def name_of(value: object) -> str:
    """Return the operation or the scope that a parameter of a test is or names."""
    return value.name if isinstance(value, Operation) else value if isinstance(value, str) else ""
