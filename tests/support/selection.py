"""Leaves out tests that a run does not need."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import pytest

from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.scopes import Scope
from chalicelib.transports.console.routes import ROUTES


def left_out(config: pytest.Config, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that are left out while files are recorded, or by ``--operations``.

    A file is recorded by one test, and may be read by others.
    """
    records = config.getoption("--update-snapshots")
    others = others_than_chosen(config)
    for item in items:
        is_recording = "update_snapshots" in getattr(item, "fixturenames", ())
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        is_other = any(is_about_others(value, others) for value in parameters)
        if (records and not is_recording) or is_other:
            yield item


def others_than_chosen(config: pytest.Config) -> AbstractSet[str]:
    """Return the operations that ``--operations`` leaves out, and the scopes that only those need.

    Pages of the console without an operation have the name ``""``.
    """
    if not (chosen := config.getoption("--operations")):
        return frozenset()
    names = {*chosen.split(",")}
    scopes = {REGISTRY[name].scope for name in names}
    return {"", *(entry.name for entry in REGISTRY.entries()), *Scope} - names - scopes


def is_about_others(value: object, others: AbstractSet[str]) -> bool:
    """Whether a value of a test is an operation, a scope or a page that is left out."""
    match value:
        case Operation(name=name):
            return name in others
        case str() if value in ROUTES:
            page = ROUTES[value]
            return {page.shows, page.posts} <= others
        case str():
            return bool(value) and value in others
    return False
