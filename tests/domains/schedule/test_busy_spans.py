"""When the owner of a calendar is busy, by calendars of several programs and of strangers."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domains.schedule.rules import busy_spans as rules
from chalicelib.domains.schedule.rules import calendar_text
from chalicelib.domains.schedule.rules.busy_spans import BusySpans, busy_spans
from chalicelib.domains.schedule.rules.calendar_text import CalendarError
from chalicelib.gateways import isolation
from tests.domains.schedule import busy_feeds
from tests.domains.schedule.busy_feeds import calendar, event
from tests.support.effort import examples

MOSCOW = "Europe/Moscow"
FIRST = date(2027, 1, 15)


def read(body: bytes, zone: str = MOSCOW, first: date = FIRST) -> BusySpans:
    return busy_spans(body, zone, first, "@ours")


def shown(found: BusySpans) -> list[str]:
    """Return the spans as months, days and times in UTC."""
    return [
        "/".join(f"{datetime.fromtimestamp(minute * 60, UTC):%m-%dT%H:%M}" for minute in span)
        for span in found.spans
    ]


def times(*components: str, head: tuple[str, ...] = (), zone: str = MOSCOW) -> list[str]:
    return shown(read(calendar(*components, head=head), zone))


def at(start: str, end: str, *lines: str, uid: str = "a") -> str:
    return event(f"UID:{uid}", f"DTSTART{start}", f"DTEND{end}", *lines)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (busy_feeds.GOOGLE_CALENDAR, busy_feeds.GOOGLE_BUSY),
        (busy_feeds.OUTLOOK_CALENDAR, busy_feeds.OUTLOOK_BUSY),
        (busy_feeds.APPLE_CALENDAR, busy_feeds.APPLE_BUSY),
    ],
    ids=["google", "outlook", "apple"],
)
def test_calendars_of_known_programs_are_read(body: bytes, expected: list[str]) -> None:
    found = read(body)
    assert (shown(found), found.skipped) == (expected, 0)


class TestWhatIsBusy:
    def test_cancelled_and_transparent_events_are_free(self) -> None:
        assert times(
            at(":20270118T070000Z", ":20270118T080000Z", "STATUS:CANCELLED", uid="a"),
            at(":20270119T070000Z", ":20270119T080000Z", "TRANSP:TRANSPARENT", uid="b"),
            at(":20270120T070000Z", ":20270120T080000Z", "STATUS:TENTATIVE", uid="c"),
        ) == ["01-20T07:00/01-20T08:00"]

    def test_one_busy_date_of_a_free_series_is_busy(self) -> None:
        assert times(
            at(
                ":20270118T070000Z",
                ":20270118T080000Z",
                *("RRULE:FREQ=DAILY;COUNT=3", "TRANSP:TRANSPARENT"),
            ),
            at(":20270119T090000Z", ":20270119T100000Z", "RECURRENCE-ID:20270119T070000Z"),
        ) == ["01-19T09:00/01-19T10:00"]

    def test_a_later_part_of_a_series_is_moved_as_a_whole(self) -> None:
        assert times(
            at(":20270118T070000Z", ":20270118T080000Z", "RRULE:FREQ=DAILY;COUNT=3"),
            at(
                ":20270119T090000Z",
                ":20270119T100000Z",
                "RECURRENCE-ID;RANGE=THISANDFUTURE:20270119T070000Z",
            ),
        ) == ["01-18T07:00/01-18T08:00", "01-19T09:00/01-19T10:00", "01-20T09:00/01-20T10:00"]

    def test_a_date_is_a_whole_day_in_the_calendars_zone(self) -> None:
        day = at(";VALUE=DATE:20270118", ";VALUE=DATE:20270119")
        assert times(day) == ["01-17T21:00/01-18T21:00"]
        assert times(day, head=("X-WR-TIMEZONE:Asia/Tokyo",)) == ["01-17T15:00/01-18T15:00"]
        assert times(day, head=("X-WR-TIMEZONE:Nowhere/Land",)) == ["01-17T21:00/01-18T21:00"]
        assert times(event("UID:a", "DTSTART;VALUE=DATE:20270118")) == ["01-17T21:00/01-18T21:00"]

    @pytest.mark.parametrize(
        ("name", "hour"),
        [
            ("Asia/Tokyo", "01"),
            ("Tokyo Standard Time", "01"),
            ("/citadel.org/20210210_1/Asia/Tokyo", "01"),
            ('"Asia/Tokyo"', "01"),
            # Unknown names, and paths, mean the zone of the resource.
            ("/etc/passwd", "07"),
            ("../../../etc/localtime", "07"),
            ("Europe", "07"),
            ("", "07"),
            ("Zone\x00", "07"),
            ("x" * 3000, "07"),
        ],
    )
    def test_zones_have_many_names(self, name: str, hour: str) -> None:
        found = times(at(f";TZID={name}:20270118T100000", f";TZID={name}:20270118T110000"))
        assert [span[:11] for span in found] == [f"01-18T{hour}:00"]
        series = at(
            f";TZID={name}:20270118T100000", f";TZID={name}:20270118T110000", "RRULE:FREQ=DAILY"
        )
        assert times(series)[0][:8] == f"01-18T{hour}"

    def test_a_zone_that_the_calendar_defines_may_be_that_of_one_end(self) -> None:
        offset = "TZOFFSETFROM:+0900\nTZOFFSETTO:+0900"
        standard = f"BEGIN:STANDARD\nDTSTART:19700101T000000\n{offset}\nEND:STANDARD"
        assert times(
            f"BEGIN:VTIMEZONE\nTZID:Odd\n{standard}\nEND:VTIMEZONE",
            at(";TZID=Odd:20270118T100000", ":20270118T020000Z", uid="a"),
            at(":20270119T000000Z", ";TZID=Odd:20270119T110000", uid="b"),
        ) == ["01-18T01:00/01-18T02:00", "01-19T00:00/01-19T02:00"]

    def test_a_time_without_a_zone_is_in_that_of_the_resource(self) -> None:
        assert times(at(":20270118T100000", ":20270118T110000")) == ["01-18T07:00/01-18T08:00"]

    def test_a_date_that_ends_on_itself_is_one_day(self) -> None:
        day = at(";VALUE=DATE:20270118", ";VALUE=DATE:20270118")
        assert times(day) == ["01-17T21:00/01-18T21:00"]

    def test_a_further_date_may_be_in_another_zone(self) -> None:
        further = "RDATE;VALUE=DATE-TIME;TZID=Asia/Tokyo:20270120T100000"
        assert times(at(":20270118T070000Z", ":20270118T080000Z", further)) == [
            "01-18T07:00/01-18T08:00",
            "01-20T01:00/01-20T02:00",
        ]

    def test_the_last_revision_of_an_event_counts(self) -> None:
        assert times(
            at(":20270118T070000Z", ":20270118T080000Z", "SEQUENCE:1"),
            at(":20270118T090000Z", ":20270118T100000Z", "SEQUENCE:2"),
        ) == ["01-18T09:00/01-18T10:00"]

    def test_what_ends_with_the_day_before_the_period_is_left_out(self) -> None:
        assert (
            times(
                at(":20270114T070000Z", ":20270114T080000Z", uid="a"),
                at(":20270114T230000Z", ":20270115T000000Z", uid="b"),
            )
            == []
        )

    def test_parts_of_minutes_count_and_empty_events_do_not(self) -> None:
        assert times(
            at(":20270118T070030Z", ":20270118T080001Z", uid="a"),
            at(":20270119T070000Z", ":20270119T070000Z", uid="b"),
            event("UID:c", "DTSTART:20270120T070000Z"),
            at(":20270121T090000Z", ":20270121T080000Z", uid="d"),
        ) == ["01-18T07:00/01-18T08:01"]

    def test_overlapping_and_touching_times_are_one(self) -> None:
        assert times(
            at(":20270118T070000Z", ":20270118T080000Z", uid="a"),
            at(":20270118T073000Z", ":20270118T090000Z", uid="b"),
            at(":20270118T090000Z", ":20270118T100000Z", uid="c"),
        ) == ["01-18T07:00/01-18T10:00"]

    def test_our_own_bookings_are_left_out(self) -> None:
        assert times(at(":20270118T070000Z", ":20270118T080000Z", uid="01JB@ours")) == []

    def test_what_began_before_the_period_reaches_into_it(self) -> None:
        assert times(at(";VALUE=DATE:20260901", ";VALUE=DATE:20270117")) == [
            "01-15T00:00/01-16T21:00"
        ]

    def test_400_days_are_read_and_no_more(self) -> None:
        found = read(calendar(at(":20200101T000000Z", ":20400101T000000Z")))
        (span,) = found.spans
        assert span.end - span.start == 400 * 24 * 60


class TestStrangers:
    @pytest.mark.parametrize(
        "body",
        [b"", b"<!doctype html><h1>Sign in", b"\x00" * 1000, b"BEGIN:VCARD\r\nEND:VCARD\r\n"],
    )
    def test_what_is_no_calendar_is_refused(self, body: bytes) -> None:
        with pytest.raises(CalendarError, match="not_a_calendar"):
            read(body)

    def test_an_empty_calendar_is_read(self) -> None:
        assert read(b"\xef\xbb\xbfBEGIN:VCALENDAR\nEND:VCALENDAR") == ([], 0)

    def test_an_unreadable_event_is_counted_and_hides_no_other(self) -> None:
        found = read(
            calendar(
                at(":yesterday", ":20270118T080000Z", uid="a"),
                at(":20270118T070000Z", ":20270118T080000Z", "RRULE:FREQ=SOMETIMES", uid="b"),
                at(":20270119T070000Z", ":20270119T080000Z", uid="c"),
                event("SUMMARY:Without times"),
            )
        )
        assert shown(found) == ["01-19T07:00/01-19T08:00"]
        assert found.skipped == 3

    @pytest.mark.parametrize("frequency", ["SECONDLY", "minutely"])
    def test_a_rule_of_minutes_or_seconds_is_only_its_first_date(self, frequency: str) -> None:
        found = read(
            calendar(at(":20270118T070000Z", ":20270118T070100Z", f"RRULE:FREQ={frequency}"))
        )
        assert (shown(found), found.skipped) == (["01-18T07:00/01-18T07:01"], 1)

    def test_too_many_instances_are_refused(self) -> None:
        hourly = at(":20270118T070000Z", ":20270118T070100Z", "RRULE:FREQ=HOURLY")
        with pytest.raises(CalendarError, match="too_many_instances"):
            read(calendar(hourly))

    def test_the_most_instances_are_those_of_all_events(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rules, "MAX_INSTANCES", 5)
        two, three = (
            at(f":2027011{day}T070000Z", f":2027011{day}T080000Z", f"RRULE:{rule}", uid=str(day))
            for day, rule in ((8, "FREQ=WEEKLY;COUNT=2"), (9, "FREQ=WEEKLY;COUNT=3"))
        )
        assert len(times(two, three)) == 5
        with pytest.raises(CalendarError, match="too_many_instances"):
            times(two, three, at(":20270117T070000Z", ":20270117T080000Z", uid="c"))

    def test_too_many_events_are_refused_but_past_and_free_ones_do_not_count(self) -> None:
        def many(day: str, *lines: str) -> list[str]:
            return [
                at(f":{day}T070000Z", f":{day}T080000Z", *lines, uid=str(number))
                for number in range(calendar_text.MAX_EVENTS + 1)
            ]

        assert times(*many("20260101"), at(":20270118T070000Z", ":20270118T080000Z", uid="x")) == [
            "01-18T07:00/01-18T08:00"
        ]
        assert times(*many("20270118", "TRANSP:TRANSPARENT")) == []
        with pytest.raises(CalendarError, match="too_many_events"):
            read(calendar(*many("20270118")))

    @pytest.mark.parametrize(
        "body",
        [
            calendar("BEGIN:X\n" * 100_000),
            calendar(event("UID:a", "DTSTART:20270118T070000Z", "SUMMARY:" + "x" * 5_000_000)),
            calendar(event("UID:a", "DTSTART:20270118T070000Z", "EXDATE:" + "2027," * 500_000)),
            calendar("BEGIN:VEVENT\n" * 20_000 + "END:VEVENT\n" * 20_000),
            calendar(event("BEGIN:VALARM\n" * 50_000)),
        ],
        ids=["nested", "long title", "long list", "nested events", "never ends"],
    )
    def test_deep_and_long_texts_end(self, body: bytes) -> None:
        assert read(body).spans == []

    def test_a_rule_without_any_date_ends_the_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(isolation, "SECONDS", 3.0)
        endless = [
            at(
                ":20270118T070000Z",
                ":20270118T080000Z",
                "RRULE:FREQ=HOURLY;BYHOUR=1,2,3,4;BYMONTH=2;BYMONTHDAY=30",
                uid=str(number),
            )
            for number in range(2000)
        ]
        reader = "chalicelib.domains.schedule.rules.busy_spans:read"
        with pytest.raises(isolation.IsolationError):
            isolation.call(reader, calendar(*endless), MOSCOW, "2027-01-15", "")


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"]


@st.composite
def series(draw: st.DrawFn) -> tuple[str, datetime, int, str, list[datetime]]:
    """A zone, a start, a length in minutes, a rule, and dates that are left out."""
    zone = draw(st.sampled_from(ZONES))
    start = datetime(2026, 9, 1, 9) + timedelta(minutes=15 * draw(st.integers(0, 4 * 24 * 300)))  # noqa: DTZ001
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    rule = f"FREQ={frequency};INTERVAL={draw(st.integers(1, 3))}"
    rule += draw(st.sampled_from(["", ";COUNT=5", ";UNTIL=20270601T000000Z"]))
    if frequency == "WEEKLY":
        rule += draw(st.sampled_from(["", ";BYDAY=MO,TH", ";BYDAY=SU;WKST=SU"]))
    if frequency == "MONTHLY":
        rule += draw(st.sampled_from(["", ";BYDAY=2TU", ";BYDAY=-1FR", ";BYMONTHDAY=31"]))
    dates = (
        list(rrulestr(rule.partition(";UNTIL")[0], dtstart=start)[:4])
        if draw(st.booleans())
        else []
    )
    return zone, start, draw(st.sampled_from([15, 60, 90, 1500])), rule, dates


@examples(100)
@given(series())
def test_series_are_the_same_as_those_of_dateutil(
    drawn: tuple[str, datetime, int, str, list[datetime]],
) -> None:
    zone, start, length, rule, left_out = drawn
    tz = ZoneInfo(zone)
    end = start + timedelta(minutes=length)
    lines = [f"EXDATE;TZID={zone}:{moment:%Y%m%dT%H%M%S}" for moment in left_out]
    found = read(
        calendar(
            at(
                f";TZID={zone}:{start:%Y%m%dT%H%M%S}",
                f";TZID={zone}:{end:%Y%m%dT%H%M%S}",
                f"RRULE:{rule}",
                *lines,
            )
        ),
        zone,
    )
    first = int(datetime(2027, 1, 15, tzinfo=UTC).timestamp()) // 60
    expected = set[int]()
    last = datetime(2028, 3, 1, tzinfo=tz)
    # A start that its rule does not match is a date of the series, too (RFC 5545, 3.8.5.3).
    moments = [
        start.replace(tzinfo=tz),
        *rrulestr(rule, dtstart=start.replace(tzinfo=tz)).between(
            datetime(2026, 1, 1, tzinfo=tz), last, inc=True
        ),
    ]
    for moment in moments:
        if moment.replace(tzinfo=None) in left_out:
            continue
        begin = int(moment.timestamp()) // 60
        finish = int((moment + timedelta(minutes=length)).timestamp()) // 60
        expected |= set(range(max(begin, first), min(finish, first + 400 * 1440)))
    assert {minute for span in found.spans for minute in range(*span)} == expected
