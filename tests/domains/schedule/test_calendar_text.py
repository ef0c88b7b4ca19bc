"""What is kept of a stranger's calendar before a parser sees it."""

from datetime import date

import pytest

from chalicelib.domains.schedule.rules import calendar_text
from chalicelib.domains.schedule.rules.calendar_text import (
    CalendarError,
    CalendarText,
    Event,
    Line,
)
from tests.domains.schedule.busy_feeds import calendar, event

FIRST = date(2027, 1, 15)
LATER = "DTSTART:20270118"
ZONE = "BEGIN:VTIMEZONE\nTZID:Odd\nEND:VTIMEZONE"  # of three lines


def reduce(*components: str, ours: str = "") -> CalendarText:
    return calendar_text.reduce(calendar(*components), FIRST, ours)


def uids(text: CalendarText) -> list[list[str]]:
    return [[each.uid for each in series] for series in text.series]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("uid : a:b ", Line("UID", {}, "a:b")),
        ('A; tzid = "B;C:D" ;VALUE=E:1', Line("A", {"TZID": "B;C:D", "VALUE": "E"}, "1")),
        ("no value", None),
        ('X;A="never:ends', None),
    ],
)
def test_a_line_has_a_name_parameters_and_a_value(text: str, line: Line | None) -> None:
    assert Line.parse(text) == line


@pytest.mark.parametrize(
    ("lines", "has_ended"),
    [
        # The zone may move a date by a day, and the last day counts.
        (["DTSTART:20270112T090000Z"], True),
        (["DTSTART:20270113T090000Z"], False),
        (["DTSTART:20270111", "DTEND:20270112"], True),
        (["DTSTART:20270112", "DTEND:20270113"], False),
        (["DTSTART:20261130"], True),
        (["DTSTART:20271130"], False),
        # What is not understood is left to the parser.
        (["DTSTART:20260101", "DURATION:P2Y"], False),
        (["DTSTART:20260102", "DTEND:20260101"], False),
        (["DTEND:20260101"], False),
        (["DTSTART:2026-1-1"], False),
        (["DTSTART:20261301"], False),
        (["DTSTART:２０２６０１０１"], False),  # digits of another script
        # A series ends with its last date.
        (["DTSTART:20260101", "RRULE:FREQ=DAILY"], False),
        (["DTSTART:20260101", "RRULE:FREQ=DAILY;COUNT=2"], False),
        (["DTSTART:20260101", "RRULE:FREQ=DAILY;UNTIL=20270112T000000Z"], True),
        (["DTSTART:20260101", "RRULE:FREQ=DAILY;UNTIL=20270113T000000Z"], False),
        (["DTSTART:20260101", "DTEND:20260102", "RRULE:FREQ=DAILY;UNTIL=20270112"], False),
        (["DTSTART:20260101", "RRULE:UNTIL=20260201", "RRULE:UNTIL=20270113"], False),
        (["DTSTART:20270113", "RRULE:FREQ=DAILY;UNTIL=20260101"], False),
        (["DTSTART:20260101", "RRULE:"], True),
        (["DTSTART:20260101", "RDATE:20270120"], False),
        # A replaced date may have been moved by weeks.
        (["DTSTART:20261201", "RECURRENCE-ID:20261214"], True),
        (["DTSTART:20261201", "RECURRENCE-ID:20261215"], False),
        (["DTSTART:20270113", "RECURRENCE-ID:20260101"], False),
        (["DTSTART:20270112", "RECURRENCE-ID:20260101"], True),
        (["DTSTART:20260101", "RECURRENCE-ID:soon"], False),
        (["DTSTART:20260101", "RECURRENCE-ID;RANGE=THISANDFUTURE:20260101"], False),
        (["DTSTART;RANGE=X:20260101", "RECURRENCE-ID:20260101"], True),
        (["DTSTART:20260101", "RECURRENCE-ID:20260101", "RRULE:UNTIL=20260101"], False),
    ],
    ids=str,
)
def test_an_event_is_left_out_if_it_surely_ended_before_the_period(
    lines: list[str], *, has_ended: bool
) -> None:
    parsed = [line for text in lines if (line := Line.parse(text))]
    assert Event(parsed).ended_before(FIRST) == has_ended


class TestReducing:
    def test_only_the_own_lines_of_an_event_that_say_when_it_is_are_kept(self) -> None:
        alarm = "BEGIN:VALARM\nUID:alarm\nBEGIN:X\nDTSTART:1\nEND:X\nDTEND:2\nEND:VALARM"
        text = reduce(event(";no name", alarm, "UID:a", "SUMMARY:Dentist", alarm, LATER))
        assert [(line.name, line.value) for line in text.series[0][0].lines] == [
            ("UID", "a"),
            ("DTSTART", "20270118"),
        ]

    def test_long_lines_are_folded_with_spaces_or_tabs(self) -> None:
        text = reduce(event("UID:a\n b\n\tc\n  d", LATER))
        assert uids(text) == [["abc d"]]

    @pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
    def test_each_kind_of_line_end_is_read(self, end: str) -> None:
        lines = ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:a", LATER, "", "END:VEVENT"]
        assert uids(calendar_text.reduce(end.join(lines).encode(), FIRST)) == [["a"]]

    def test_bytes_that_are_no_text_hide_no_event(self) -> None:
        body = calendar(event("UID:a", "SUMMARY:?", LATER)).replace(b"?", b"\xff\xfe")
        assert uids(calendar_text.reduce(body, FIRST)) == [["a"]]

    def test_a_line_is_cut_where_it_is_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calendar_text, "MAX_LINE", 20)
        whole, long = "UID:" + "x" * 14, "UID:" + "z" * 30
        assert uids(reduce(event(whole, " a", " b", LATER))) == [["x" * 14 + "a"]]
        assert uids(reduce(event(f"{whole}\n a\n b", LATER))) == [["x" * 14 + "a"]]
        assert uids(reduce(event(long, LATER))) == [["z" * 16]]

    def test_events_without_a_uid_are_series_of_their_own(self) -> None:
        assert uids(reduce(event(LATER), event("UID:a", LATER), event(LATER))) == [
            [""],
            ["a"],
            [""],
        ]

    def test_events_of_one_uid_are_one_series(self) -> None:
        one = event("UID:a", LATER)
        assert uids(reduce(one, event("UID:b", LATER), one)) == [["a", "a"], ["b"]]

    def test_our_own_events_are_left_out_by_the_end_of_their_uid(self) -> None:
        events = event("UID:a@ours", LATER), event("UID:@ours.b", LATER)
        assert uids(reduce(*events, ours="@ours")) == [["@ours.b"]]
        assert uids(reduce(*events)) == [["a@ours"], ["@ours.b"]]

    def test_zones_are_kept_by_name(self) -> None:
        text = reduce("X-WR-TIMEZONE:Asia/Tokyo", ZONE, "BEGIN:VTIMEZONE\nEND:VTIMEZONE")
        assert text == ([], {"Odd": ZONE.split("\n")}, "Asia/Tokyo")
        assert reduce().zone == ""

    def test_what_is_inside_of_another_component_is_left_out(self) -> None:
        inside = f"X-WR-TIMEZONE:Asia/Tokyo\n{event('UID:a', LATER)}"
        text = reduce(f"BEGIN:VTODO\n{inside}\nEND:VTODO", event("UID:b", LATER))
        assert (uids(text), text.zone) == ([["b"]], "")


class TestLimits:
    """A calendar at a limit is read, and one above it is refused."""

    @pytest.mark.parametrize(
        ("limit", "components", "size"),
        [
            ("MAX_EVENTS", [event("UID:a", LATER), event("UID:b", LATER)], 2),
            ("MAX_EVENTS", [event("UID:a", LATER), event("UID:a", LATER)], 2),
            ("MAX_ZONE_LINES", [ZONE, ZONE], 6),
            ("MAX_LINES", ["X:1"], 5),  # with the lines of the calendar, and after its end
        ],
        ids=["events", "events of a series", "lines of zones", "lines"],
    )
    def test_a_calendar_above_a_limit_is_refused(
        self, limit: str, components: list[str], size: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calendar_text, limit, size)
        reduce(*components)
        monkeypatch.setattr(calendar_text, limit, size - 1)
        with pytest.raises(CalendarError, match="too_many_events"):
            reduce(*components)
