"""Services, hours and bookings in a short notation, for tests of slot calculation."""

from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, Query, slots
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.rules.open_windows import Interval, Rule, parse
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import span_of_days

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
    spans = [Interval(*interval.split("-")) for interval in intervals]
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
    days_span = span_of_days(
        date.fromisoformat(first), last=date.fromisoformat(last or first), timezone=zone
    )
    return Query(days_span.start, days_span.end - 1, ms(now))


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
                # Two bookings overlap the first, but never both in the same minute of a slot.
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
    "a booking with an hour before it": Case(
        "Europe/Moscow",
        [hours("09:00-13:00")],
        ("2027-02-05",),
        "02-05T06:00 09:00",
        more={"busy": [booking("2027-02-05T08:00Z", "2027-02-05T09:00Z", buffer_before_min=60)]},
    ),
    "a booking that ends a millisecond too late": Case(
        "Europe/Moscow",
        [hours("09:00-12:00")],
        ("2027-02-05",),
        "02-05T08:00",
        more={"busy": [booking("2027-02-05T06:30Z", "2027-02-05T07:00:00.001Z")]},
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
    "the last day of a horizon in which clocks go forward": Case(
        "Europe/Berlin",
        [hours("00:00-01:00")],
        ("2027-03-29", "2027-03-30"),
        "03-28T22:00",
        {"horizon_days": 2},
        now="2027-03-27T12:00Z",
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


def expand(text: str) -> list[str]:
    """Return the full times of ``02-05T06:00 07:00``. The previous date holds for bare times."""
    times: list[str] = []
    for word in text.split():
        times.append(word if "T" in word else f"{times[-1][:5]}T{word}")
    return times
