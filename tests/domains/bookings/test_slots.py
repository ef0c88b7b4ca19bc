"""Slot calculation: typical cases, and cases near their limits."""

from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import pytest

from chalicelib.core import clock
from chalicelib.domains.bookings.rules.schedule import Interval, Rule, parse
from chalicelib.domains.bookings.rules.slots import (
    BusyEntry,
    Calendar,
    Found,
    NoSlotReason,
    Query,
    ServiceRules,
    busy_range,
    is_free,
    next_available,
    slots,
    union,
)
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import local_time, span_of_days

HOUR = ServiceRules(duration_min=60, step_min=60)
LONG_AGO = "2026-01-01T00:00Z"
EVER = HOUR._replace(horizon_days=1000)
DAILY = [0, 1, 2, 3, 4, 5, 6]


def ms(text: str) -> int:
    return clock.epoch_ms(datetime.fromisoformat(text))


def utc(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment / 1000, UTC):%m-%dT%H:%M}"


def hours(*intervals: str, on: Any = DAILY) -> Rule:
    """Opening hours such as ``09:00-12:00`` on weekdays or a date."""
    spans = [Interval(*each.split("-")) for each in intervals]
    if isinstance(on, str):
        return Rule(date=date.fromisoformat(on), intervals=spans)
    return Rule(weekdays=on, intervals=spans)


def booking(start: str, end: str, **more: Any) -> BusyEntry:
    return BusyEntry("b", ms(start), ms(end), **more)


def span(start: str, end: str) -> Span:
    return Span(ms(start), ms(end))


def calendar(zone: str, *rules: Rule, **more: Any) -> Calendar:
    return Calendar("master", zone, parse(rules), **more)


def days(zone: str, first: str, last: str = "", now: str = LONG_AGO) -> Query:
    """Whole local dates, as in a request."""
    found = span_of_days(date.fromisoformat(first), date.fromisoformat(last or first), zone)
    return Query(found.start, found.end - 1, ms(now))


def starts(service: ServiceRules, resource: Calendar, query: Query) -> list[str]:
    return [utc(start) for start in slots(service, resource, query).seats]


class Case(NamedTuple):
    """A resource's hours, bookings and time off, and the expected starts in UTC."""

    zone: str
    rules: list[Rule]
    days: tuple[str, ...]
    expected: str
    service: dict[str, int] = {}  # noqa: RUF012  never changed
    more: dict[str, Any] = {}  # noqa: RUF012
    now: str = LONG_AGO


CASES = {
    "1 a morning before clocks go forward": Case(
        "America/New_York", [hours("09:00-12:00")], ("2027-03-13",), "03-13T14:00 15:00 16:00"
    ),
    "1 the morning after clocks went forward": Case(
        "America/New_York", [hours("09:00-12:00")], ("2027-03-14",), "03-14T13:00 14:00 15:00"
    ),
    "1 the morning after clocks went back": Case(
        "America/New_York", [hours("09:00-12:00")], ("2027-11-07",), "11-07T14:00 15:00 16:00"
    ),
    "2 three hours of which one is skipped": Case(
        "Europe/Berlin", [hours("01:00-04:00")], ("2027-03-28",), "03-28T00:00 01:00"
    ),
    "3 hours that start in the skipped one": Case(
        "Europe/Berlin", [hours("02:30-04:30")], ("2027-03-28",), "03-28T01:30"
    ),
    "3 hours that are skipped wholly": Case(
        "Europe/Berlin", [hours("02:00-03:00")], ("2027-03-28",), ""
    ),
    "4 an hour that occurs twice": Case(
        "America/New_York",
        [hours("00:30-03:00")],
        ("2027-11-07",),
        "11-07T04:30 05:00 05:30 06:00 06:30 07:00",
        {"step_min": 30},
    ),
    "6 hours of two days that touch at midnight": Case(
        "Europe/Moscow",
        [hours("22:00-24:00", on=["fri"]), hours("00:00-02:00", on=["sat"])],
        ("2027-02-05", "2027-02-06"),
        "02-05T19:00 19:30 20:00 20:30 21:00 21:30",
        {"duration_min": 90, "step_min": 30},
    ),
    "7 a closed date keeps what yesterday left open": Case(
        "Europe/Moscow",
        [hours("22:00-02:00", on=["fri"]), hours("09:00-18:00", on=[6]), hours(on="2027-02-06")],
        ("2027-02-05", "2027-02-06"),
        "02-05T19:00 20:00 21:00 22:00",
    ),
    "8 back to back": Case(
        "Europe/Moscow",
        [hours("09:00-13:00")],
        ("2027-02-05",),
        "02-05T06:00 08:00 09:00",
        more={"busy": [booking("2027-02-05T10:00+03:00", "2027-02-05T11:00+03:00")]},
    ),
    "9 buffers of both stack": Case(
        "Europe/Moscow",
        [hours("09:00-14:00")],
        ("2027-02-05",),
        "02-05T06:00 06:15 08:30 08:45 09:00 09:15 09:30 09:45 10:00 10:15 10:30",
        {"duration_min": 30, "step_min": 15, "buffer_before_min": 10, "buffer_after_min": 5},
        {
            "busy": [
                booking("2027-02-05T10:00+03:00", "2027-02-05T11:00+03:00", buffer_after_min=15)
            ]
        },
    ),
    "11 a day's notice is absolute time": Case(
        "America/New_York",
        [hours("09:00-12:00")],
        ("2027-03-14",),
        "03-14T15:00",
        {"min_notice_min": 1440},
        now="2027-03-13T15:00Z",
    ),
    "12 a booking from yesterday": Case(
        "Europe/Berlin",
        [hours("00:00-03:00")],
        ("2027-02-08",),
        "02-08T00:00 01:00",
        more={"busy": [booking("2027-02-07T23:30+01:00", "2027-02-08T01:00+01:00")]},
    ),
    "12 a booking into tomorrow": Case(
        "Europe/Berlin",
        [hours("23:00-24:00")],
        ("2027-02-07",),
        "",
        more={"busy": [booking("2027-02-07T23:00+01:00", "2027-02-08T01:00+01:00")]},
    ),
    "13 time off moves no grid": Case(
        "Europe/Moscow",
        [hours("09:00-12:00")],
        ("2027-02-05",),
        "02-05T07:00 08:00",
        more={"time_off": [span("2027-02-05T09:30+03:00", "2027-02-05T10:00+03:00")]},
    ),
    "14 the last one ends exactly at closing": Case(
        "Europe/Moscow",
        [hours("09:00-10:50")],
        ("2027-02-05",),
        "02-05T06:00 06:30 07:00",
        {"duration_min": 50, "step_min": 30},
    ),
    "a day of 23 hours, always open": Case(
        "Europe/Berlin",
        [hours("00:00-24:00")],
        ("2027-03-28",),
        "03-27T23:00 03-28T03:00 07:00 11:00 15:00 19:00",
        {"step_min": 240},
    ),
    "a day of 25 hours, always open": Case(
        "Europe/Berlin",
        [hours("00:00-24:00")],
        ("2027-10-31",),
        "10-30T22:00 10-31T02:00 06:00 10:00 14:00 18:00 22:00",
        {"step_min": 240},
    ),
    "a whole day's service on days of 24, 23 and 24 hours": Case(
        "Europe/Berlin",
        [hours("00:00-24:00")],
        ("2027-03-27", "2027-03-29"),
        "03-26T23:00 03-27T23:00 03-28T22:00",
        {"duration_min": 1440, "step_min": 1440},
    ),
    "clocks that go back by half an hour": Case(
        "Australia/Lord_Howe",
        [hours("01:00-03:00")],
        ("2027-04-04",),
        "04-03T14:00 14:30 15:00 15:30",
        {"step_min": 30},
    ),
    "clocks that go forward by half an hour": Case(
        "Australia/Lord_Howe",
        [hours("01:00-03:30")],
        ("2027-10-03",),
        "10-02T14:30 15:00 15:30",
        {"step_min": 30},
    ),
    "a zone of half hours": Case(
        "Asia/Kolkata", [hours("09:00-11:00")], ("2027-02-05",), "02-05T03:30 04:30"
    ),
    "a zone of half hours after clocks went forward": Case(
        "America/St_Johns", [hours("09:00-11:00")], ("2027-03-14",), "03-14T11:30 12:30"
    ),
    "a midnight that is skipped": Case(
        "Africa/Cairo", [hours("00:00-02:00")], ("2027-04-30",), "04-29T22:00"
    ),
    "a midnight that occurs twice": Case(
        "America/Havana", [hours("00:00-02:00")], ("2027-11-07",), "11-07T04:00 05:00 06:00"
    ),
    "touching hours keep both grids": Case(
        "Europe/Moscow",
        [hours("09:00-10:30", "10:30-12:00")],
        ("2027-02-05",),
        "02-05T06:00 07:00 07:30",
    ),
    "overlapping hours are one": Case(
        "Europe/Moscow",
        [hours("09:00-10:30", "10:15-12:00")],
        ("2027-02-05",),
        "02-05T06:00 07:00 08:00",
    ),
    "a grid ends before its own hours do, even where others go on": Case(
        "Europe/Moscow",
        [hours("22:00-01:30", on=["fri"]), hours("01:00-04:00", on=["sat"])],
        ("2027-02-05", "2027-02-06"),
        "02-05T19:00 22:00",
        {"step_min": 210},
    ),
    "one seat of two is left": Case(
        "Europe/Moscow",
        [hours("09:00-11:00")],
        ("2027-02-05",),
        "02-05T06:00 07:00",
        more={
            "capacity": 2,
            "busy": [
                # Two bookings overlap the first, but never both at once within a slot.
                booking("2027-02-05T09:00+03:00", "2027-02-05T09:30+03:00"),
                booking("2027-02-05T09:30+03:00", "2027-02-05T10:00+03:00"),
            ],
        },
    ),
    "all seats are taken for a minute": Case(
        "Europe/Moscow",
        [hours("09:00-11:00")],
        ("2027-02-05",),
        "02-05T07:00",
        more={
            "capacity": 2,
            "busy": [
                booking("2027-02-05T09:00+03:00", "2027-02-05T09:31+03:00"),
                booking("2027-02-05T09:30+03:00", "2027-02-05T10:00+03:00"),
            ],
        },
    ),
    "buffers leave the opening hours and meet time off": Case(
        "Europe/Moscow",
        [hours("09:00-10:00")],
        ("2027-02-05",),
        "02-05T06:00",
        {"buffer_before_min": 60, "buffer_after_min": 480},
        {
            "time_off": [
                span("2027-02-05T08:00+03:00", "2027-02-05T09:00+03:00"),
                span("2027-02-05T10:00+03:00", "2027-02-05T12:00+03:00"),
            ]
        },
    ),
    "a buffer before that touches a booking": Case(
        "Europe/Moscow",
        [hours("09:00-12:00")],
        ("2027-02-05",),
        "02-05T07:00 08:00",
        {"buffer_before_min": 30},
        {"busy": [booking("2027-02-05T08:00+03:00", "2027-02-05T09:30+03:00")]},
    ),
    "yesterday's late booking with an hour behind it": Case(
        "Europe/Moscow",
        [hours("00:15-03:00")],
        ("2027-02-06",),
        "02-05T22:15",
        more={
            "busy": [
                booking("2027-02-05T23:30+03:00", "2027-02-06T00:00+03:00", buffer_after_min=60)
            ]
        },
    ),
    "a hold that lapses this very moment": Case(
        "Europe/Moscow",
        [hours("09:00-11:00")],
        ("2027-02-05",),
        "02-05T06:00",
        more={
            "busy": [
                booking("2027-02-05T06:00Z", "2027-02-05T07:00Z", until=ms("2027-02-05T05:30Z")),
                booking(
                    "2027-02-05T07:00Z", "2027-02-05T08:00Z", until=ms("2027-02-05T05:30:00.001Z")
                ),
            ]
        },
        now="2027-02-05T05:30Z",
    ),
    "a moment too late": Case(
        "Europe/Moscow",
        [hours("09:00-11:00")],
        ("2027-02-05",),
        "02-05T07:00",
        now="2027-02-05T06:00:00.001Z",
    ),
    "the last day of the horizon, in the zone of the resource": Case(
        "Asia/Tokyo",
        [hours("00:00-01:00", "23:00-24:00")],
        ("2027-02-05", "2027-02-08"),
        "02-05T14:00 15:00 02-06T14:00",
        {"horizon_days": 1},
        now="2027-02-05T14:00Z",
    ),
}


def in_full(text: str) -> list[str]:
    """Return the times of ``02-05T06:00 07:00`` in full: each has the date of the one before it."""
    found: list[str] = []
    for word in text.split():
        found.append(word if "T" in word else f"{found[-1][:5]}T{word}")
    return found


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_slots_of_a_range_of_days(case: Case) -> None:
    service = EVER._replace(**case.service)
    resource = calendar(case.zone, *case.rules, **case.more)
    query = days(case.zone, *case.days, now=case.now)
    assert starts(service, resource, query) == in_full(case.expected)
    for start in range(query.first, query.last, 15 * 60_000):
        listed = utc(start) in in_full(case.expected)
        assert is_free(service, resource, start, query.now) == listed


def test_an_hour_that_occurs_twice_is_shown_with_both_offsets() -> None:
    case = CASES["4 an hour that occurs twice"]
    found = slots(
        EVER._replace(**case.service), calendar(case.zone, *case.rules), days(case.zone, *case.days)
    )
    local = [
        local_time(datetime.fromtimestamp(each / 1000, UTC), case.zone).text[11:]
        for each in found.seats
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
    assert starts(EVER, resource, query) == in_full("02-05T07:00 08:00 09:00")
    narrow = query._replace(first=query.first + 1, last=query.last - 1)
    assert starts(EVER, resource, narrow) == ["02-05T08:00"]


def test_the_slots_of_a_service_open_day_and_night_do_not_depend_on_the_range() -> None:
    resource = calendar("Europe/Moscow", hours("00:00-24:00"))
    service = EVER._replace(step_min=100)
    whole = starts(service, resource, days("Europe/Moscow", "2027-02-01", "2027-02-14"))
    for day in range(1, 15):
        one = starts(service, resource, days("Europe/Moscow", f"2027-02-{day:02}"))
        assert one == [start for start in whole if start in one]
        assert len(one) == 15


def test_a_changed_zone_moves_hours_but_not_bookings() -> None:
    taken = [booking("2027-02-05T09:00+03:00", "2027-02-05T10:00+03:00")]
    moscow = calendar("Europe/Moscow", hours("09:00-12:00"), busy=taken)
    assert starts(EVER, moscow, days("Europe/Moscow", "2027-02-05")) == in_full("02-05T07:00 08:00")
    berlin = moscow._replace(timezone="Europe/Berlin")
    found = starts(EVER, berlin, days("Europe/Berlin", "2027-02-05"))
    assert found == in_full("02-05T08:00 09:00 10:00")


def test_a_closed_day_of_the_workspace_is_that_date_in_each_resources_zone() -> None:
    day = date(2027, 2, 5)
    for zone in ("Pacific/Kiritimati", "Europe/Berlin", "Pacific/Pago_Pago"):
        off = [span_of_days(day, day, zone)]
        resource = calendar(zone, hours("23:00-01:00"), time_off=off)
        assert len(starts(EVER, resource, days(zone, "2027-02-04", "2027-02-06"))) == 4


def test_free_seats_follow_the_peak_of_overlapping_bookings() -> None:
    busy = [
        booking("2027-02-05T06:00Z", "2027-02-05T06:20Z"),
        booking("2027-02-05T06:10Z", "2027-02-05T06:40Z"),
        booking("2027-02-05T06:40Z", "2027-02-05T07:00Z"),
    ]
    resource = calendar("Europe/Moscow", hours("09:00-11:00"), capacity=5, busy=busy)
    found = slots(EVER, resource, days("Europe/Moscow", "2027-02-05"))
    assert list(found.seats.values()) == [3, 5]


def test_a_lowered_capacity_never_leaves_negative_seats() -> None:
    busy = [booking("2027-02-05T06:00Z", "2027-02-05T07:00Z")] * 3
    resource = calendar("Europe/Moscow", hours("09:00-10:00"), capacity=2, busy=busy)
    found = slots(EVER, resource, days("Europe/Moscow", "2027-02-05"))
    assert found == Found({}, NoSlotReason.FULLY_BOOKED)


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
        assert is_free(HOUR, self.RESOURCE, ms(start), now, ignore_schedule=True) == free
        assert not is_free(HOUR, self.RESOURCE, ms(start), now)

    def test_a_booking_does_not_block_itself(self) -> None:
        start, now = ms("2027-02-05T06:00Z"), ms("2027-02-05T00:00Z")
        without = self.RESOURCE.without("b")
        assert is_free(HOUR, without, start, now, ignore_schedule=True)


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
    def test_the_reason_is_the_stage_that_removed_the_last_start_of_any_resource(
        self, calendars: list[Calendar], query: Query, service: dict[str, int], reason: str | None
    ) -> None:
        found = union(HOUR._replace(**service), calendars, query)
        assert found.reason == reason
        assert bool(found.slots) == (reason is None)

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
    def test_a_union_of_resources_names_the_free_seats_of_each_in_the_given_order(self) -> None:
        first = calendar("Europe/Moscow", hours("09:00-11:00"), capacity=2)
        second = calendar("Europe/Berlin", hours("08:00-10:00"))._replace(resource_id="another")
        found = union(EVER, [second, first], days("Europe/Moscow", "2027-02-05"))
        assert [(utc(slot.start), dict(slot.seats)) for slot in found.slots] == [
            ("02-05T06:00", {"master": 2}),
            ("02-05T07:00", {"another": 1, "master": 2}),
            ("02-05T08:00", {"another": 1}),
        ]
        assert list(found.slots[1].seats) == ["another", "master"]
        assert {slot.end - slot.start for slot in found.slots} == {3_600_000}


class TestNextAvailable:
    def test_the_next_available_time_is_the_first_slot_of_any_resource(self) -> None:
        later = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        sooner = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-19"))
        query = days("Europe/Moscow", "2027-02-01", "2027-05-04")
        found = next_available(EVER, [later, sooner], query)
        assert found is not None
        assert utc(found.start) == "04-19T06:00"
        assert next_available(EVER, [later], query._replace(last=found.end)) is None

    def test_there_is_no_next_available_time_beyond_the_horizon(self) -> None:
        resource = calendar("Europe/Moscow", hours("09:00-10:00", on="2027-04-20"))
        query = days("Europe/Moscow", "2027-02-01", "2027-05-04", now="2027-02-01T00:00Z")
        assert next_available(HOUR, [resource], query) is None
        assert next_available(HOUR._replace(horizon_days=78), [resource], query) is not None


def test_only_bookings_that_meet_the_buffered_range_are_read() -> None:
    service = HOUR._replace(buffer_before_min=10, buffer_after_min=20)
    found = busy_range(service, ms("2027-02-01T10:00Z"), ms("2027-02-01T12:00Z"))
    assert found == span("2027-02-01T09:50Z", "2027-02-01T13:20Z")
