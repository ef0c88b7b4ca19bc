"""The page on which a client shows and cancels a booking, behind the link in mails to the client.

Programs that check links send GET, which therefore changes nothing. The page needs no script and
no session.
"""

from contextlib import suppress

from chalicelib.core import clock
from chalicelib.core.operations import REGISTRY
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.operations.public import BookingStartedError
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store.bookings import UPCOMING, BookingRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.notifications.flows import client_mails
from chalicelib.domains.notifications.rules import client_mails as texts
from chalicelib.transports import rest
from chalicelib.transports.auth import visitor
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import render

ICONS = {"confirmed": "calendar-check", "cancelled": "ban", "pending_payment": "clock"}


def show(request: HttpRequest) -> HttpResponse:
    """Show a booking without contacts."""
    return render.private(_page)(request)


def cancel(request: HttpRequest) -> HttpResponse:
    """Cancel a booking that has not begun, and show it. Cancelling it again has no effect."""
    return render.private(_cancel)(request)


def _cancel(request: HttpRequest) -> HttpResponse:
    """Cancel by the operation of the public API, which limits and records the call.

    Raises:
        AppError: the link is not genuine, or the booking could not be cancelled.
    """
    workspace_id, booking = _booking(request)
    token = booking_links.token(workspace_id, booking, Purpose.CANCEL)
    operation = REGISTRY["cancel_public_booking"]
    with suppress(BookingStartedError):  # The page then has no button.
        rest.call(operation, visitor(request), request, lambda: {"token": token})
    return _page(request)


def _page(request: HttpRequest) -> HttpResponse:
    workspace_id, booking = _booking(request)
    workspace = workspaces.get(workspace_id)
    is_open = booking.status in UPCOMING and booking.starts_at > clock.now()
    facts = client_mails.facts(workspace, booking)
    return render.notice(
        request,
        200,
        icon=ICONS.get(booking.status, "calendar-check"),
        title=f"booked_{booking.status}",
        about="booked_about",
        link=(booking_links.calendar_url(workspace_id, booking), "booked_calendar"),
        button="booked_cancel" if is_open else None,
        facts=texts.fact_pairs(render.preferred_language(request), facts),
        workspace=workspace.name,
    )


def _booking(request: HttpRequest) -> tuple[str, BookingRow]:
    """Return the workspace and the booking of the link.

    Raises:
        NotFoundError: the link is not genuine.
    """
    text = request.path["token"]
    return booking_links.parse(text).workspace_id, booking_links.booking_of(text, Purpose.MANAGE)
