"""Calendar files of bookings, read by two implementations and checked against RFC 5545 and 5546."""

from typing import Any

from icalendar import Calendar

FORBIDDEN = {
    "PUBLISH": {"ATTENDEE", "REQUEST-STATUS"},
    "CANCEL": {"REQUEST-STATUS"},
}
"""Properties that an event of a method must not have (RFC 5546, 3.2.1 and 3.2.5)."""
REQUIRED = ("UID", "DTSTAMP", "DTSTART", "ORGANIZER", "SEQUENCE", "SUMMARY")


def check(raw: bytes) -> tuple[str, Any]:
    """Return the method and the event of a valid calendar file."""
    from ical.calendar_stream import CalendarStream

    assert raw.endswith(b"END:VCALENDAR\r\n")
    assert all(len(line) <= 75 for line in raw.split(b"\r\n"))
    assert raw.count(b"\n") == raw.count(b"\r\n")
    (read,) = CalendarStream.from_ics(raw.decode()).calendars
    (other,) = read.events
    calendar = Calendar.from_ical(raw)
    (event,) = calendar.walk("VEVENT")
    method = str(calendar["METHOD"])
    assert read.method == method
    assert (other.uid, other.sequence) == (event["UID"], event["SEQUENCE"])
    assert (other.dtstart, other.dtend) == (event["DTSTART"].dt, event["DTEND"].dt)
    assert str(other.organizer.uri) == event["ORGANIZER"]
    assert event["ORGANIZER"].startswith("mailto:")
    assert not isinstance(event["ORGANIZER"], list)
    assert [name for name in REQUIRED if name not in event] == []
    assert FORBIDDEN[method].isdisjoint(event)
    assert (method == "CANCEL") == (event["STATUS"] == "CANCELLED")
    return method, event


def read_feed(raw: bytes) -> list[Any]:
    """Return the events of a valid calendar feed by their start. Two implementations read them."""
    from ical.calendar_stream import CalendarStream

    assert raw.endswith(b"END:VCALENDAR\r\n")
    assert all(len(line) <= 75 for line in raw.split(b"\r\n"))
    assert raw.count(b"\n") == raw.count(b"\r\n")
    calendar = Calendar.from_ical(raw)
    events = sorted(calendar.walk("VEVENT"), key=lambda event: event["DTSTART"].dt)
    (read,) = CalendarStream.from_ics(raw.decode()).calendars
    others = {event.uid: event for event in read.events}
    assert len(others) == len(read.events) == len(events)
    for event in events:
        other = others[str(event["UID"])]
        assert (other.dtstart, other.dtend) == (event["DTSTART"].dt, event["DTEND"].dt)
        assert (other.summary, other.sequence) == (str(event["SUMMARY"]), event["SEQUENCE"])
        assert [name for name in REQUIRED if name not in event] == []
        assert FORBIDDEN["PUBLISH"].isdisjoint(event)
    return events
