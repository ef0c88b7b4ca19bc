"""Build the links that a client gets to manage a booking and to download its calendar file.

Everyone who has a link can use it, without a session, for its token's one purpose.
"""

from urllib.parse import urlsplit

from chalicelib import SERVICE
from chalicelib.core.settings import settings
from chalicelib.domains.bookings.rules import booking_tokens, calendar_files
from chalicelib.domains.bookings.rules.booking_tokens import BookingToken, Purpose
from chalicelib.domains.bookings.rules.calendar_files import CalendarEvent
from chalicelib.domains.bookings.store import bookings, short_links
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.gateways.master_key import master_key

PAGE = "/booking/{token}"
PAY_PAGE = "/pay/{token}"
BOOK_PAGE = "/booking/confirm/{token}"
CALENDAR_FILE = "/api/public/bookings/{token}.ics"
FILE_SUFFIX = ".ics"
SHORT_PAGE = "/b/{code}"
MANAGING = (Purpose.MANAGE, Purpose.SHARED)  # open the page of a booking


def page_url(workspace_id: str, booking: BookingRow) -> str | None:
    """Return the URL of the page that manages a booking, or None without a secret."""
    # The booking is erased, or an old one that was made with a key.
    if booking.token_secret is None:
        return None
    text = token(workspace_id, booking, Purpose.MANAGE)
    return settings().public_url + PAGE.format(token=text)


def short_url(workspace_id: str, booking: BookingRow) -> str | None:
    """Return a short URL of the page that manages a booking, for an SMS, or None without a secret.

    It leads there once ``short_links.stage`` has stored its code.
    """
    if booking.token_secret is None:
        return None
    code = short_code(workspace_id, booking, booking.token_secret)
    return settings().public_url + SHORT_PAGE.format(code=code)


def short_code(workspace_id: str, booking: BookingRow, secret: str) -> str:
    """Return the code of a booking's short URL, which is the same at each call."""
    return booking_tokens.short_code(workspace_id, booking_id=booking.id, secret=secret)


def url_of_short_code(code: str) -> str:
    """Return the URL of the page that a short URL leads to, or raise NotFoundError."""
    link = short_links.find(code) if booking_tokens.is_short_code(code) else None
    booking = BOOKINGS.find(link.workspace_id, record_id=link.booking_id) if link else None
    # The secret of a booking is removed when its client is erased.
    url = page_url(link.workspace_id, booking) if link and booking else None
    if url is None:
        raise BOOKINGS.unavailable()
    return url


def shared_url(workspace_id: str, booking: BookingRow) -> str | None:
    """Return the URL for callers with a key, whose cancellation refunds nothing, or None."""
    if booking.token_secret is None:
        return None
    text = token(workspace_id, booking, Purpose.SHARED)
    return settings().public_url + PAGE.format(token=text)


def pay_url(workspace_id: str, booking: BookingRow) -> str | None:
    """Return the URL of the page that pays a booking, or None if it cannot be paid in advance."""
    if booking.token_secret is None or not booking.due:
        return None
    text = token(workspace_id, booking, Purpose.PAY)
    return settings().public_url + PAY_PAGE.format(token=text)


def link_mail_id(request_id: str) -> str:
    """Return the id of the e-mail with the link that books what a visitor has requested."""
    return f"booking-link-{request_id}"


def book_token(workspace_id: str, *, request_id: str) -> str:
    """Return the token of the link that books what a visitor has requested.

    Raises NotConfiguredError or UnavailableError if the master key is missing or cannot be read.
    """
    # With the master key, the job of the e-mail needs only the id.
    return booking_tokens.token(
        workspace_id, booking_id=request_id, purpose=Purpose.BOOK, secret=master_key().hex()
    )


def calendar_url(workspace_id: str, booking: BookingRow) -> str:
    """Return the URL of the calendar file of a booking with a secret."""
    text = token(workspace_id, booking, Purpose.CALENDAR)
    return settings().public_url + CALENDAR_FILE.format(token=text)


def token(workspace_id: str, booking: BookingRow, purpose: Purpose) -> str:
    """Return the token of a booking with a secret, for one purpose. A visit has those of its first.

    All bookings of a visit have one secret.
    """
    return booking_tokens.token(
        workspace_id,
        booking_id=booking.visit_id or booking.id,
        purpose=purpose,
        secret=booking.token_secret or "",
    )


def calendar_file(workspace_id: str, *, workspace: str, booking: BookingRow) -> bytes:
    """Return the calendar file of a booking. ``workspace`` is the name that it shows as place.

    A visit is one event.
    """
    event = _visit_event(workspace_id, workspace, booking)
    return calendar_files.calendar_file(event, producer=SERVICE)


def calendar_event(
    workspace_id: str, *, workspace: str | None, booking: BookingRow
) -> CalendarEvent:
    """Return the fields of a booking's calendar file. Without a workspace's name, it has no place.

    It has no contacts and no name of the client.
    """
    config = settings()
    return CalendarEvent(
        uid=f"{booking.id}@{workspace_id}",
        sequence=int(booking.sequence),
        changed_at=booking.updated_at,
        starts_at=booking.starts_at,
        ends_at=booking.ends_at,
        status=booking.status,
        summary=f"{booking.service_name} ({booking.resource_name})",
        location=workspace,
        organizer=config.mail_from or f"noreply@{urlsplit(config.public_url).hostname}",
    )


def client_calendar_event(
    workspace_id: str, *, workspace: str, booking: BookingRow
) -> CalendarEvent:
    """Return the fields of the file only for the client, who may move and cancel the booking.

    A visit is one event.
    """
    return _visit_event(workspace_id, workspace, booking)._replace(
        url=page_url(workspace_id, booking), attendee=booking.client_email
    )


def _visit_event(workspace_id: str, workspace: str, booking: BookingRow) -> CalendarEvent:
    event = calendar_event(workspace_id, workspace=workspace, booking=booking)
    visit = bookings.visit_of(workspace_id, booking)
    if len(visit) == 1:
        return event
    shown = [each for each in visit if each.blocks] or visit
    return event._replace(
        uid=f"{booking.visit_id}@{workspace_id}",
        # Any change of a booking replaces the event.
        sequence=sum(int(each.sequence) for each in visit),
        changed_at=max(each.updated_at for each in visit),
        starts_at=shown[0].starts_at,
        ends_at=shown[-1].ends_at,
        status=shown[0].status,
        summary=", ".join(f"{each.service_name} ({each.resource_name})" for each in shown),
    )


def parse(text: str) -> BookingToken:
    """Return the ids of a token, whose signature is not verified yet, or raise NotFoundError."""
    return BOOKINGS.found_for_visitor(booking_tokens.read(text))


def booking_of(text: str, *purposes: Purpose) -> BookingRow:
    """Return the booking of a token for one of some purposes, or raise NotFoundError."""
    token = parse(text)
    booking = BOOKINGS.find(token.workspace_id, record_id=token.booking_id)
    # The two failures give one error, so a guess does not reveal which bookings exist.
    if booking is None or not any(
        token.is_for(purpose, booking.token_secret) for purpose in purposes
    ):
        raise BOOKINGS.unavailable()
    return booking


def is_shared(text: str, booking: BookingRow) -> bool:
    """Return whether the token of a booking is the one that callers with a key get."""
    return parse(text).is_for(Purpose.SHARED, booking.token_secret)
