"""The page behind the link that pays a booking.

Programs that check links send GET, which therefore opens no payment. The page needs no script and
no session, because its address is the secret.
"""

from typing import Any

from chalicelib.domains.bookings.flows import booking_links
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.transports import form_data
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
    redirect,
)
from chalicelib.transports.web import brand_pages, render, texts
from chalicelib.transports.web.booking_facts import booking_facts, payment_facts, price_text
from chalicelib.transports.web.visitor_requests import call, query_value

PAYABLE = ("payable", "pending", "declined")  # States in which the client can pay.
ICONS = {
    "payable": "wallet",
    "pending": "clock",
    "declined": "triangle-alert",
    "paid": "circle-check",
    "returning": "clock",
    "returned": "circle-check",
    "failed": "triangle-alert",
    "ended": "ban",
}


def show(request: HttpRequest) -> HttpResponse:
    """Show a booking with the button that leads to the payment provider, or with its state."""
    return render.private(_show)(request)


def pay(request: HttpRequest) -> HttpResponse:
    """Open a payment, or the same one after a second click, and lead to the provider's page."""
    return render.private(_pay)(request)


def _show(request: HttpRequest) -> HttpResponse:
    token = request.path["token"]
    # A malformed link costs no request to the database.
    workspace_id = booking_links.parse(token).workspace_id
    currency = currency_of(workspace_id)
    is_back = bool(query_value(request, "back"))
    payable: dict[str, Any] = call(
        request, "get_payable_booking", {"token": token, "isBack": is_back}
    )
    language, state = render.preferred_language(request), payable["state"]
    is_payable, booking = state in PAYABLE, payable["booking"]
    facts = booking_facts(language, booking, currency)
    if is_payable or state == "paid":
        facts += payment_facts(
            language,
            booking,
            currency,
            due=payable["due"] if is_payable else 0,
            paid=None if is_payable else payable["due"],
            left=payable["left"],
            refund_until=payable["refundUntil"],
            held_until=payable["holdExpiresAt"],
        )
    about, link = f"pay_{state}_about", None
    if state == "paid":
        about = f"pay_paid_mail_{payable['mail']}"
        link = None if payable["mail"] == "sent" else (payable["icsUrl"], "booked_calendar")
    if payable["refund"] is not None:
        price = price_text(language, payable["refund"], currency)
        facts.append(("wallet", texts.translate(language, "pay_refund"), price))
        about = f"pay_refund_{state}"
    if payable["refundReason"] is not None:
        reason = texts.translate(language, f"pay_reason_{payable['refundReason']}")
        facts.append(("scroll-text", texts.translate(language, "pay_reason"), reason))
    response = brand_pages.show(
        request,
        workspace_id,
        "linked",
        mark=ICONS[state],
        heading=f"pay_{state}",
        about=about,
        due=price_text(language, payable["due"], currency) if is_payable else "",
        button="pay_submit" if is_payable else None,
        facts=facts,
        with_place=is_payable or state == "paid",
        nearest=(),
        link=link,
    )
    return response._replace(headers=render.allow_form_redirects(response.headers))


def _pay(request: HttpRequest) -> HttpResponse:
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    booking_links.parse(request.path["token"])
    return redirect(call(request, "pay_booking", {"token": request.path["token"]})["paymentUrl"])
