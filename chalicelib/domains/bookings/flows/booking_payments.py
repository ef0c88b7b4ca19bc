"""Take the payments of bookings, and decide what follows.

A payment in time confirms its booking. A payment that arrives after the hold has expired confirms
the booking if its time is still free. Otherwise it is refunded, as is a second payment (ADR 84).
"""

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final, cast
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.events import REFUNDED_EVENT
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.bookings.flows import booking_changes, booking_links, holds
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.holds import LAPSE
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.rules.job_kinds import CLOSE_RECEIPT, MAIL_CLIENT
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.payments.flows import accounts, refunds, settling
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS, REFUND_JOBS
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.payments import PaymentRow
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.payments import (
    IDEMPOTENCY_HOURS,
    PaymentMode,
    ProviderError,
    Receipt,
    UnknownOutcomeError,
)

BOOKING: Final = "booking"
MAX_PAYMENTS = 20
"""Maximum payments that are opened for a booking."""
LAPSE_PATIENCE = timedelta(minutes=10)
"""Time for which an expired hold waits for a provider that does not respond."""
OPEN_FOR = timedelta(minutes=31)
"""Time until the provider ends a payment if it can. Stripe requires 30 minutes or more."""
NEVER = 100 * 365 * 24 * 60
"""Minutes before the start after which the cancellation of any booking is not refunded."""
CREATION = timedelta(minutes=1)
"""Time in which the creation of a payment is repeated with its key."""

log = logging.getLogger(__name__)


class NotPayableError(ConflictError):
    """The booking is already paid, it is cancelled, or its hold has expired."""

    code = "not_payable"


def stage_payment(unit: UnitOfWork, booking: BookingRow) -> PaymentRow:
    """Return the open payment of a booking, or stage a new one.

    Raises:
        NotPayableError: the booking cannot be paid now.
    """
    if not booking.is_payable:
        raise NotPayableError("This booking cannot be paid now. Open its page again.")
    latest_id = booking.latest_payment_id
    latest = latest_id and payments.find(unit.workspace_id, latest_id)
    if latest and latest.is_open and not _is_stuck(latest):
        return latest
    merchant = merchants.find_current(unit.workspace_id)
    url = booking_links.pay_url(unit.workspace_id, booking)
    if merchant is None or url is None or len(booking.payment_ids or ()) >= MAX_PAYMENTS:
        raise NotPayableError("This booking cannot be paid online. Contact the business.")
    local = booking.starts_at.astimezone(ZoneInfo(booking.timezone))
    payment = payments.new(
        unit.workspace_id,
        BOOKING,
        subject_id=booking.id,
        merchant_id=merchant.merchant_id,
        amount=int(booking.due or 0),
        description=f"{booking.service_name}, {local:%d.%m.%Y %H:%M}",
        mode=_mode(booking),
        return_url=f"{url}?back=1",
        expires_at=clock.now() + OPEN_FOR,
        has_receipt=merchant.vat_code is not None,
    )
    payments.stage_new(unit, payment)
    booking.payment_ids = [*(booking.payment_ids or ()), payment.id]
    unit.save(booking)
    return payment


def _is_stuck(payment: PaymentRow) -> bool:
    """Return whether the provider did not create a payment, although it was asked a while ago.

    Stripe repeats a stored error for the key of a request. Nobody has the address of its page, so
    another payment may follow.
    """
    return payment.provider_id is None and clock.now() - payment.created_at > CREATION


def due(workspace_id: str, service: ServiceRow) -> int | None:
    """Return the kopecks that a visitor pays in advance, or None if a service is not paid online.

    The account at the provider is read only if the service requires payment.
    """
    if not service.require_payment or service.price <= 0:
        return None
    if merchants.find_current(workspace_id) is None:
        return None
    return payment_states.deposit(int(service.price), service.terms.deposit_percent)


def receipt_of(payment: PaymentRow, amount: int, *, workspace_id: str) -> Receipt | None:
    """Return the receipt of a payment or a refund, which names the contacts of the booking."""
    booking = BOOKINGS.find(workspace_id, payment.subject_id)
    if booking is None or not payment.has_receipt:
        return None
    return accounts.receipt_of(
        accounts.merchant_of(workspace_id, payment),
        booking.client_email,
        booking.client_phone,
        payment.description,
        amount,
        # After the closing receipt, a refund is one of the service.
        "full_payment" if payment.receipt_closed_at else cast("PaymentMode", payment.mode),
    )


def refund_for_client(booking: BookingRow, payment: PaymentRow | None) -> int:
    """Return the kopecks that the client gets back for a cancellation now."""
    limit = timedelta(minutes=int(booking.refund_until_min or 0))
    if payment is None or booking.starts_at - clock.now() < limit:
        return 0
    return payment.refundable


def end_refunds_for_client(workspace_id: str, booking: BookingRow) -> None:
    """End refunds of a booking that its client moves, if the time for refunds has passed.

    Otherwise the client would move the booking, and cancel it in time.
    """
    payment = payment_of(workspace_id, booking)
    if payment is not None and refund_for_client(booking, payment) == 0:
        booking.refund_until_min = NEVER


def payment_of(workspace_id: str, booking: BookingRow) -> PaymentRow | None:
    """Return the payment that has paid a booking, or None."""
    return payments.find(workspace_id, booking.paid_by) if booking.paid_by else None


def stage_refund_for_client(unit: UnitOfWork, booking: BookingRow, by: str) -> None:
    """Stage the refund for a cancellation by the client, if the client gets one."""
    payment = payment_of(unit.workspace_id, booking)
    amount = refund_for_client(booking, payment)
    if payment is not None and amount > 0:
        refunds.stage(unit, payment, amount, by)


def settle(workspace_id: str, payment_id: str, *, ends: bool = False) -> PaymentRow:
    """Ask for the state of a booking's payment, and apply the state.

    Raises as ``settling.settle``.
    """
    try:
        return settling.settle(workspace_id, payment_id, _stage_success, ends=ends)
    except SlotUnavailableError:
        stage = partial(_stage_success, is_taken=True)
        return settling.settle(workspace_id, payment_id, stage, ends=ends)


def settle_if_possible(workspace_id: str, payment_id: str | None) -> None:
    """Settle a payment, unless the provider fails."""
    if payment_id is not None:
        with suppress(NotFoundError, ProviderError, UnknownOutcomeError):
            settle(workspace_id, payment_id)


@job_handler(PAYMENT_JOBS[BOOKING])
def follow_payment(job: Job) -> None:
    """Ask for the state of a booking's payment until it is final."""
    settling.follow(job, settle)


@job_handler(REFUND_JOBS[BOOKING])
def send_refund(job: Job) -> None:
    """Send the refund of a booking's payment."""
    refunds.send(job, partial(receipt_of, workspace_id=job.workspace_id))


@job_handler(LAPSE)
def lapse(job: Job) -> None:
    """Cancel an unpaid booking, unless its hold has ended or was replaced.

    The provider is asked first, because the client may have paid in time.

    Raises:
        Postponed: the provider did not respond.
    """
    workspace_id, booking_id = job.workspace_id, job.payload["booking"]

    def is_current(booking: BookingRow | None) -> bool:
        # The payload names the moment of expiry: a booking that was held again has another job.
        return booking is not None and holds.expiry(booking) == job.payload

    booking = BOOKINGS.find(workspace_id, booking_id)
    if booking is None or not is_current(booking):
        return
    if booking.latest_payment_id is not None:
        _end_payment(workspace_id, booking, booking.latest_payment_id)

    def stage(unit: UnitOfWork) -> None:
        booking = BOOKINGS.find(workspace_id, booking_id)
        if booking is not None and is_current(booking):
            reason = "The booking was not paid in time."
            requested = BookingChange("job", "cancelled", reason=reason, is_lapse=True)
            booking_changes.change(unit, booking, requested)

    run_job_unit(job, stage)


@job_handler(CLOSE_RECEIPT)
def close_receipt(job: Job) -> None:
    """Send the closing receipt of a booking that took place, once.

    Raises:
        Postponed: the provider did not respond.
    """
    workspace_id = job.workspace_id
    booking = BOOKINGS.find(workspace_id, job.payload["bookingId"])
    payment = payment_of(workspace_id, booking) if booking else None
    if booking is None or payment is None or payment.receipt_closed_at is not None:
        return
    receipt = receipt_of(payment, payment.refundable, workspace_id=workspace_id)
    if booking.status != "completed" or receipt is None or payment.refundable <= 0:
        return
    if payment.receipt_sent_at is None:
        _change_receipt(job, payment, receipt_sent_at=clock.now())
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


def _change_receipt(job: Job, payment: PaymentRow, **times: datetime) -> None:
    def stage(unit: UnitOfWork) -> None:
        row = payments.require(job.workspace_id, payment.id)
        payments.stage_change(unit, row, **times)

    run_job_unit(job, stage)


def _end_payment(workspace_id: str, booking: BookingRow, payment_id: str) -> None:
    """End the payment of an expired hold at the provider, and apply its state."""
    try:
        settle(workspace_id, payment_id, ends=True)
    except (ProviderError, UnknownOutcomeError):
        expires = booking.hold_expires_at
        if expires is not None and clock.now() < expires + LAPSE_PATIENCE:
            raise Postponed(clock.now() + timedelta(minutes=1)) from None


def _stage_success(unit: UnitOfWork, payment: PaymentRow, *, is_taken: bool = False) -> int:
    """Stage what follows from a payment, and return the kopecks to refund immediately.

    ``is_taken`` says that the time of the booking is no longer free.

    Raises:
        SlotUnavailableError: the time of the booking is no longer free.
    """
    booking, amount = BOOKINGS.find(unit.workspace_id, payment.subject_id), int(payment.amount)
    if booking is None:
        return amount
    is_first = booking.paid_by is None
    if is_first and booking.status in {"confirmed", "completed", "no_show"}:
        # A member or a key has confirmed the hold by hand, so the money is only recorded.
        booking.paid_by, booking.paid = payment.id, amount
        unit.save(booking)
        booking_changes.stage_closing_receipt(unit, booking)
        return 0
    has_time = booking.status == "pending_payment" or (
        bool(booking.has_lapsed) and booking.starts_at > clock.now()
    )
    if is_first and has_time and not is_taken:
        booking.paid_by, booking.paid = payment.id, amount
        booking_changes.change(unit, booking, BookingChange("job", "confirmed"))
        return 0
    _stage_mail(unit, booking)
    return amount


def _stage_mail(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the e-mail which tells the client that the payment is refunded."""
    payload = {
        "bookingId": booking.id,
        "events": [REFUNDED_EVENT],
        "previousStatus": None,
        "at": iso(clock.now()),
        "actor": "job",
    }
    unit.create(jobs.row(MAIL_CLIENT, unit.workspace_id, payload))


def _mode(booking: BookingRow) -> PaymentMode:
    return "prepayment" if int(booking.due or 0) < int(booking.price) else "full_prepayment"
