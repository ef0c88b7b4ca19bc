"""Tests of complete calendar files, as calendar programs read them."""

from datetime import UTC, datetime, timedelta

from chalicelib.domains.bookings.rules.calendar_files import (
    CalendarEvent,
    calendar_feed,
    calendar_file,
    event_text,
)

EVENT = CalendarEvent(
    uid="01J@example.com",
    sequence=2,
    changed_at=datetime(2027, 1, 14, 8, 30, tzinfo=UTC),
    starts_at=datetime(2027, 1, 15, 9, tzinfo=UTC),
    ends_at=datetime(2027, 1, 15, 10, tzinfo=UTC),
    status="confirmed",
    summary="Haircut",
    location="Studio",
    organizer="book@example.com",
)


def lines(event: CalendarEvent) -> list[str]:
    return calendar_file(event, producer="Example").decode().splitlines()


def test_a_calendar_file_has_one_event_with_all_fields_of_the_booking() -> None:
    full = EVENT._replace(url="https://example.com/booking/1", attendee="ada@example.com")
    assert lines(full) == [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Example//EN",
        "METHOD:PUBLISH",
        "BEGIN:VEVENT",
        "SUMMARY:Haircut",
        "DTSTART:20270115T090000Z",
        "DTEND:20270115T100000Z",
        "DTSTAMP:20270114T083000Z",
        "UID:01J@example.com",
        "SEQUENCE:2",
        "LAST-MODIFIED:20270114T083000Z",
        "LOCATION:Studio",
        "ORGANIZER;CN=Studio:mailto:book@example.com",
        "STATUS:CONFIRMED",
        "TRANSP:OPAQUE",
        "URL:https://example.com/booking/1",
        "END:VEVENT",
        "END:VCALENDAR",
    ]


def test_the_attendee_of_a_cancellation_is_url_encoded() -> None:
    file_lines = lines(EVENT._replace(status="cancelled", attendee="ё+1@b.example"))
    quoted = lines(EVENT._replace(location='Salon "A"'))
    assert any("CN=Salon 'A':" in line or "CN=\"Salon 'A'\":" in line for line in quoted)
    assert {"METHOD:CANCEL", "ATTENDEE:mailto:%D1%91+1@b.example"} <= {*file_lines}


def test_the_event_status_follows_the_booking_status() -> None:
    statuses = {
        status: next(line for line in lines(EVENT._replace(status=status)) if "STATUS" in line)
        for status in ("pending_payment", "confirmed", "completed", "cancelled", "no_show")
    }
    assert statuses == {
        "pending_payment": "STATUS:TENTATIVE",
        "confirmed": "STATUS:CONFIRMED",
        "completed": "STATUS:CONFIRMED",
        "cancelled": "STATUS:CANCELLED",
        "no_show": "STATUS:CANCELLED",
    }


def test_a_feed_has_its_name_and_its_pause_and_events_without_a_place() -> None:
    texts = [event_text(EVENT._replace(location=None, uid=uid)) for uid in ("1", "2")]
    feed = calendar_feed(texts, producer="Example", name="Salon, A", refresh=timedelta(hours=1))
    event = [
        "BEGIN:VEVENT",
        "SUMMARY:Haircut",
        "DTSTART:20270115T090000Z",
        "DTEND:20270115T100000Z",
        "DTSTAMP:20270114T083000Z",
        "UID:1",
        "SEQUENCE:2",
        "LAST-MODIFIED:20270114T083000Z",
        "ORGANIZER:mailto:book@example.com",
        "STATUS:CONFIRMED",
        "TRANSP:OPAQUE",
        "END:VEVENT",
    ]
    assert feed.decode().splitlines() == [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Example//EN",
        "METHOD:PUBLISH",
        "X-WR-CALNAME:Salon\\, A",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
        *event,
        *(line.replace("UID:1", "UID:2") for line in event),
        "END:VCALENDAR",
    ]
