"""Format a booking as an iCalendar file (RFC 5545) for the visitor's calendar."""

from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import quote

# Booking status -> iCalendar status. For any other booking status it is CONFIRMED.
STATUSES = {
    "pending_payment": "TENTATIVE",
    "cancelled": "CANCELLED",
    "no_show": "CANCELLED",
}


class CalendarEvent(NamedTuple):
    """Fields of a booking in a calendar file, with times in UTC.

    Contact details are left out, because visitors may share the link to the file. Only the client's
    own file may have ``url`` and ``attendee``.
    """

    # ``uid`` never changes. ``sequence`` increases when the time, place or status changes, at
    # ``changed_at``. Calendar programs use both to replace an earlier version.
    uid: str
    sequence: int
    changed_at: datetime
    starts_at: datetime
    ends_at: datetime
    status: str
    summary: str
    location: str
    organizer: str  # address of the service, under the name of the workspace
    url: str | None = None  # the page that manages the booking
    attendee: str | None = None  # address of the client

    @property
    def method(self) -> Literal["PUBLISH", "CANCEL"]:
        # What the file does to the entry in a calendar (RFC 5546, 3.2.1 and 3.2.5).
        return "CANCEL" if STATUSES.get(self.status) == "CANCELLED" else "PUBLISH"


def calendar_file(event: CalendarEvent, *, producer: str) -> bytes:
    """Return a calendar file with one event. ``producer`` names the program that wrote it."""
    from icalendar import Calendar, Event, vCalAddress, vText

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
    entry.add("location", event.location)
    organizer = vCalAddress(_mail_url(event.organizer))
    organizer.params["CN"] = vText(event.location.replace('"', "'"))
    entry.add("organizer", organizer)
    if event.url:
        entry.add("url", event.url)
    if event.attendee and event.method == "CANCEL":  # a published entry must have no attendee
        entry.add("attendee", vCalAddress(_mail_url(event.attendee)))
    calendar = Calendar()
    calendar.add("prodid", f"-//{producer}//EN")
    calendar.add("version", "2.0")
    calendar.add("method", event.method)
    calendar.add_component(entry)
    content: bytes = calendar.to_ical()
    return content


def _mail_url(address: str) -> str:
    # RFC 6068
    return "mailto:" + quote(address, safe="@!$'*+=~")
