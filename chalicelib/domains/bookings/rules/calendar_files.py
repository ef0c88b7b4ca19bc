"""A booking as an iCalendar file (RFC 5545), for the calendar of who booked."""

from datetime import datetime
from typing import NamedTuple

STATUSES = {
    "pending_payment": "TENTATIVE",
    "cancelled": "CANCELLED",
    "no_show": "CANCELLED",
}
"""What calendars call a booking's status; the others are confirmed."""


class CalendarEvent(NamedTuple):
    """What a calendar is told of a booking; no contacts, for its address may be passed on.

    ``uid`` stays with the booking for good. ``sequence`` rises when its time, place or status
    changes, and ``changed_at`` says when: so calendars replace what they had. Times are in UTC.
    """

    uid: str
    sequence: int
    changed_at: datetime
    starts_at: datetime
    ends_at: datetime
    status: str
    summary: str
    location: str | None = None


def calendar_file(event: CalendarEvent, *, producer: str) -> bytes:
    """Return the file: one event, published for whoever reads it."""
    from icalendar import Calendar, Event  # noqa: PLC0415  few requests ask

    entry = Event()
    entry.add("uid", event.uid)
    entry.add("sequence", event.sequence)
    entry.add("dtstamp", event.changed_at)
    entry.add("last-modified", event.changed_at)
    entry.add("dtstart", event.starts_at)
    entry.add("dtend", event.ends_at)
    entry.add("summary", event.summary)
    entry.add("status", STATUSES.get(event.status, "CONFIRMED"))
    entry.add("transp", "OPAQUE")
    if event.location:
        entry.add("location", event.location)
    calendar = Calendar()
    calendar.add("prodid", f"-//{producer}//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add_component(entry)
    content: bytes = calendar.to_ical()
    return content
