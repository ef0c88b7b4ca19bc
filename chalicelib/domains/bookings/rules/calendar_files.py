"""Format bookings as iCalendar files (RFC 5545): one for its visitor, or many as a feed."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
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
    organizer: str  # address of the service, under the name of the workspace if there is a location
    location: str | None = None
    url: str | None = None  # the page that manages the booking
    attendee: str | None = None  # address of the client

    @property
    def method(self) -> Literal["PUBLISH", "CANCEL"]:
        # What the file does to the entry in a calendar (RFC 5546, 3.2.1 and 3.2.5).
        return "CANCEL" if STATUSES.get(self.status) == "CANCELLED" else "PUBLISH"


def calendar_file(event: CalendarEvent, *, producer: str) -> bytes:
    """Return a calendar file with one event. ``producer`` names the program that wrote it."""
    return _calendar({"method": event.method}, [event_text(event)], producer)


def calendar_feed(texts: Iterable[str], *, producer: str, name: str, refresh: timedelta) -> bytes:
    """Return a calendar of events as ``event_text`` returns them, to subscribe to.

    ``refresh`` is the pause between two readings. Calendar programs show the ``name``.
    """
    from icalendar import vDuration, vText

    interval = vDuration(refresh)
    interval.params["VALUE"] = "DURATION"  # RFC 7986, 5.7
    heading = {
        "method": "PUBLISH",
        "x-wr-calname": vText(name),
        "refresh-interval": interval,
        "x-published-ttl": vDuration(refresh),
    }
    return _calendar(heading, texts, producer)


def event_text(event: CalendarEvent) -> str:
    """Return the lines of an event."""
    from icalendar import Event, vCalAddress, vText

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
    organizer = vCalAddress(_mail_url(event.organizer))
    if event.location is not None:
        entry.add("location", event.location)
        organizer.params["CN"] = vText(event.location.replace('"', "'"))
    entry.add("organizer", organizer)
    if event.url:
        entry.add("url", event.url)
    if event.attendee and event.method == "CANCEL":  # a published entry must have no attendee
        entry.add("attendee", vCalAddress(_mail_url(event.attendee)))
    text: str = entry.to_ical().decode()
    return text


def _calendar(heading: Mapping[str, Any], texts: Iterable[str], producer: str) -> bytes:
    from icalendar import Calendar

    calendar = Calendar()
    calendar.add("prodid", f"-//{producer}//EN")
    calendar.add("version", "2.0")
    for name, value in heading.items():
        calendar.add(name, value)
    # The events are text already, because a feed is bounded by their size.
    begin, end, _ = calendar.to_ical().decode().partition("END:VCALENDAR\r\n")
    return "".join([begin, *texts, end]).encode()


def _mail_url(address: str) -> str:
    # RFC 6068
    return "mailto:" + quote(address, safe="@!$'*+=~")
