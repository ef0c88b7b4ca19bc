"""Format a booking as an iCalendar file (RFC 5545) for the visitor's calendar."""

from datetime import datetime
from typing import NamedTuple

STATUSES = {
    "pending_payment": "TENTATIVE",
    "cancelled": "CANCELLED",
    "no_show": "CANCELLED",
}
"""Booking status -> iCalendar status. For any other booking status it is CONFIRMED."""


class CalendarEvent(NamedTuple):
    """Fields of a booking in a calendar file.

    Contact details are left out, because visitors may share the link to the file. ``uid`` never
    changes. ``sequence`` increases when the time, place or status changes, at the moment
    ``changed_at``. Calendar programs use both to replace an earlier version. Times are in UTC.
    ``url`` leads to the page that manages the booking, so only the client's own file may have it.
    """

    uid: str
    sequence: int
    changed_at: datetime
    starts_at: datetime
    ends_at: datetime
    status: str
    summary: str
    location: str | None = None
    url: str | None = None


def calendar_file(event: CalendarEvent, *, producer: str) -> bytes:
    """Return a calendar file with one event. ``producer`` names the program that wrote it."""
    from icalendar import Calendar, Event  # noqa: PLC0415  imported on use: few requests need it

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
    if event.url:
        entry.add("url", event.url)
    calendar = Calendar()
    calendar.add("prodid", f"-//{producer}//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add_component(entry)
    content: bytes = calendar.to_ical()
    return content
