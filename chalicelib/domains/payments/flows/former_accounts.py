"""Keep the secret of a former account as long as its payments may need it, and no longer."""

from datetime import timedelta
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.payments.rules.job_kinds import END_MERCHANT_SECRET
from chalicelib.domains.payments.store import merchants, payments
from chalicelib.domains.payments.store.merchants import FORMER_CHECKED_AFTER
from chalicelib.domains.payments.store.payments import DONE, PaymentRow
from chalicelib.engine.unit import UnitOfWork, run_job_unit

PAUSE = timedelta(days=30)  # until the payments of an account are read again
PAGE = 500
MAX_COUNTED = 1_000


class Needs(NamedTuple):
    """What the secret of an account is needed for."""

    refundable_payments: int
    refundable: int  # minor units
    open_payments: int


def read_needs(workspace_id: str, *, merchant_id: str, limit: int = MAX_COUNTED) -> Needs:
    """Return what the secret of an account is needed for, counted up to ``limit`` payments."""
    refundable_payments = refundable = open_payments = 0
    last_id: str | None = None
    while page := payments.latest(workspace_id, PAGE, last_id=last_id):
        last_id = page[-1].id
        for payment in page:
            if payment.merchant_id != merchant_id:
                continue
            amount = _left(workspace_id, payment)
            open_payments += payment.is_open
            refundable_payments, refundable = (
                refundable_payments + (amount > 0),
                refundable + amount,
            )
            if refundable_payments + open_payments >= limit:
                return Needs(refundable_payments, refundable, open_payments)
    return Needs(refundable_payments, refundable, open_payments)


def _left(workspace_id: str, payment: PaymentRow) -> int:
    if not payment.refund_total:
        return payment.refundable
    # Refunds that are not done yet need the secret, too.
    refunds = payments.refunds_of(workspace_id, [payment.id])
    return payment.refundable + sum(int(row.amount) for row in refunds if row.status != DONE)


@job_handler(END_MERCHANT_SECRET)
def end_secret(job: Job) -> None:
    """Remove the secret of a former account if nothing can be refunded, or after 400 days."""
    workspace_id, merchant_id = job.workspace_id, job.payload["merchantId"]
    former = merchants.find_former(workspace_id, merchant_id=merchant_id)
    if former is None or former.replaced_at is None or former.secret_removed_at is not None:
        return  # It may have become the current account again.
    now, end = clock.now(), former.replaced_at + merchants.FORMER_KEPT_FOR
    if now < former.replaced_at + FORMER_CHECKED_AFTER:  # It was replaced again.
        raise Postponed(former.replaced_at + FORMER_CHECKED_AFTER)
    # Payments to the platform are stored with the workspaces that paid, and may be disputed.
    if now < end and (
        workspace_id == PLATFORM or any(read_needs(workspace_id, merchant_id=merchant_id, limit=1))
    ):
        raise Postponed(min(now + PAUSE, end))

    def stage(unit: UnitOfWork) -> None:
        row = merchants.find_former(workspace_id, merchant_id=merchant_id)
        if row is not None and row.replaced_at == former.replaced_at:
            merchants.stage_end_of_secret(unit, row)

    run_job_unit(job, stage)
