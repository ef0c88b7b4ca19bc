"""Each write of a record moves its time of change, with the copy that lists read."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.operations import REGISTRY, Operation
from chalicelib.core.principals import Audience
from chalicelib.engine.listing.index_entries import UPDATED_SLOT
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import ContentRow, Record
from tests.conftest import Api, all_rows
from tests.contract.conftest import World
from tests.contract.test_access import send
from tests.contract.test_writes import confirmed
from tests.factories.examples import Things, example, submit, talk

WRITES = [operation for operation in REGISTRY.select(Audience.KEY) if not operation.read_only]
NO_CHANGES = {
    "FILE": {"version"},  # raised by what shows the file; the file is the same
    "SITE": {"page_count", "last_sort_order", "version"},  # for writers of its pages
}
"""Attributes of a noun that change without a change of the record."""


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the key and the row of each record that a list may have."""
    nouns = {listing.noun for listing in LISTINGS.values()}
    for key, row in all_rows().items():
        parts = row["pk"]["S"].split("#")
        if parts[0] == "W" and len(parts) == 3 and parts[2] in nouns and "updated_at" in row:
            yield key, row


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    noun = after["pk"]["S"].split("#")[2]
    slots = ContentRow.get_attributes().keys() - {"pk", "sk"}
    names = {name for name in before.keys() | after if before.get(name) != after.get(name)}
    return names - slots - NO_CHANGES.get(noun, set())


def moment_of(row: dict[str, Any]) -> datetime:
    return Record.updated_at.deserialize(row["updated_at"]["S"])


@contextmanager
def a_second_later() -> Iterator[list[str]]:
    """Check each record that changes within the block, and add its key to the list."""
    before, keys = dict(records()), list[str]()
    now = max(map(moment_of, before.values())) + timedelta(seconds=1)
    with clock.using(lambda: now):
        yield keys
    keys += check(before, now)


def check(before: dict[str, Any], now: datetime) -> Iterator[str]:
    for key, row in records():
        former = before.get(key)
        if former is None or changed(former, row):
            assert moment_of(row) == now, (key, former and changed(former, row))
            assert int(row[UPDATED_SLOT]["N"]) == epoch_ms(now), key
            yield key
        else:
            assert row.get(UPDATED_SLOT) == former.get(UPDATED_SLOT)


@pytest.mark.parametrize("operation", WRITES, ids=lambda o: o.name)
def test_a_write_moves_the_time_of_what_it_changes(operation: Operation, world: World) -> None:
    arguments = example(operation, world.things) | confirmed(operation)
    with a_second_later():
        assert send(world.api, operation, arguments).status == 200


def test_what_visitors_do_moves_the_time_of_what_it_changes(world: World) -> None:
    things, api = world.things, world.api
    for act in (
        lambda: submit(things.form, name="Ada", email="new@example.com"),
        lambda: submit(things.form, name="Ada", email="new@example.com", message="Again"),
        lambda: talk(things.agent, "Do you sell rye?"),
        lambda: api.post("/api/products/update", {"id": things.product, "stockDelta": 2}),
        lambda: book(api, things),
    ):
        with a_second_later() as changed_keys:
            act()
        assert changed_keys


def book(api: Api, things: Things) -> None:
    booking = {
        "serviceId": things.service,
        "startAt": "2026-01-05T14:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
        "ignoreSchedule": True,
    }
    api.post("/api/bookings/create", booking)
