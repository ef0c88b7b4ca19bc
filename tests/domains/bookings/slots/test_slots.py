"""Tests of ranges, capacity, reasons and the next available time of slots."""

from datetime import UTC, date, datetime

import pytest

from chalicelib.domains.bookings.rules.slots import (
    Calendar,
    NoSlotReason,
    Query,
    ResourceSlots,
    busy_range,
    is_free,
    next_available,
    slots,
    union,
)
from chalicelib.lib.zoned_times import local_time, span_of_days
from tests.domains.bookings.slots.cases import (
    CASES,
    EVER,
    HOUR,
    LONG_AGO,
    booking,
    calendar,
    days,
    expand,
    hours,
    ms,
    span,
    starts,
    utc,
)


def test_an_hour_that_occurs_twice_is_shown_with_both_offsets() -> None:
    case = CASES["4 an hour that occurs twice"]
    resource_slots = slots(
        EVER._replace(**case.service), calendar(case.zone, *case.rules), days(case.zone, *case.days)
    )
    local = [
        local_time(datetime.fromtimestamp(start / 1000, UTC), case.zone).text[11:]
        for start in resource_slots.seats
    ]
    assert local == [
        "00:30:00-04:00",
        "01:00:00-04:00",
        "01:30:00-04:00",
        "01:00:00-05:00",
        "01:30:00-05:00",
        "02:00:00-05:00",
    ]


def test_both_ends_of_a_range_are_included() -> None:
    resource = calendar("Europe/Moscow", hours("09:00-18:00"))
    query = Query(ms("2027-02-05T07:00Z"), ms("2027-02-05T09:00Z"), ms(LONG_AGO))
    assert starts(EVER, resource, query) == expand("02-05T07:00 08:00 09:00")
    narrow = query._replace(first=query.first + 1, last=query.last - 1)
    assert starts(EVER, resource, narrow) == ["02-05T08:00"]


def test_round_the_clock_slots_do_not_depend_on_the_range() -> None:
    resource = calendar("Europe/Moscow", hours("00:00-24:00"))
    service = EVER._replace(step_min=100)
    all_starts = starts(service, resource, days("Europe/Moscow", "2027-02-01", "2027-02-14"))
    for day in range(1, 15):
        one = starts(service, resource, days("Europe/Moscow", f"2027-02-{day:02}"))
        assert one == [start for start in all_starts if start in one]
        assert len(one) == 15


def test_a_changed_zone_moves_hours_but_not_bookings() -> None:
    busy = [booking("2027-02-05T09:00+03:00", "2027-02-05T10:00+03:00")]
    moscow = calendar("Europe/Moscow", hours("09:00-12:00"), busy=busy)
    assert starts(EVER, moscow, days("Europe/Moscow", "2027-02-05")) == expand("02-05T07:00 08:00")
    berlin = moscow._replace(timezone="Europe/Berlin")
    berlin_starts = starts(EVER, berlin, days("Europe/Berlin", "2027-02-05"))
    assert berlin_starts == expand("02-05T08:00 09:00 10:00")


def test_a_closed_day_applies_in_each_resources_zone() -> None:
    day = date(2027, 2, 5)
    for zone in ("Pacific/Kiritimati", "Europe/Berlin", "Pacific/Pago_Pago"):
        off = [span_of_days(day, last=day, timezone=zone)]
        resource = calendar(zone, hours("23:00-01:00"), time_off=off)
        assert len(starts(EVER, resource, days(zone, "2027-02-04", "2027-02-06"))) == 4


def test_free_seats_follow_the_peak_of_overlapping_bookings() -> None:
    busy = [
        booking("2027-02-05T06:00Z", "2027-02-05T06:20Z"),
        booking("2027-02-05T06:10Z", "2027-02-05T06:40Z"),
        booking("2027-02-05T06:40Z", "2027-02-05T07:00Z"),
    ]
    resource = calendar("Europe/Moscow", hours("09:00-11:00"), capacity=5, busy=busy)
    resource_slots = slots(EVER, resource, days("Europe/Moscow", "2027-02-05"))
    assert list(resource_slots.seats.values()) == [3, 5]


def test_a_lowered_capacity_never_leaves_negative_seats() -> None:
    busy = [booking("2027-02-05T06:00Z", "2027-02-05T07:00Z")] * 3
    resource = calendar("Europe/Moscow", hours("09:00-10:00"), capacity=2, busy=busy)
    resource_slots = slots(EVER, resource, days("Europe/Moscow", "2027-02-05"))
    assert resource_slots == ResourceSlots({}, NoSlotReason.FULLY_BOOKED)


class TestIgnoringTheSchedule:
    RESOURCE = calendar(
        "Europe/Moscow",
        hours("09:00-12:00"),
        busy=[booking("2027-02-05T06:00Z", "2027-02-05T07:00Z", buffer_after_min=30)],
        time_off=[span("2027-02-01T00:00Z", "2027-02-28T00:00Z")],
    )

    @pytest.mark.parametrize(
        ("start", "free"),
        [
            ("2027-02-05T05:00Z", True),
            ("2027-02-05T05:01Z", False),
            ("2027-02-05T07:29Z", False),
            ("2027-02-05T07:30Z", True),
            ("2020-01-01T03:07Z", True),
            ("2037-01-01T03:07Z", True),
        ],
    )
    def test_only_bookings_block_a_time(self, start: str, free: bool) -> None:
        now = ms("2027-02-05T00:00Z")
        assert is_free(HOUR, self.RESOURCE, ms(start), now=now, ignore_schedule=True) == free
        assert not is_free(HOUR, self.RESOURCE, ms(start), now=now)

    def test_a_booking_does_not_block_itself(self) -> None:
        start, now = ms("2027-02-05T06:00Z"), ms("2027-02-05T00:00Z")
        calendar_without_b = self.RESOURCE.exclude_booking("b")
        assert is_free(HOUR, calendar_without_b, start, now=now, ignore_schedule=True)


class TestUnavailableReason:
    OPEN = calendar("Europe/Moscow", hours("09:00-18:00", on=["mon"]))
    NEVER = calendar("Europe/Moscow")
    SHORT = calendar("Europe/Moscow", hours("09:00-09:30"), hours(on="2027-02-02"))
    OFF = OPEN._replace(time_off=[span("2027-02-01T00:00Z", "2027-02-02T00:00Z")])
    FULL = OPEN._replace(busy=[booking("2027-02-01T00:00Z", "2027-02-02T00:00Z")])
    MONDAY = days("Europe/Moscow", "2027-02-01", now="2027-01-20T00:00Z")
    TUESDAY = days("Europe/Moscow", "2027-02-02", now="2027-01-20T00:00Z")

    @pytest.mark.parametrize(
        ("calendars", "query", "service", "reason"),
        [
            ([], MONDAY, {}, "no_resources"),
            ([NEVER], MONDAY, {}, "no_schedule"),
            ([NEVER], MONDAY, {"horizon_days": 1}, "no_schedule"),
            ([SHORT], MONDAY, {}, "does_not_fit"),
            ([SHORT], TUESDAY, {"horizon_days": 1}, "does_not_fit"),
            ([OPEN], MONDAY, {"duration_min": 541}, "does_not_fit"),
            ([OPEN], MONDAY, {"horizon_days": 11}, "outside_horizon"),
            ([OPEN], MONDAY, {"horizon_days": 12}, None),
            ([OPEN], TUESDAY, {}, "closed"),
            ([OFF], MONDAY, {}, "time_off"),
            ([OPEN], MONDAY, {"min_notice_min": 43_200}, "too_little_notice"),
            ([OPEN], MONDAY._replace(now=ms("2027-03-01T00:00Z")), {}, "too_little_notice"),
            ([FULL], MONDAY, {}, "fully_booked"),
            ([NEVER, OFF, SHORT], MONDAY, {}, "time_off"),
            ([FULL, OFF], MONDAY, {}, "fully_booked"),
            ([FULL, OPEN], MONDAY, {}, None),
        ],
    )
    def test_the_reason_is_the_stage_that_removed_the_last_start(
        self, calendars: list[Calendar], query: Query, service: dict[str, int], reason: str | None
    ) -> None:
        union_slots = union(HOUR._replace(**service), calendars, query)
        assert union_slots.reason == reason
        assert bool(union_slots.slots) == (reason is None)

    def test_a_service_may_span_touching_intervals(self) -> None:
        resource = calendar(
            "Europe/Moscow",
            hours("23:00-24:00", on=["tue"]),
            hours("00:00-01:00", on="2027-02-03"),
        )
        both = HOUR._replace(duration_min=120)
        assert union(both, [resource], self.MONDAY).reason == "closed"
        assert len(union(both, [resource], self.TUESDAY).slots) == 1
        more = HOUR._replace(duration_min=121)
        assert union(more, [resource], self.TUESDAY).reason == "does_not_fit"


class TestUnion:
    def test_a_union_lists_free_seats_by_resource_in_the_given_order(self) -> None:
        first = calendar("Europe/Moscow", hours("09:00-11:00"), capacity=2)
        second = calendar("Europe/Berlin", hours("08:00-10:00"))._replace(resource_id="another")
        union_slots = union(EVER, [second, first], days("Europe/Moscow", "2027-02-05"))
        assert [(utc(slot.start), dict(slot.seats)) for slot in union_slots.slots] == [
            ("02-05T06:00", {"master": 2}),
            ("02-05T07:00", {"another": 1, "master": 2}),
            ("02-05T08:00", {"another": 1}),
        ]
        assert list(union_slots.slots[1].seats) == ["another", "master"]
        assert {slot.end - slot.start for slot in union_slots.slots} == {3_600_000}


def test_slots_with_free_seats_have_no_reason() -> None:
    resource = calendar("Europe/Moscow", hours("09:00-10:00"))
    resource_slots = slots(EVER, resource, days("Europe/Moscow", "2027-02-05"))
    assert resource_slots == ResourceSlots({ms("2027-02-05T06:00Z"): 1}, None)


def test_a_service_that_fits_only_into_a_day_of_25_hours_may_be_fully_booked() -> None:
    long_booking = booking("2027-11-07T04:30Z", "2027-11-07T08:00Z")
    resource = calendar("America/New_York", hours("00:30-03:00"), busy=[long_booking])
    union_slots = union(
        EVER._replace(duration_min=180), [resource], days("America/New_York", "2027-11-07")
    )
    assert union_slots.reason is NoSlotReason.FULLY_BOOKED


class TestNextAvailable:
    def test_the_next_available_time_is_the_first_slot_of_any_resource(self) -> None:
        later = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        sooner = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-19"))
        query = days("Europe/Moscow", "2027-02-01", "2027-05-04")
        next_slot = next_available(EVER, [later, sooner], query)
        assert next_slot is not None
        assert utc(next_slot.start) == "04-19T06:00"
        assert next_available(EVER, [later], query._replace(last=next_slot.end)) is None

    def test_there_is_no_next_available_time_beyond_the_horizon(self) -> None:
        resource = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        query = days("Europe/Moscow", "2027-02-01", "2027-05-04", now="2027-02-01T00:00Z")
        assert next_available(HOUR, [resource], query) is None
        assert next_available(HOUR._replace(horizon_days=78), [resource], query) is not None

    def test_the_next_available_time_is_searched_at_both_ends(self) -> None:
        resource = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        start = ms("2027-04-20T06:00Z")
        query = Query(start, start, ms(LONG_AGO))
        next_slot = next_available(EVER, [resource], query)
        assert next_slot is not None
        assert next_slot.start == start
        assert next_available(EVER, [resource], query._replace(first=start + 1)) is None
        assert next_available(EVER, [resource], Query(start - 60_000, start - 1, query.now)) is None

    @pytest.mark.parametrize("offset", [-1, 0, 1])
    def test_a_slot_where_two_searched_weeks_meet_is_found(self, offset: int) -> None:
        resource = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        start = ms("2027-04-20T06:00Z")
        first = start - 7 * 24 * 3_600_000 - offset
        next_slot = next_available(EVER, [resource], Query(first, start + 1, ms(LONG_AGO)))
        assert next_slot is not None
        assert next_slot.start == start


def test_only_bookings_that_meet_the_buffered_range_are_read() -> None:
    service = HOUR._replace(buffer_before_min=10, buffer_after_min=20)
    busy_span = busy_range(service, ms("2027-02-01T10:00Z"), last=ms("2027-02-01T12:00Z"))
    assert busy_span == span("2027-02-01T09:50Z", "2027-02-01T13:20Z")
