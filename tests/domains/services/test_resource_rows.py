"""Tests of how rows of resources, hours and time off are read, and what raises a version."""

from datetime import date, timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.services.rules.open_windows import Interval, Rule, Schedule, parse
from chalicelib.domains.services.store import opening_hours, resources, services, time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.reading import Cost, fetch
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import span_of_days, zones

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

WORKSPACE = "w"
EVENT = AuditEvent.by_job("test")
HOUR = 3_600_000


def make_resource(name: str = "Anna", **attributes: Any) -> ResourceRow:
    values = {
        "type": "master",
        "timezone": "Europe/Moscow",
        "capacity": 1,
        "status": "active",
        "sort_order": 0,
    }
    row = RESOURCES.new(WORKSPACE, name=name, **values | attributes)
    run_unit(WORKSPACE, EVENT, lambda unit: unit.create(row))
    return row


def make_service(**attributes: Any) -> ServiceRow:
    values = {
        "duration_min": 60,
        "price": 0,
        "status": "active",
        "buffer_before_min": 0,
        "buffer_after_min": 5,
        "min_notice_min": 0,
        "horizon_days": 60,
        "require_payment": False,
        "sort_order": 0,
    }
    row = SERVICES.new(WORKSPACE, name="Haircut", **values | attributes)
    run_unit(WORKSPACE, EVENT, lambda unit: unit.create(row))
    return row


def largest_schedule() -> Schedule:
    """Return a schedule of 400 dates with 24 intervals each."""
    hours = [Interval(f"{hour:02}:00", f"{hour:02}:50") for hour in range(24)]
    first = date(2027, 1, 1)
    return parse([Rule(date=first + timedelta(days=d), intervals=hours) for d in range(400)])


def make_time_off(resource: ResourceRow | None = None, **when: Any) -> time_off.TimeOffRow:
    row = time_off.new_row(WORKSPACE, resource and resource.id, **when)
    run_unit(WORKSPACE, EVENT, lambda unit: time_off.stage_creation(unit, row, resource))
    return row


def version(resource: ResourceRow) -> int:
    row = RESOURCES.find(WORKSPACE, resource.id)
    assert row is not None
    return int(row.version)


def test_the_largest_schedule_is_stored_and_read_with_its_resource() -> None:
    first, second = make_resource(), make_resource("Boris")
    schedule = largest_schedule()
    run_unit(
        WORKSPACE, EVENT, lambda unit: opening_hours.save_schedule(unit, first, schedule) and None
    )
    gone = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
    pairs = opening_hours.find_with_schedules(WORKSPACE, [second.id, gone, first.id])
    assert [(row.id, opening_hours.schedule_of(hours)) for row, hours in pairs] == [
        (second.id, Schedule()),
        (first.id, schedule),
    ]


def test_fifty_resources_and_their_hours_are_read_in_one_request() -> None:
    ids = [make_resource(str(number)).id for number in range(50)]
    cost = Cost()
    keys = [RESOURCES.key(WORKSPACE, resource_id) for resource_id in ids]
    fetch([*keys, *[key._replace(pk=key.pk + "#OTHER") for key in keys]], cost)
    assert cost.round_trips == 1
    assert len(opening_hours.find_with_schedules(WORKSPACE, ids)) == 50


def test_every_change_of_availability_raises_the_version() -> None:
    resource = make_resource()
    old_version = version(resource)
    run_unit(
        WORKSPACE,
        EVENT,
        lambda unit: opening_hours.save_schedule(unit, resource, Schedule()) and None,
    )
    assert version(resource) == old_version + 1
    off = make_time_off(RESOURCES.find(WORKSPACE, resource.id), moments=Span(0, HOUR))
    assert version(resource) == old_version + 2
    now = RESOURCES.find(WORKSPACE, resource.id)
    run_unit(WORKSPACE, EVENT, lambda unit: time_off.stage_deletion(unit, off, now))
    assert version(resource) == old_version + 3


@pytest.mark.parametrize("existing_count", [0, 1])
def test_a_booking_conflicts_with_later_time_off_of_the_workspace(
    existing_count: int,
) -> None:
    for _ in range(existing_count):
        make_time_off(moments=Span(0, HOUR))
    resource = make_resource()

    def commit(lock: Any) -> None:
        unit = UnitOfWork(WORKSPACE)
        time_off.require_unchanged(unit, lock)
        resources.require_unchanged(unit, resource)
        unit.commit(EVENT)

    lock = time_off.read_lock(WORKSPACE)
    commit(lock)
    commit(lock)  # Bookings do not conflict with each other.
    make_time_off(moments=Span(0, HOUR))
    with pytest.raises(ConcurrentUpdateError):
        commit(lock)


def test_a_day_off_is_found_in_every_zone() -> None:
    """A date begins at UTC+14 and ends at UTC-12."""
    day = date(2027, 3, 14)
    row = make_time_off(days=(day, day))
    for zone in ("Pacific/Kiritimati", "UTC", "America/New_York", "Etc/GMT+12"):
        start, end = span_of_days(day, day, zone)
        for first, last in ((start, start), (end - 1, end + HOUR), (start - HOUR, end + HOUR)):
            (overlapping,) = time_off.overlapping(WORKSPACE, first, last)
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
    ahead = make_time_off(make_resource(), moments=Span(now, now + HOUR))
    later = make_time_off(moments=Span(now + 2 * HOUR, now + 3 * HOUR))
    both = time_off.overlapping(WORKSPACE, now - HOUR, now + 2 * HOUR)
    assert [period.id for period in both] == [ahead.id, later.id]
    assert [period.id for period in time_off.overlapping(WORKSPACE, 0, now - 2 * HOUR)] == [past.id]
    assert not time_off.overlapping(WORKSPACE, now + HOUR, now + 2 * HOUR - 1)
    assert both[0].applies_to(str(ahead.f1))
    assert not both[0].applies_to("another")
    assert both[1].applies_to("any")


def test_a_service_is_found_by_its_id_and_by_its_resources() -> None:
    anna, boris = make_resource(), make_resource("Boris")
    both = make_service(resource_ids=[anna.id, boris.id], slot_step_min=15)
    one = make_service(resource_ids=[boris.id], category_id="c")
    assert SERVICES.workspace_of(one.id) == WORKSPACE
    assert SERVICES.workspace_of("nobody") is None
    expected = {anna.id: [both.id], boris.id: [both.id, one.id]}
    bindings = services.Bindings(WORKSPACE)
    assert {id_: bindings.get_service_ids(id_) for id_ in (anna.id, boris.id)} == expected
    assert services.bound_to(WORKSPACE, anna.id) == [both.id]
    assert bindings.get_service_ids("nobody") == services.bound_to(WORKSPACE, "nobody") == []
    assert both.rules == (60, 15, 0, 5, 0, 60)
    assert one.rules.step_min == 60
