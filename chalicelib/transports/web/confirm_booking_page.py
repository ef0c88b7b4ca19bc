"""The page behind the link in an e-mail that books what a visitor has requested.

Programs that check links send GET, which therefore only shows what would be booked.
"""

from datetime import datetime, timedelta

from chalicelib.core import clock
from chalicelib.domains.booking_page.flows import book_for_visitor
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.transports import form_data
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
    redirect,
)
from chalicelib.transports.web import brand_pages, free_times, render
from chalicelib.transports.web.booking_facts import booking_facts, payment_facts, price_text
from chalicelib.transports.web.visitor_requests import call


def show(request: HttpRequest) -> HttpResponse:
    """Show what the link books, with a button that does it."""
    return render.private(_show)(request)


def book(request: HttpRequest) -> HttpResponse:
    """Book, and lead to the page of the booking. Repeating it has no effect."""
    return render.private(_book)(request)


def _show(request: HttpRequest) -> HttpResponse:
    token = request.path["token"]
    workspace_id = booking_links.parse(token).workspace_id
    requested = book_for_visitor.require_awaited(workspace_id, token=token)
    language, booking, terms = (
        render.preferred_language(request),
        requested.booking,
        requested.request,
    )
    currency = currency_of(workspace_id)
    facts = booking_facts(language, booking, currency)
    if due := terms.get("amountDue"):
        minutes = timedelta(minutes=terms.get("refundUntilMin") or 0)
        last = datetime.fromisoformat(booking["startAt"]) - minutes
        facts += payment_facts(
            language,
            booking,
            currency,
            due=due,
            left=booking["price"] - due,
            refund_until=clock.iso(last),
        )
    return brand_pages.show(
        request,
        workspace_id,
        "linked",
        mark="calendar-check",
        heading="book_link",
        about="book_link_about",
        due=price_text(language, due or 0, currency),
        button="book_link_submit",
        facts=facts,
        with_place=True,
        nearest=(),
        link=None,
    )


def _book(request: HttpRequest) -> HttpResponse:
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    try:
        token = request.path["token"]
        # A forged token ends here, before the call is counted or read from the database.
        booking_links.parse(token)
        # The token is also the idempotency key, so a second click returns the first booking.
        response = call(request, "book_by_link", {"token": token}, token)
    except SlotUnavailableError as error:
        return _show_taken(request, error)
    return redirect(response["manageUrl"])


def _show_taken(request: HttpRequest, error: SlotUnavailableError) -> HttpResponse:
    language = render.preferred_language(request)
    return brand_pages.show(
        request,
        booking_links.parse(request.path["token"]).workspace_id,
        "linked",
        error.status,
        mark="triangle-alert",
        heading="book_link_taken",
        about="book_taken",
        due="",
        button=None,
        facts=(),
        with_place=False,
        nearest=[
            choice.text for choice in free_times.choices(language, error.details["alternatives"])
        ],
        link=None,
    )
