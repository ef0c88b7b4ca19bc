"""Calendars as Google, Outlook and Apple publish them, with invented people."""

from collections.abc import Iterable

GOOGLE = "https://calendar.google.com/calendar/ical/anna/private-0123456789/basic.ics"


def event(*lines: str) -> str:
    """Return an event of these lines."""
    return "\n".join(("BEGIN:VEVENT", *lines, "END:VEVENT"))


def calendar(*components: str, head: Iterable[str] = ()) -> bytes:
    """Return a calendar of these components, with the line ends of the standard."""
    texts = ("BEGIN:VCALENDAR", "VERSION:2.0", *head, *components, "END:VCALENDAR")
    return "\r\n".join("\n".join(texts).split("\n")).encode() + b"\r\n"


def busy(start: str, end: str, uid: str = "one@example.com") -> bytes:
    """Return a calendar with one event, in UTC: ``20270118T070000Z``."""
    return calendar(event(f"UID:{uid}", f"DTSTART:{start}", f"DTEND:{end}"))


# The secret address in iCal format. Times are in UTC, but for series.
GOOGLE_CALENDAR = calendar(
    """BEGIN:VTIMEZONE
TZID:Europe/Moscow
X-LIC-LOCATION:Europe/Moscow
BEGIN:STANDARD
TZOFFSETFROM:+0300
TZOFFSETTO:+0300
TZNAME:GMT+3
DTSTART:19700101T000000
END:STANDARD
END:VTIMEZONE""",
    event(
        "DTSTART:20270118T070000Z",
        "DTEND:20270118T080000Z",
        "DTSTAMP:20270110T101500Z",
        "UID:1a2b3c4d@google.com",
        "CREATED:20270101T000000Z",
        "DESCRIPTION:Bring the\\, papers\\nDTSTART:19990101T000000Z and a long line that is",
        "  folded",
        "LAST-MODIFIED:20270101T000000Z",
        "LOCATION:Clinic",
        "SEQUENCE:0",
        "STATUS:CONFIRMED",
        "SUMMARY:Dentist",
        "TRANSP:OPAQUE",
        "BEGIN:VALARM\nACTION:DISPLAY\nDESCRIPTION:This is a reminder\nTRIGGER:-P0DT0H30M0S\n"
        "END:VALARM",
    ),
    # A day of a colleague's birthday, which Google shows as available.
    event(
        "DTSTART;VALUE=DATE:20270119",
        "DTEND;VALUE=DATE:20270120",
        "UID:birthday@google.com",
        "SUMMARY:Birthday",
        "TRANSP:TRANSPARENT",
    ),
    event(
        "DTSTART;VALUE=DATE:20270201",
        "DTEND;VALUE=DATE:20270204",
        "UID:trip@google.com",
        "SUMMARY:Trip",
        "TRANSP:OPAQUE",
    ),
    # A series with a date that is left out, one that is moved, and one that is cancelled.
    event(
        "DTSTART;TZID=Europe/Moscow:20261207T100000",
        "DTEND;TZID=Europe/Moscow:20261207T110000",
        "RRULE:FREQ=WEEKLY;UNTIL=20270222T205959Z;BYDAY=MO",
        "EXDATE;TZID=Europe/Moscow:20270208T100000",
        "UID:yoga@google.com",
        "SUMMARY:Yoga",
    ),
    event(
        "DTSTART;TZID=Europe/Moscow:20270126T150000",
        "DTEND;TZID=Europe/Moscow:20270126T160000",
        "UID:yoga@google.com",
        "RECURRENCE-ID;TZID=Europe/Moscow:20270125T100000",
        "SUMMARY:Yoga",
    ),
    event(
        "DTSTART;TZID=Europe/Moscow:20270215T100000",
        "DTEND;TZID=Europe/Moscow:20270215T110000",
        "UID:yoga@google.com",
        "RECURRENCE-ID;TZID=Europe/Moscow:20270215T100000",
        "STATUS:CANCELLED",
    ),
    head=(
        "PRODID:-//Google Inc//Google Calendar 70.9054//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:anna@example.com",
        "X-WR-TIMEZONE:Europe/Moscow",
    ),
)
GOOGLE_BUSY = [
    "01-18T07:00/01-18T08:00",
    "01-26T12:00/01-26T13:00",
    "01-31T21:00/02-03T21:00",
    "02-22T07:00/02-22T08:00",
]

# A calendar that Outlook on the web publishes: Windows' names of zones, and BUSYSTATUS.
OUTLOOK_CALENDAR = calendar(
    """BEGIN:VTIMEZONE
TZID:W. Europe Standard Time
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VTIMEZONE
TZID:Customized Time Zone
BEGIN:STANDARD
DTSTART:16010101T000000
TZOFFSETFROM:+0530
TZOFFSETTO:+0530
END:STANDARD
END:VTIMEZONE""",
    # Twice a month over the change of clocks on 2027-03-28.
    event(
        "RRULE:FREQ=WEEKLY;UNTIL=20270331T080000Z;INTERVAL=2;BYDAY=WE;WKST=MO",
        "UID:040000008200E00074C5B7101A82E008",
        "SUMMARY:Busy",
        "DTSTART;TZID=W. Europe Standard Time:20270303T090000",
        "DTEND;TZID=W. Europe Standard Time:20270303T100000",
        "CLASS:PUBLIC",
        "PRIORITY:5",
        "TRANSP:OPAQUE",
        "STATUS:CONFIRMED",
        "X-MICROSOFT-CDO-APPT-SEQUENCE:0",
        "X-MICROSOFT-CDO-BUSYSTATUS:BUSY",
        "X-MICROSOFT-CDO-INTENDEDSTATUS:BUSY",
        "X-MICROSOFT-CDO-ALLDAYEVENT:FALSE",
    ),
    event(
        "UID:free",
        "DTSTART;TZID=W. Europe Standard Time:20270305T090000",
        "DTEND;TZID=W. Europe Standard Time:20270305T100000",
        "TRANSP:TRANSPARENT",
        "X-MICROSOFT-CDO-BUSYSTATUS:FREE",
    ),
    event(
        "UID:from home",
        "DTSTART;VALUE=DATE:20270308",
        "DTEND;VALUE=DATE:20270309",
        "TRANSP:OPAQUE",
        "X-MICROSOFT-CDO-BUSYSTATUS:WORKINGELSEWHERE",
    ),
    event(
        "UID:tentative",
        "DTSTART;TZID=Customized Time Zone:20270310T100000",
        "DTEND;TZID=Customized Time Zone:20270310T110000",
        "TRANSP:OPAQUE",
        "X-MICROSOFT-CDO-BUSYSTATUS:TENTATIVE",
    ),
    head=("METHOD:PUBLISH", "PRODID:Microsoft Exchange Server 2010", "X-WR-CALNAME:Calendar"),
)
OUTLOOK_BUSY = [
    "03-03T08:00/03-03T09:00",
    "03-10T04:30/03-10T05:30",
    "03-17T08:00/03-17T09:00",
    "03-31T07:00/03-31T08:00",
]

# A public calendar of iCloud: IANA's zones, floating times, and durations.
APPLE_CALENDAR = calendar(
    event(
        "CREATED:20270101T120000Z",
        "DTEND;TZID=Asia/Tokyo:20270118T110000",
        "DTSTART;TZID=Asia/Tokyo:20270118T100000",
        "UID:9F1E7C1A-0000-4000-8000-000000000001",
        "X-APPLE-TRAVEL-ADVISORY-BEHAVIOR:AUTOMATIC",
        "SUMMARY:Call",
    ),
    event(
        "UID:9F1E7C1A-0000-4000-8000-000000000002",
        "DTSTART:20270119T100000",
        "DURATION:PT45M",
        "SUMMARY:Floats",
    ),
    event(
        "UID:9F1E7C1A-0000-4000-8000-000000000003",
        "DTSTART;VALUE=DATE:20270120",
        "RRULE:FREQ=DAILY;COUNT=2",
        "RDATE;VALUE=DATE:20270125",
    ),
    head=(
        "PRODID:-//Apple Inc.//macOS 15.0//EN",
        "X-APPLE-CALENDAR-COLOR:#1BADF8",
        "X-WR-CALNAME:Anna",
    ),
)
APPLE_BUSY = [
    "01-18T01:00/01-18T02:00",
    "01-19T07:00/01-19T07:45",
    "01-19T21:00/01-21T21:00",
    "01-24T21:00/01-25T21:00",
]
