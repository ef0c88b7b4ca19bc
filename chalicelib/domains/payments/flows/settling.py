"""Ask the provider for the state of a payment, and apply the state once.

A webhook is only a hint to ask. The status of the payment changes in the transaction of the
consequences, such as a confirmed booking. Of several runs that read the same state, one commits.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import Job, Postponed
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.payments.flows import accounts
from chalicelib.domains.payments.rules import payment_states
from chalicelib.domains.payments.rules.job_kinds import PAYMENT_JOBS
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.merchants import MerchantRow
from chalicelib.domains.payments.store.payments import (
    EXPIRED,
    SUCCEEDED,
    PaymentRow,
    ProviderIdTakenError,
)
from chalicelib.engine.unit import UnitOfWork, run_job_unit, run_unit
from chalicelib.gateways.payments import (
    IDEMPOTENCY_HOURS,
    PaymentState,
    ProviderError,
    UnknownOutcomeError,
)

# Stages what follows from a payment, whose ``paid_at`` is set, and returns the amount of the
# refund that it has staged.
StageSuccess = Callable[[UnitOfWork, PaymentRow], int]
# Stages what follows when more or less of a payment was refunded or disputed at the provider, and
# returns the amount whose consequences are staged in all, which the payment keeps as ``returned``.
StageReturn = Callable[[UnitOfWork, PaymentRow, PaymentState], int]
# Asks for the state of a workspace's payment and applies the state, as ``settle`` does.
Settle = Callable[[str, str], PaymentRow]

ANOTHER_PAYMENT = "another payment"

log = logging.getLogger(__name__)


def settle(
    workspace_id: str,
    *,
    payment_id: str,
    stage_success: StageSuccess,
    stage_return: StageReturn,
    ends: bool = False,
) -> PaymentRow:
    """Ask the provider for a payment's state, apply it, and return the payment.

    With ``ends``, the provider ends a pending payment if it can. ``stage_return`` follows what is
    refunded or disputed at the provider. Raises the errors of ``stage_success``, too.

    Raises:
        NotFoundError: the workspace has no payment with this id.
        ProviderError: the provider refused the request.
        UnknownOutcomeError: the provider failed or did not respond.
        UnavailableError: the database is unavailable.
    """
    payment = payments.require(workspace_id, payment_id=payment_id)
    if payment.provider_id is None:
        return payment
    event = AuditEvent.by_job(PAYMENT_JOBS[payment.purpose])
    try:
        merchant = accounts.merchant_of(workspace_id, payment)
        state = _read_state(workspace_id, payment, payment.provider_id, ends=ends)
    except ProviderError as error:
        reason = error.reason
        if payment.problem != reason:
            run_unit(workspace_id, event, partial(_stage_problem, payment_id, reason=reason))
        raise

    def stage(unit: UnitOfWork, problem: str | None = None) -> None:
        row = payments.require(workspace_id, payment_id=payment_id)
        problem = problem or _problem(row, merchant, state)
        if problem is not None:
            log.error("a payment provider reports another payment", extra={"problem": problem})
            payments.stage_change(unit, row, problem=problem)
        elif payment_states.may_follow(row.status, new_status=state.status):
            _stage_status(unit, row, state, stage_success)
        else:
            _stage_report(unit, row, state, stage_return)

    try:
        run_unit(workspace_id, event, stage)
    except ProviderIdTakenError:
        run_unit(workspace_id, event, partial(stage, problem=ANOTHER_PAYMENT))
    else:
        # One transaction cannot credit a balance and take from it.
        if state.refunded or state.disputed:
            run_unit(workspace_id, event, stage)
    return payments.require(workspace_id, payment_id=payment_id)


def follow(job: Job, settle_payment: Settle) -> None:
    """Ask for a payment's state until it is final or its time has ended, or raise Postponed."""
    workspace_id, payment_id = job.workspace_id, job.payload["paymentId"]
    is_known = True
    try:
        payment = settle_payment(workspace_id, payment_id)
    except (ProviderError, UnknownOutcomeError) as error:
        log.warning("a payment's state is unknown", extra={"cause": repr(error)})
        payment, is_known = payments.require(workspace_id, payment_id=payment_id), False
    except NotFoundError:
        return
    if is_known and not payment.is_open:
        return
    due = payment_states.next_check(payment.created_at, now=clock.now())
    # A payment that the provider never had cannot be made any more.
    is_lost = payment.provider_id is None and not payments.is_repeatable(
        payment.created_at, IDEMPOTENCY_HOURS
    )
    if due is not None and not is_lost:
        raise Postponed(due)

    def stage(unit: UnitOfWork) -> None:
        row = payments.require(workspace_id, payment_id=payment_id)
        if row.is_open:
            payments.stage_change(unit, row, status=EXPIRED)

    run_job_unit(job, stage)


def _read_state(
    workspace_id: str, payment: PaymentRow, provider_id: str, *, ends: bool
) -> PaymentState:
    provider = accounts.provider_of_payment(workspace_id, payment)
    may_end = ends and payment.is_open
    return (provider.expire if may_end else provider.state)(provider_id)


def _stage_problem(payment_id: str, unit: UnitOfWork, *, reason: str) -> None:
    row = payments.require(unit.workspace_id, payment_id=payment_id)
    payments.stage_change(unit, row, problem=reason)


def _stage_status(
    unit: UnitOfWork, row: PaymentRow, state: PaymentState, stage_success: StageSuccess
) -> None:
    values: dict[str, Any] = {"status": state.status, "is_test": state.is_test, "problem": None}
    if state.payment_ref is not None:
        # Notifications about refunds name the payment by this id.
        values["payment_ref"] = state.payment_ref
        payments.stage_provider_id(unit, row, state.payment_ref)
    if state.status == SUCCEEDED:
        now = clock.now()
        # The provider's clock may be ahead.
        values["paid_at"] = row.paid_at = min(state.paid_at or now, now)
        if refunded := stage_success(unit, row):
            values["refund_total"] = int(row.refund_total) + refunded
    payments.stage_change(unit, row, **values)


def _stage_report(
    unit: UnitOfWork, row: PaymentRow, state: PaymentState, stage_return: StageReturn
) -> None:
    values: dict[str, Any] = {} if row.problem is None else {"problem": None}
    reported = (state.refunded, state.disputed)
    if row.status == SUCCEEDED and reported != (row.refunded_at_provider, row.disputed):
        values |= {"refunded_at_provider": state.refunded, "disputed": state.disputed}
        values["returned"] = stage_return(unit, row, state)
    if values:
        payments.stage_change(unit, row, **values)


def _problem(row: PaymentRow, merchant: MerchantRow, state: PaymentState) -> str | None:
    # The provider's id may be forged, or the credentials of the account were replaced.
    if (state.amount, state.currency) != (int(row.amount), row.currency):
        return "another amount"
    if state.account is not None and merchant.shop_id and state.account != merchant.shop_id:
        return "another account"
    if row.reference is not None and state.reference != row.reference:
        return ANOTHER_PAYMENT
    if state.is_test and row.purpose == "top_up" and settings().payments_live:
        return "a test payment"
    return None
