"""The page of the test merchant of test workspaces, where no money moves."""

from chalicelib.transports import form_data
from chalicelib.transports.http import (
    MAX_PUBLIC_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    check_body,
    redirect,
)
from chalicelib.transports.web import render
from chalicelib.transports.web.booking_facts import price_text
from chalicelib.transports.web.visitor_requests import call

OUTCOMES = {"pay": "paid", "decline": "declined"}


def show(request: HttpRequest) -> HttpResponse:
    """Show a payment, and what can become of it."""
    return render.private(_show)(request)


def settle(request: HttpRequest) -> HttpResponse:
    """Pay or decline a payment, and lead the client back."""
    return render.private(_settle)(request)


def _show(request: HttpRequest) -> HttpResponse:
    payment = call(request, "get_merchant_payment", {"id": request.path["id"]})
    language = render.preferred_language(request)
    return render.page(
        request,
        "pay_test.html",
        cached=False,
        is_test=True,
        payment=payment,
        price=price_text(language, payment["amount"], payment["currency"]),
        refunded=price_text(language, payment["refunded"], payment["currency"]),
    )


def _settle(request: HttpRequest) -> HttpResponse:
    check_body(request, *form_data.TYPES, limit=MAX_PUBLIC_BODY_BYTES)
    fields = form_data.last_values(request)
    arguments = {
        "id": request.path["id"],
        "outcome": OUTCOMES.get(fields.get("outcome", ""), "unchanged"),
        "refundsFail": "refundsFail" in fields,
    }
    return redirect(call(request, "settle_merchant_payment", arguments)["returnUrl"])
