"""A program that keeps a copy of a list by ``updatedSince`` has what the workspace has.

It does what ``docs/lists.md`` says. Records are written between its pages, in the millisecond in
which it begins, and late: a write takes its time before it is committed. Deletions are told apart.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from chalicelib.core import clock, deadline
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork
from tests.conftest import Api, Owner
from tests.support.effort import examples

OVERLAP = timedelta(minutes=1)
SIZE = 4
AT_ONCE = SIZE - 1
"""Records that are written at one instant. A page has more."""
START_TIME = datetime(2027, 1, 1, tzinfo=UTC)


class Copy:
    """What a program has read."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.records: dict[str, dict[str, Any]] = {}
        self.begun: datetime | None = None

    def sync(self) -> Iterator[None]:
        """Read what has changed since the sync before, and yield after each page."""
        begun = clock.now()
        since = iso(self.begun - OVERLAP if self.begun else START_TIME)
        while True:
            query = {"updatedSince": since, "sort": "updatedAt", "size": SIZE}
            products = self.api.get(f"/api/products/list?{urlencode(query)}")["products"]
            self.records |= {product["id"]: product for product in products}
            if len(products) < SIZE:
                break
            # Not the next page: a change in between would move records to another one.
            since = products[-1]["updatedAt"]
            yield
        self.begun = begun


class Machine(RuleBasedStateMachine):
    """Writes and syncs, until both are compared."""

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self.moment = START_TIME
        self._clock = clock.using(lambda: self.moment)
        self._clock.__enter__()
        self.workspace = owner.workspace.id
        self.copy = Copy(owner.api())
        self.running: Iterator[None] | None = None
        self.late: tuple[datetime, UnitOfWork, list[str]] | None = None
        self.live: set[str] = set()
        self.deleted: set[str] = set()

    def teardown(self) -> None:
        self._clock.__exit__(None, None, None)

    @initialize()
    def create_some(self) -> None:
        for _ in range(4):
            self.create(AT_ONCE)

    @rule(count=st.integers(1, AT_ONCE))
    def create(self, count: int) -> None:
        self._commit([self._new() for _ in range(count)])

    @rule(data=st.data(), count=st.integers(1, AT_ONCE))
    def update(self, data: st.DataObject, count: int) -> None:
        ids = (
            data.draw(st.sets(st.sampled_from(sorted(self.live)), max_size=count))
            if self.live
            else ()
        )
        self._commit([self._changed(record_id) for record_id in sorted(ids)])

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def change_stock(self, data: st.DataObject) -> None:
        record_id = data.draw(st.sampled_from(sorted(self.live)))
        self._tick()
        body = {"id": record_id, "stockDelta": 1}
        self.copy.api.post("/api/products/update", body)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def delete(self, data: st.DataObject, **_: int) -> None:
        record_id = data.draw(st.sampled_from(sorted(self.live)))
        self._tick()
        self.copy.api.post("/api/products/delete", {"id": record_id})
        self.live.remove(record_id)
        self.deleted.add(record_id)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def forget_an_update_time(self, data: st.DataObject) -> None:
        """The row is then as an earlier release has written it."""
        record_id = data.draw(st.sampled_from(sorted(self.live)))
        ContentRow(PRODUCTS.partition(self.workspace), record_id).update([ContentRow.y2.remove()])

    @precondition(lambda self: self.late is None)
    @rule(data=st.data())
    def begin_a_late_write(self, data: st.DataObject) -> None:
        self._tick()
        known = data.draw(st.none() | st.sampled_from(sorted(self.live))) if self.live else None
        product = self._changed(known) if known else self._new()
        self.late = (self.moment, *self._staged([product]))

    @precondition(lambda self: self.late is not None)
    @rule()
    def commit_the_late_write(self) -> None:
        assert self.late is not None
        _, unit, ids = self.late
        self.late = None
        try:
            unit.commit()
        except ConcurrentUpdateError:
            return  # Another write was first.
        self.live.update(ids)

    @rule(seconds=st.sampled_from([0, 0.001, 0.5, 20, 300]))
    def pass_time(self, seconds: float) -> None:
        if self.late is not None:
            latest = self.late[0] + timedelta(seconds=deadline.REQUEST_SECONDS)
            if self.moment + timedelta(seconds=seconds) > latest:
                self.commit_the_late_write()
        self.moment += timedelta(seconds=seconds)

    @rule(data=st.data())
    def sync_while_others_write(self, data: st.DataObject) -> None:
        """Some of the pages may be left for later."""
        if self.running is None:
            self.running = self.copy.sync()
        for _ in self.running:
            if not self.live or data.draw(st.integers(0, 5)) == 0:
                return
            data.draw(st.sampled_from([self.update, self.delete]))(data=data, count=1)
        self.running = None

    @rule()
    def compare(self) -> None:
        """Finish the sync and the late write, and sync once more."""
        if self.late is not None:
            self.commit_the_late_write()
        for _ in self.running or ():
            pass
        self.running = None
        for _ in self.copy.sync():
            pass
        everything = self.copy.api.get("/api/products/list?size=100")
        copied = {k: v for k, v in self.copy.records.items() if k not in self.deleted}
        assert copied == {product["id"]: product for product in everything["products"]}
        assert len(copied) == everything["total"]

    def _tick(self) -> None:
        # One instant has few records, so each further write has another one.
        self.moment += timedelta(milliseconds=1)

    def _new(self) -> ProductRow:
        return PRODUCTS.new(
            self.workspace, name="Loaf", price=1, stock=1, status="active", sort_order=0
        )

    def _changed(self, record_id: str) -> ProductRow:
        product = PRODUCTS.require(self.workspace, record_id=record_id)
        product.price = int(product.price) + 1
        return product

    def _staged(self, products: list[ProductRow]) -> tuple[UnitOfWork, list[str]]:
        unit = UnitOfWork(self.workspace, "test")
        for product in products:
            (unit.save if product.stored else unit.create)(product)
        return unit, [product.id for product in products]

    def _commit(self, products: list[ProductRow]) -> None:
        self._tick()
        unit, ids = self._staged(products)
        unit.commit()
        self.live.update(ids)


@pytest.mark.store
@pytest.mark.timeout(1800)
def test_a_copy_that_is_synchronised_by_changes_equals_the_list(
    new_owner: Callable[..., Owner],
) -> None:
    run_state_machine_as_test(
        lambda: Machine(new_owner()), settings=examples(60, stateful_step_count=25)
    )


def test_the_overlap_is_longer_than_a_call() -> None:
    """A write takes its time within a call, and is committed before the call ends."""
    assert OVERLAP.total_seconds() > deadline.REQUEST_SECONDS * 2
