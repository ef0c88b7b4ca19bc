"""Refund payments at the provider, each refund once.

The service stores a refund before the request. While the result is unknown, the request is repeated
with the same idempotency key. Once the provider has forgotten the key, its list of refunds is read
first. So it is before a refused refund is sent again, because an earlier request may have been
carried out.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError
from chalicelib.core.jobs import Job, Postponed
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.payment_states import RefundReason
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import (
    DONE,
    FAILED,
    REQUESTED,
    SENT,
    PaymentRow,
    RefundRow,
)
from chalicelib.engine.unit import UnitOfWork, run_job_unit
from chalicelib.gateways.payments import (
    IDEMPOTENCY_HOURS,
    PaymentProvider,
    ProviderError,
    Receipt,
    RefundRequest,
    RefundState,
    UnknownOutcomeError,
)
from chalicelib.lib import currencies

# Returns the receipt of a refund, or None.
ReceiptOf = Callable[[PaymentRow, RefundRow], Receipt | None]
# Stages what follows from a refund that was done or has failed.
StageEnd = Callable[[PaymentRow, UnitOfWork, RefundRow], None]
CLOCK_DIFFERENCE = timedelta(minutes=5)  # by which the provider's clock is late, at most

log = logging.getLogger(__name__)


class RefundTooLargeError(ConflictError):
    """The refund exceeds ``refundable``, which is what is left of the payment."""

    code = "refund_too_large"


def stage(  # noqa: PLR0913  the parts of a refund
    unit: UnitOfWork,
    payment: PaymentRow,
    amount: int,
    *,
    by: str,
    reason: RefundReason,
    description: str | None = None,
) -> RefundRow:
    """Stage a refund of a payment, or raise RefundTooLargeError if less is left of the payment."""
    if not 0 < amount <= payment.refundable:
        msg = (
            f"amount: expected at most {payment.refundable} "
            f"{currencies.minor_units(payment.currency)}, received {amount}. Refund "
            "what is left of the payment."
        )
        raise RefundTooLargeError(msg, details={"refundable": payment.refundable})
    refund = payments.stage_refund(
        unit, payment, amount, by=by, reason=reason, description=description
    )
    total = int(payment.refund_total) + amount
    payments.stage_change(unit, payment, refund_total=total)
    payment.refund_total = total
    return refund


def stage_retry(unit: UnitOfWork, payment: PaymentRow, refund: RefundRow) -> None:
    """Stage another attempt of a refund that failed, or raise ConflictError if it has not."""
    if payment.is_imported:
        raise ConflictError(
            "This payment came from another stage. Refund it at its provider.", key="other_stage"
        )
    if refund.status != FAILED:
        msg = "Only a refund that failed can be sent again. Read the payment for its refunds."
        raise ConflictError(msg, key="refund_not_failed")
    payments.stage_refund_retry(unit, payment, refund)


def send(job: Job, receipt_of: ReceiptOf, stage_end: StageEnd) -> None:
    """Send a refund, or read its state at the provider.

    ``stage_end`` is called again if a refund that was done fails later. Raises Postponed while the
    result is not final, or UnavailableError.
    """
    workspace_id, payload = job.workspace_id, job.payload
    payment = payments.find(workspace_id, payment_id=payload["paymentId"])
    refund = payments.find_refund(
        workspace_id, payment_id=payload["paymentId"], refund_id=payload["refundId"]
    )
    if payment is None or refund is None or refund.status == FAILED:
        return
    refund, end = _mark_sent(job, refund), partial(stage_end, payment)
    try:
        provider, state = accounts.provider_of_payment(workspace_id, payment), None
        is_repeatable = _is_repeatable(refund)
        if refund.provider_id is None and (refund.attempt > 1 or not is_repeatable):
            state = _find_at_provider(workspace_id, provider, payment, refund)
            if state is None and not is_repeatable:
                refund = _mark_sent(job, refund, is_new_attempt=True)
        state = state or _request(provider, payment, refund, receipt_of)
    except UnknownOutcomeError:
        log.warning("a refund's state is unknown", extra={"refund": refund.id})
        raise _later(refund) from None
    except ProviderError as error:
        if refund.provider_id is not None:  # The provider has the refund, and does not show it.
            log.warning("a refund's state is refused", extra={"reason": error.reason})
            raise _later(refund) from None
        _record(job, refund, end, status=FAILED, failure=error.reason)
        return
    if refund.status == DONE and state.status != "failed":
        return
    if state.status == "pending":
        _record(job, refund, None, provider_id=state.provider_id)
        raise _later(refund)
    status = DONE if state.status == "done" else FAILED
    failure = {} if status == DONE else {"failure": "The provider did not carry out the refund."}
    _record(job, refund, end, status=status, provider_id=state.provider_id, **failure)


def _later(refund: RefundRow) -> Postponed:
    now = clock.now()
    return Postponed(payment_states.next_refund_check(refund.first_sent_at or now, now=now))


def _is_repeatable(refund: RefundRow) -> bool:
    return payments.is_repeatable(refund.first_sent_at, IDEMPOTENCY_HOURS)


def _request(
    provider: PaymentProvider, payment: PaymentRow, refund: RefundRow, receipt_of: ReceiptOf
) -> RefundState:
    if refund.provider_id is not None:
        return provider.refund_state(refund.provider_id)
    amount = int(refund.amount)
    # YooKassa makes the receipt of a whole refund from the payment's, also after an erasure.
    is_whole = amount == payment.amount and payment.receipt_closed_at is None
    return provider.refund(
        RefundRequest(
            payment.provider_id or "",
            payment.payment_ref,
            amount,
            payment.currency,
            refund.idempotency_key,
            None if is_whole else receipt_of(payment, refund),
        )
    )


def _find_at_provider(
    workspace_id: str, provider: PaymentProvider, payment: PaymentRow, refund: RefundRow
) -> RefundState | None:
    known_ids = {row.provider_id for row in payments.refunds_of(workspace_id, [payment.id])}
    first = refund.created_at - CLOCK_DIFFERENCE
    for state in provider.list_refunds(payment.provider_id or "", payment.payment_ref):
        is_ours = state.amount == int(refund.amount) and state.provider_id not in known_ids
        is_ours = is_ours and (state.created_at is None or state.created_at >= first)
        if is_ours and state.status != "failed":
            return state
    return None


def _mark_sent(job: Job, refund: RefundRow, *, is_new_attempt: bool = False) -> RefundRow:
    # The time is stored before the request, so it is never later than the provider's.
    if refund.status != REQUESTED and not is_new_attempt:
        return refund
    attempt = int(refund.attempt) + is_new_attempt

    def stage(unit: UnitOfWork) -> None:
        row = _read(job, refund)
        if (row.status, row.attempt) == (refund.status, refund.attempt):
            payments.stage_refund_change(
                unit, row, status=SENT, first_sent_at=clock.now(), attempt=attempt
            )

    run_job_unit(job, stage)
    return _read(job, refund)


def _record(
    job: Job,
    refund: RefundRow,
    stage_end: Callable[[UnitOfWork, RefundRow], None] | None,
    **values: Any,  # noqa: ANN401  the row's attributes
) -> None:
    def stage(unit: UnitOfWork) -> None:
        row = _read(job, refund)
        if (row.status, row.attempt) != (refund.status, refund.attempt):
            return  # Another run was first.
        if "status" in values:
            values["ended_at"] = clock.now()
        payments.stage_refund_change(unit, row, **values)
        if stage_end is not None:
            row.status = values["status"]
            stage_end(unit, row)

    run_job_unit(job, stage)


def _read(job: Job, refund: RefundRow) -> RefundRow:
    row = payments.find_refund(job.workspace_id, payment_id=refund.payment_id, refund_id=refund.id)
    return row if row is not None else refund
