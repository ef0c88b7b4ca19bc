"""Leaves out tests that a run does not need."""

from collections.abc import Iterable, Iterator

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.scopes import Scope
from chalicelib.transports.console.routes import ROUTES

_OTHERS: set[str] = set()
"""The operations and scopes that this run leaves out. Pages without an operation have ``""``."""


def choose(operations: Iterable[str]) -> None:
    """Leave out each other operation, and the scopes that only those require."""
    names = {*operations}
    scopes = {REGISTRY[name].scope for name in names}
    every_name = {"", *(entry.name for entry in REGISTRY.entries()), *Scope}
    _OTHERS.update(every_name - names - scopes)


def left_out(config: pytest.Config, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that are left out while files are recorded, or by ``--operations``.

    A file is recorded by one test, and may be read by others.
    """
    records = config.getoption("--update-snapshots")
    for item in items:
        is_recording = "update_snapshots" in getattr(item, "fixturenames", ())
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if (records and not is_recording) or any(map(is_about_others, parameters)):
            yield item


def is_about_others(value: object) -> bool:
    """Whether a value of a test is an operation, a scope or a page that is left out."""
    match value:
        case Operation(name=name):
            return name in _OTHERS
        case str() if value in ROUTES:
            page = ROUTES[value]
            return {page.shows, page.posts} <= _OTHERS
        case str():
            return bool(value) and value in _OTHERS
    return False
