"""Ask a provider soon for what it has told of."""

from chalicelib.core import clock, deadline
from chalicelib.domains.payments.store import payments
from chalicelib.domains.payments.store.payments import DONE, SENT, PaymentRow
from chalicelib.engine import jobs
from chalicelib.engine.events import wake

PARALLEL_WRITES = 8


def ask_soon(workspace_id: str, payment: PaymentRow, *, refund_id: str | None = None) -> None:
    """Make the jobs due that ask the provider for a payment and its refunds.

    ``refund_id`` is the provider's id of the refund that it tells of.
    """
    # Notifications of one second share their jobs.
    due = clock.now().replace(microsecond=0)
    job_rows = [payments.payment_job(workspace_id, payment, due)]
    job_rows += [
        payments.refund_job(workspace_id, payment, refund, due)
        for refund in payments.refunds_of(workspace_id, [payment.id])
        # A refund that was done may still fail. Only its own notification says so.
        if refund.status == SENT or (refund.status == DONE and refund.provider_id == refund_id)
    ]
    deadline.map_in_threads(jobs.schedule, job_rows, PARALLEL_WRITES)
    wake.wake()
