"""Pages of payments of bookings, and of their refunds."""

from datetime import date, datetime
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import (
    AppError,
    NotFoundError,
    PayloadTooLargeError,
    ValidationError,
)
from chalicelib.lib import currencies, zoned_times
from chalicelib.lib.markup import csv_text
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.console.leads import DELIMITERS, csv_file
from chalicelib.transports.console.record_states import add_states, compute_payment_state
from chalicelib.transports.http import HttpResponse, redirect

SIZE = 50
MAX_PAGE = 500  # Maximum payments of a day on one page.
MAX_ROWS = 5_000  # Maximum payments of a CSV file, as of leads.
COLUMNS = ("created", "paid_at", "service", "client", "state", "amount", "refunded", "reason")
Payment = dict[str, Any]


def index(request: ConsoleRequest) -> HttpResponse:
    """List the payments, newest first, or the payments of a day with their totals.

    With ``format=csv`` in the query, return the payments as a CSV file. An invalid day is ignored.
    """
    day = _day(request.query_value("day"))
    if request.query_value("format") == "csv":
        return _export(request, day)
    cursor = request.query_value("before")
    response = _read(request, day, cursor, MAX_PAGE if day else SIZE)
    zone = request.current_membership.workspace.timezone
    today = str(clock.local_day(clock.now(), zone))
    return request.page(
        "payments",
        payments=add_states(response["payments"], compute_payment_state),
        totals=response["totals"],
        next=response["next"],
        day=day,
        today=today,
        first=not cursor,
    )


def _export(request: ConsoleRequest, day: str) -> HttpResponse:
    zone = request.current_membership.workspace.timezone

    def local(moment: str | None) -> str | None:
        # The page's days are local, too.
        return moment and zoned_times.local_time(datetime.fromisoformat(moment), zone).text

    rows: list[list[csv_text.Cell]] = [
        [
            local(payment["createdAt"]),
            local(payment["paidAt"]),
            payment["serviceName"],
            payment["clientName"],
            request.translate(compute_payment_state(payment).text),
            currencies.cell(payment["amount"], payment["currency"]),
            currencies.cell(payment["refunded"], payment["currency"]),
            payment["reason"] or payment["problem"],
        ]
        for payment in _read_all(request, day)
    ]
    head: list[csv_text.Cell] = [request.translate(f"csv_payment_{name}") for name in COLUMNS]
    slug = request.current_membership.workspace.slug
    text = csv_text.write([head, *rows], DELIMITERS[request.language])
    return csv_file(text, name=f"{slug}-payments{f'-{day}' if day else ''}.csv")


def confirm_refund(request: ConsoleRequest) -> HttpResponse:
    """Show the form that refunds a payment, or sends a failed refund again."""
    return _refund_page(request)


def refund(request: ConsoleRequest) -> HttpResponse:
    """Refund a payment, or send a failed refund again."""
    payment = find_payment(request)
    payment_id, currency = payment["id"], payment["currency"]
    try:
        if refund_id := request.form_value("retry"):
            request.call("retry_refund", id=payment_id, refundId=refund_id)
        else:
            amount = typed_values.amount("amount", request.form_value("amount"), currency)
            if amount is None:  # The operation would refund what is left.
                raise ValidationError.of(
                    "amount", message=f"expected an amount in {currency}, received none"
                )
            request.call_once("refund_payment", id=payment_id, amount=amount)
    except NotFoundError:
        raise
    except AppError as error:
        problem = problem_at_fields(request, error, {"amount": "wrong_refund"})
        return _refund_page(request, error.status, problem)
    return redirect(f"{_booking_path(request)}?done=refund_requested")


def _read(request: ConsoleRequest, day: str, cursor: str | None, limit: int) -> dict[str, Any]:
    filters = ({"day": day} if day else {}) | ({"cursor": cursor} if cursor else {})
    response: dict[str, Any] = request.call("list_payments", limit=limit, **filters)
    return response


def _read_all(request: ConsoleRequest, day: str) -> list[Payment]:
    payments: list[Payment] = []
    cursor: str | None = None
    while len(payments) < MAX_ROWS:
        response = _read(request, day, cursor, MAX_PAGE)
        payments += response["payments"]
        cursor = response["next"]
        if cursor is None:
            return payments
    msg = f"A file has at most {MAX_ROWS:,} payments. Choose a day and download its payments."
    raise PayloadTooLargeError(msg, key="payments")


def payments_of(request: ConsoleRequest, booking_ids: list[str]) -> dict[str, list[Payment]]:
    """Return the payments of bookings, newest first, by booking."""
    payments: dict[str, list[Payment]] = {}
    if booking_ids and request.current_membership.may("list_payments"):
        rows = request.call("list_payments", bookingIds=booking_ids)["payments"]
        for payment in add_states(rows, compute_payment_state):
            payments.setdefault(payment["bookingId"], []).append(payment)
    return payments


def find_payment(request: ConsoleRequest, payment_id: str | None = None) -> Payment:
    """Return a payment of the page's booking, by default the path's, or raise NotFoundError."""
    booking_id, wanted_id = request.http.path["booking"], payment_id or request.http.path["payment"]
    # The payment of a visit is with its first booking.
    for found in payments_of(request, [booking_id]).values():
        for payment in found:
            if payment["id"] == wanted_id:
                return payment
    raise NotFoundError("The booking has no payment with this id.", key="payment")


def _refund_page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    payment = find_payment(request)
    retry_id = request.query_value("retry") or request.form_value("retry")
    typed_amount = request.form_value("amount")
    return request.page(
        "payment_refund",
        status,
        problem=problem,
        payment=payment,
        retry=retry_id,
        amount=typed_amount
        or typed_values.plain_amount(payment["refundable"], payment["currency"]),
        booking_path=_booking_path(request),
    )


def _booking_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/bookings/{request.http.path['booking']}"


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        return ""
