"""Rows of time off: which are read, and which bookings they end."""

from datetime import date
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.services.rules.open_windows import Schedule
from chalicelib.domains.services.store import opening_hours, resources, time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.time_off import CheckedTimeOff
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import span_of_days, zones
from tests.domains.services.rows import EVENT, WORKSPACE, store_resource

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]
HOUR = 3_600_000


def make_time_off(resource: ResourceRow | None = None, **when: Any) -> time_off.TimeOffRow:
    row = time_off.new_row(WORKSPACE, resource and resource.id, **when)
    run_unit(WORKSPACE, EVENT, lambda unit: time_off.stage_creation(unit, row, resource))
    return row


def version(resource: ResourceRow) -> int:
    row = RESOURCES.find(WORKSPACE, record_id=resource.id)
    assert row is not None
    return int(row.version)


def test_every_change_of_availability_raises_the_version() -> None:
    resource = store_resource()
    old_version = version(resource)
    run_unit(
        WORKSPACE,
        EVENT,
        lambda unit: opening_hours.save_schedule(unit, resource, Schedule()) and None,
    )
    assert version(resource) == old_version + 1
    off = make_time_off(RESOURCES.find(WORKSPACE, record_id=resource.id), moments=Span(0, HOUR))
    assert version(resource) == old_version + 2
    now = RESOURCES.find(WORKSPACE, record_id=resource.id)
    run_unit(WORKSPACE, EVENT, lambda unit: time_off.stage_deletion(unit, off, now))
    assert version(resource) == old_version + 3


@pytest.mark.parametrize("existing_count", [0, 1])
def test_a_booking_conflicts_with_later_time_off_of_the_workspace(
    existing_count: int,
) -> None:
    for _ in range(existing_count):
        make_time_off(moments=Span(0, HOUR))
    resource = store_resource()

    def commit(off: CheckedTimeOff) -> None:
        unit = UnitOfWork(WORKSPACE)
        off.require_unchanged(unit)
        resources.require_unchanged(unit, resource)
        unit.commit(EVENT)

    off = time_off.read_checked(UnitOfWork(WORKSPACE), Span(0, HOUR))
    commit(off)
    commit(off)  # Bookings do not conflict with each other.
    make_time_off(moments=Span(0, HOUR))
    with pytest.raises(ConcurrentUpdateError):
        commit(off)


def test_a_day_off_is_found_in_every_zone() -> None:
    """A date begins at UTC+14 and ends at UTC-12."""
    day = date(2027, 3, 14)
    row = make_time_off(days=(day, day))
    for zone in ("Pacific/Kiritimati", "UTC", "America/New_York", "Etc/GMT+12"):
        start, end = span_of_days(day, last=day, timezone=zone)
        for first, last in ((start, start), (end - 1, end + HOUR), (start - HOUR, end + HOUR)):
            (overlapping,) = time_off.overlapping(WORKSPACE, first, last_ms=last)
            assert overlapping.span(zone) == Span(start, end)
            assert overlapping == row.time_off


def test_a_date_lies_within_its_indexed_span_in_every_zone() -> None:
    for first, last in (
        (date(1971, 1, 1), date(1971, 1, 1)),
        (date(2027, 3, 13), date(2027, 11, 7)),
    ):
        off = time_off.TimeOff("id", None, None, first, last)
        for zone in zones():
            span = off.span(zone)
            assert (
                off.span_in_any_zone.start <= span.start < span.end <= off.span_in_any_zone.end
            ), zone


def test_time_off_that_has_ended_is_not_read() -> None:
    now = clock.epoch_ms(clock.now())
    past = make_time_off(moments=Span(now - 2 * HOUR, now - HOUR))
    ahead = make_time_off(store_resource(), moments=Span(now, now + HOUR))
    later = make_time_off(moments=Span(now + 2 * HOUR, now + 3 * HOUR))
    both = time_off.overlapping(WORKSPACE, now - HOUR, last_ms=now + 2 * HOUR)
    assert [period.id for period in both] == [ahead.id, later.id]
    assert [period.id for period in time_off.overlapping(WORKSPACE, 0, last_ms=now - 2 * HOUR)] == [
        past.id
    ]
    assert not time_off.overlapping(WORKSPACE, now + HOUR, last_ms=now + 2 * HOUR - 1)
    assert both[0].applies_to(str(ahead.f1))
    assert not both[0].applies_to("another")
    assert both[1].applies_to("any")
