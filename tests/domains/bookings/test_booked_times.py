"""Counts of upcoming bookings, and conflicting bookings, compared with a naive model."""

from datetime import timedelta

import pytest

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.bookings.store.bookings import BLOCKING, BookingRow
from tests.domains.bookings.conftest import BEGUN, WORKSPACE

pytestmark = pytest.mark.store
HOUR = 3_600_000


def test_upcoming_bookings_are_counted_and_conflicting_ones_named(rows: list[BookingRow]) -> None:
    now = BEGUN + timedelta(days=10)
    ahead = [
        row for row in rows if row.starts_at >= now and row.status in {"confirmed", BLOCKING[0]}
    ]
    with clock.using(lambda: now):
        for value in ("s1", "s2"):
            assert booked_times.future_count(WORKSPACE, service_id=value) == len(
                [row for row in ahead if row.service_id == value]
            )
        for value in ("r1", "none"):
            assert booked_times.future_count(WORKSPACE, resource_id=value) == len(
                [row for row in ahead if row.resource_id == value]
            )
    first, last = epoch_ms(now), epoch_ms(now) + 50 * HOUR
    for resource_ids in (None, ["r1"], ["r1", "r3", "none"]):
        matching = sorted(
            (epoch_ms(row.starts_at), row.id)
            for row in rows
            if row.blocks
            and (resource_ids is None or row.resource_id in resource_ids)
            and epoch_ms(row.starts_at) < last
            and epoch_ms(row.ends_at) > first
        )
        blocking = booked_times.blocking_between(
            WORKSPACE, resource_ids, first, last_ms=last, limit=2
        )
        assert blocking == ([row for _, row in matching][:2], len(matching))
        assert matching or resource_ids == ["r1"]
