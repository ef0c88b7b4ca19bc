"""Take the payments of bookings, and decide what follows.

A payment in time confirms its booking. A payment that arrives after the hold has expired confirms
the booking if a new one could have its time. Otherwise it is refunded, as is a second payment
(``rules.payment_effects``, ADR 84). The client is told of each refund when it begins and ends.
"""

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, NamedTuple, cast
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.events import REFUNDED_EVENT
from chalicelib.core.ids import first_id_at
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.bookings.flows import booking_changes, booking_links, holds
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.holds import LAPSE
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.rules.job_kinds import CLOSE_RECEIPT, MAIL_CLIENT
from chalicelib.domains.bookings.rules.payment_effects import Effect, PaidBooking, effect_of
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.payments.flows import accounts, refunds, settling
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS, REFUND_JOBS
from chalicelib.domains.payments.rules.payment_states import RefundReason
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import (
    DONE,
    FAILED,
    REQUESTED,
    SENT,
    PaymentRow,
    RefundRow,
)
from chalicelib.engine import jobs
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.gateways.payments import (
    IDEMPOTENCY_HOURS,
    PaymentMode,
    PaymentState,
    ProviderError,
    Receipt,
    UnknownOutcomeError,
)

BOOKING: Final = "booking"
MAX_PAYMENTS = 20  # of one booking
# Time for which an expired hold waits for a provider that does not respond.
LAPSE_PATIENCE = timedelta(minutes=10)
# After this time, the provider ends a payment if it can. Stripe requires 30 minutes or more.
OPEN_FOR = timedelta(minutes=31)
RefundState = Literal["failed", "returning", "returned"]
# Statuses of refunds by the state that a client sees.
REFUND_STATES: Mapping[RefundState, Collection[str]] = {
    "failed": {FAILED},
    "returning": {REQUESTED, SENT},
    "returned": {DONE},
}
CREATION = timedelta(minutes=1)  # Within it, the creation of a payment is repeated with its key.

log = logging.getLogger(__name__)


class NotPayableError(ConflictError):
    """The booking is already paid, it is cancelled, or its hold has expired."""

    code = "not_payable"


def stage_payment(unit: UnitOfWork, booking: BookingRow) -> PaymentRow:
    """Return the open payment of a booking, or stage a new one. Raises NotPayableError."""
    if not booking.is_payable:
        raise NotPayableError(
            "This booking cannot be paid now. Open its page again.", key="not_payable_now"
        )
    latest_id = booking.latest_payment_id
    latest = latest_id and payments.find(unit.workspace_id, payment_id=latest_id)
    description = describe(booking)
    currency = currency_of(unit.workspace_id)
    is_current = latest and (latest.description, latest.currency) == (description, currency)
    if latest and latest.is_open and is_current and not _is_stuck(latest):
        return latest
    merchant = merchants.find_current(unit.workspace_id)
    url = booking_links.pay_url(unit.workspace_id, booking)
    if merchant is None or url is None or len(booking.payment_ids or ()) >= MAX_PAYMENTS:
        raise NotPayableError(
            "This booking cannot be paid online. Contact the business.", key="not_payable_online"
        )
    payment = payments.new(
        unit.workspace_id,
        BOOKING,
        currency,
        subject_id=booking.id,
        merchant_id=merchant.merchant_id,
        amount=int(booking.due or 0),
        description=description,
        mode=_mode(unit.workspace_id, booking),
        return_url=f"{url}?back=1",
        expires_at=clock.now() + OPEN_FOR,
        has_receipt=merchant.vat_code is not None,
    )
    payments.stage_new(unit, payment)
    booking.payment_ids = [*(booking.payment_ids or ()), payment.id]
    unit.save(booking)
    return payment


def describe(booking: BookingRow) -> str:
    """Return what the provider's page and receipts name, with the current start of a booking.

    Of a visit, it is the first service and the number of further ones.
    """
    local = booking.starts_at.astimezone(ZoneInfo(booking.timezone))
    further = f" (+{len(booking.visit) - 1})" if booking.visit else ""
    return f"{booking.service_name}{further}, {local:%d.%m.%Y %H:%M}"


def _is_stuck(payment: PaymentRow) -> bool:
    # The provider did not create the payment in time: Stripe repeats a stored error for the key of
    # a request. Nobody has the address of the payment's page, so another payment may follow.
    return payment.provider_id is None and clock.now() - payment.created_at > CREATION


def receipt_of(
    payment: PaymentRow, amount: int, *, workspace_id: str, description: str | None = None
) -> Receipt | None:
    """Return the receipt of a payment or a refund, or None if it has none.

    The description must be the same for a repeated request, so it is stored. By default, it is the
    payment's.
    """
    booking = BOOKINGS.find(workspace_id, record_id=payment.subject_id)
    if booking is None or not payment.has_receipt:
        return None
    return accounts.receipt_of(
        accounts.merchant_of(workspace_id, payment),
        booking.client_email,
        phone=booking.client_phone,
        description=description or payment.description,
        amount=amount,
        # After the closing receipt, a refund is one of the service.
        mode="full_payment" if payment.receipt_closed_at else cast("PaymentMode", payment.mode),
    )


def kept_in_time(booking: BookingRow, payment: PaymentRow | None) -> int:
    """Return the paid amount that a cancellation now gives a claim to."""
    if payment is None or clock.now() > booking.refund_limit:
        return 0
    return payment.kept


def refund_for_client(booking: BookingRow, payment: PaymentRow | None) -> int:
    """Return the amount that the client's own cancellation refunds now."""
    # An imported payment is refunded by the business at its provider.
    return 0 if payment is None or payment.is_imported else kept_in_time(booking, payment)


class ShownRefund(NamedTuple):
    """What a client sees of the refunds of a booking."""

    state: RefundState
    amount: int  # minor units
    reason: str | None


def shown_refund(workspace_id: str, booking: BookingRow) -> ShownRefund | None:
    """Return the refunds in the state that matters most, failed before returning, or None."""
    # A failed refund does not matter if the business has made it at the provider itself.
    rows = payments.refunds_of(workspace_id, list(booking.payment_ids or ()))
    payment = payment_of(workspace_id, booking)
    for state, statuses in REFUND_STATES.items():
        some = [row for row in rows if row.status in statuses]
        amount = sum(int(row.amount) for row in some)
        if state == "failed" and payment is not None and _is_made_elsewhere(payment, rows):
            continue
        if some:
            return ShownRefund(state, amount, some[-1].reason)
    if payment is not None and payment.refunded_at_provider > 0:
        return ShownRefund("returned", int(payment.refunded_at_provider), "business")
    return None


def _is_made_elsewhere(payment: PaymentRow, refunds: list[RefundRow]) -> bool:
    """Return whether the business has made at the provider what has failed here."""
    own = [row for row in refunds if row.payment_id == payment.id]
    failed = sum(int(row.amount) for row in own if row.status == FAILED)
    return payments.refunded_elsewhere(own, int(payment.refunded_at_provider)) >= failed


def failed_refunds(workspace_id: str, since: datetime) -> list[tuple[PaymentRow, RefundRow]]:
    """Return the refunds that failed, of payments since a moment, newest payment first.

    Those that the business has made at the provider are left out.
    """
    rows = payments.refunds_since(workspace_id, first_id_at(since))
    failed = [row for row in rows if row.status == FAILED]
    paid = payments.fetch(workspace_id, [row.payment_id for row in failed]) if failed else []
    return [
        (payment, row)
        for payment in paid
        if payment.purpose == BOOKING and not _is_made_elsewhere(payment, rows)
        for row in failed
        if row.payment_id == payment.id
    ]


def payment_of(workspace_id: str, booking: BookingRow) -> PaymentRow | None:
    """Return the payment that has paid a booking, or None. That of a visit is with its first."""
    return payments.find(workspace_id, payment_id=booking.paid_by) if booking.paid_by else None


def stage_refund_for_client(unit: UnitOfWork, booking: BookingRow, by: str) -> None:
    """Stage the refund for a cancellation by the client, if the client gets one."""
    payment = payment_of(unit.workspace_id, booking)
    amount = refund_for_client(booking, payment)
    if payment is not None and amount > 0:
        stage_refund(unit, payment, amount, by=by, reason="cancelled")


def stage_refund(
    unit: UnitOfWork, payment: PaymentRow, amount: int, *, by: str, reason: RefundReason
) -> RefundRow:
    """Stage a refund and the client's e-mail. Raises RefundTooLargeError if less is left."""
    booking = BOOKINGS.find(unit.workspace_id, record_id=payment.subject_id)
    refund = refunds.stage(
        unit,
        payment,
        amount,
        by=by,
        reason=reason,
        description=None if booking is None else describe(booking),
    )
    _stage_mail(unit, payment, refund)
    return refund


def stage_retry(unit: UnitOfWork, payment: PaymentRow, refund: RefundRow) -> None:
    """Stage a failed refund again, with an e-mail. Raises ConflictError if it has not failed."""
    refunds.stage_retry(unit, payment, refund)
    refund.status = REQUESTED
    _stage_mail(unit, payment, refund)


def settle(workspace_id: str, payment_id: str, *, ends: bool = False) -> PaymentRow:
    """Ask for the state of a booking's payment, and apply it. Raises as ``settling.settle``."""
    ask = partial(
        settling.settle,
        workspace_id,
        payment_id=payment_id,
        stage_return=_stage_return,
        ends=ends,
    )
    try:
        return ask(stage_success=_stage_success)
    except SlotUnavailableError:
        return ask(stage_success=partial(_stage_success, is_free=False))


def settle_latest(workspace_id: str, booking: BookingRow) -> None:
    """Settle the latest payment of a booking, unless the provider fails."""
    payment_id = booking.latest_payment_id
    if payment_id is not None:
        with suppress(NotFoundError, ProviderError, UnknownOutcomeError):
            payment = payments.require(workspace_id, payment_id=payment_id)
            # A page of the provider that names the former start of a booking is ended if possible.
            settle(workspace_id, payment_id, ends=payment.description != describe(booking))


@job_handler(PAYMENT_JOBS[BOOKING])
def follow_payment(job: Job) -> None:
    """Ask for the state of a booking's payment until it is final."""
    settling.follow(job, settle)


@job_handler(REFUND_JOBS[BOOKING])
def send_refund(job: Job) -> None:
    """Send the refund of a booking's payment, and tell the client and the members of its end."""

    def receipt(payment: PaymentRow, refund: RefundRow) -> Receipt | None:
        return receipt_of(
            payment,
            int(refund.amount),
            workspace_id=job.workspace_id,
            description=refund.description,
        )

    refunds.send(job, receipt, _stage_refund_end)


@job_handler(LAPSE)
def lapse(job: Job) -> None:
    """Cancel an unpaid booking, unless its hold has ended or was replaced."""
    workspace_id, booking_id = job.workspace_id, job.payload["booking"]

    def is_current(booking: BookingRow | None) -> bool:
        # The payload names the moment of expiry: a booking that was held again has another job.
        return booking is not None and holds.expiry(booking) == job.payload

    booking = BOOKINGS.find(workspace_id, record_id=booking_id)
    if booking is None or not is_current(booking):
        return
    payment_id = bookings.first_of(workspace_id, booking).latest_payment_id
    if payment_id is not None:
        # The client may have paid in time. Raises Postponed if the provider does not respond.
        _end_payment(workspace_id, booking, payment_id)

    def stage(unit: UnitOfWork) -> None:
        booking = BOOKINGS.find(workspace_id, record_id=booking_id)
        if booking is not None and is_current(booking):
            reason = "The booking was not paid in time."
            requested = BookingChange("job", "cancelled", reason=reason, is_lapse=True)
            booking_changes.change(unit, booking, requested)

    run_job_unit(job, stage)


@job_handler(CLOSE_RECEIPT)
def close_receipt(job: Job) -> None:
    """Send the closing receipt of a booking that took place, once."""
    workspace_id = job.workspace_id
    booking = BOOKINGS.find(workspace_id, record_id=job.payload["bookingId"])
    payment = payment_of(workspace_id, booking) if booking else None
    if booking is None or payment is None or payment.receipt_closed_at is not None:
        return
    if accounts.merchant_of(workspace_id, payment).receipts_closed_by == "register":
        return
    description = payment.receipt_description or describe(booking)
    receipt = receipt_of(
        payment, payment.refundable, workspace_id=workspace_id, description=description
    )
    visit = bookings.visit_of(workspace_id, booking)
    if not bookings.has_taken_place(visit) or receipt is None or payment.refundable <= 0:
        return
    if payment.receipt_sent_at is None:
        _change_receipt(job, payment, receipt_sent_at=clock.now(), receipt_description=description)
    elif not payments.is_repeatable(payment.receipt_sent_at, IDEMPOTENCY_HOURS):
        log.error("a closing receipt was not sent in time", extra={"payment": payment.id})
        return
    try:
        provider = accounts.provider_of_payment(workspace_id, payment)
        receipt = receipt._replace(payment_mode="full_payment")
        provider.closing_receipt(payment.provider_id or "", receipt, f"{payment.id}-closing")
    except UnknownOutcomeError:
        raise Postponed(clock.now() + payment_states.REFUND_PAUSE) from None
    except ProviderError as error:
        log.error("a closing receipt was refused", extra={"reason": error.reason})  # noqa: TRY400  the reason says all
        return
    _change_receipt(job, payment, receipt_closed_at=clock.now())


def _change_receipt(job: Job, payment: PaymentRow, **values: datetime | str) -> None:
    def stage(unit: UnitOfWork) -> None:
        row = payments.require(job.workspace_id, payment_id=payment.id)
        payments.stage_change(unit, row, **values)

    run_job_unit(job, stage)


def _end_payment(workspace_id: str, booking: BookingRow, payment_id: str) -> None:
    try:
        settle(workspace_id, payment_id, ends=True)
    except (ProviderError, UnknownOutcomeError):
        expires = booking.hold_expires_at
        if expires is not None and clock.now() < expires + LAPSE_PATIENCE:
            raise Postponed(clock.now() + timedelta(minutes=1)) from None


def _stage_success(unit: UnitOfWork, payment: PaymentRow, *, is_free: bool = True) -> int:
    # Returns the amount that is refunded. ``is_free`` is False if the time is known to be
    # unavailable.
    booking, amount = (
        BOOKINGS.find(unit.workspace_id, record_id=payment.subject_id),
        int(payment.amount),
    )
    paid = (
        None
        if booking is None
        else PaidBooking(
            status=booking.status,
            starts_at=booking.starts_at,
            hold_ends_at=booking.hold_expires_at,
            has_lapsed=bool(booking.has_lapsed),
            is_paid=booking.paid_by is not None,
            is_erased=booking.token_secret is None,
            is_free=is_free,
        )
    )
    effect = effect_of(paid, paid_at=payment.paid_at, now=clock.now())
    if booking is None or effect not in {Effect.CONFIRM, Effect.BOOK_AGAIN, Effect.RECORD}:
        refund = payments.stage_refund(
            unit, payment, amount, by="job", reason=cast("RefundReason", effect.value)
        )
        _stage_mail(unit, payment, refund)
        return amount
    booking.paid_by, booking.paid = payment.id, amount
    if effect is Effect.RECORD:
        unit.save(booking)
        if bookings.has_taken_place(bookings.visit_of(unit.workspace_id, booking)):
            booking_changes.stage_receipt_job(unit, booking)
        return 0
    is_booked_again = effect is Effect.BOOK_AGAIN
    requested = BookingChange("job", "confirmed", is_booked_again=is_booked_again)
    booking_changes.change(unit, booking, requested)
    return 0


def _stage_refund_end(payment: PaymentRow, unit: UnitOfWork, refund: RefundRow) -> None:
    _stage_mail(unit, payment, refund)
    unit.mention(f"booking:{payment.subject_id}")
    if refund.status == FAILED:
        unit.outbox.emit(Event("booking.refund_failed", payment.subject_id))
    elif refund.status == DONE:
        unit.outbox.emit(Event("booking.refund_done", payment.subject_id))


def _stage_return(unit: UnitOfWork, payment: PaymentRow, state: PaymentState) -> int:
    """Tell the client and the members of what the business has refunded at the provider itself.

    Members are told of what the client's bank has taken back, too.

    Returns the amount of which they are told in all. What this service has refunded has its own
    e-mail.
    """
    ours = payments.refunds_of(unit.workspace_id, [payment.id])
    if state.disputed > int(payment.disputed):
        unit.outbox.emit(Event("booking.disputed", payment.subject_id))
    total = payments.refunded_elsewhere(ours, state.refunded)
    told = int(payment.returned)
    if total <= told:
        return told
    _stage_mail_of(
        unit,
        payment,
        {"paymentId": payment.id, "refundId": "", "status": DONE, "amount": total - told},
    )
    unit.outbox.emit(Event("booking.refund_done", payment.subject_id))
    return total


def _stage_mail(unit: UnitOfWork, payment: PaymentRow, refund: RefundRow) -> None:
    """Stage the e-mail which tells the client of the state of a refund."""
    _stage_mail_of(
        unit,
        payment,
        {"paymentId": payment.id, "refundId": refund.id, "status": refund.status},
    )


def _stage_mail_of(unit: UnitOfWork, payment: PaymentRow, refund: dict[str, Any]) -> None:
    payload = {
        "bookingId": payment.subject_id,
        "events": [REFUNDED_EVENT],
        "previousStatus": None,
        "at": iso(clock.now()),
        "actor": "job",
        "refund": refund,
    }
    unit.create(jobs.row(MAIL_CLIENT, unit.workspace_id, payload))


def price_of(workspace_id: str, booking: BookingRow) -> int:
    """Return the price of a booking, or of the visit that it belongs to."""
    return sum(int(each.price) for each in bookings.visit_of(workspace_id, booking))


def _mode(workspace_id: str, booking: BookingRow) -> PaymentMode:
    price = price_of(workspace_id, booking)
    return "prepayment" if int(booking.due or 0) < price else "full_prepayment"
