"""Cancel the future bookings of a workspace that its owner has closed."""

from functools import partial

from chalicelib.core.clock import iso
from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.bookings.flows import booking_changes, booking_payments
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.booked_times import upcoming_ids
from chalicelib.domains.identity.rules.job_kinds import CANCEL_BOOKINGS
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_job_unit

BATCH = 50  # bookings that are looked up at once
OF_JOBS = "job"  # the actor of what jobs do


@job_handler(CANCEL_BOOKINGS)
def cancel_bookings(job: Job) -> None:
    """Cancel all bookings that have not begun, with their refunds. A repeated job continues."""
    # Of a booking that is being changed, the unit starts again with its new state.
    while is_closed(job):
        booking_ids = upcoming_ids(job.workspace_id, limit=BATCH)
        if not booking_ids:
            return
        for booking_id in booking_ids:
            run_job_unit(job, partial(_stage, booking_id))


def is_closed(job: Job) -> bool:
    """Whether the workspace is still closed, as when the job was made."""
    closed_at = workspaces.get(job.workspace_id).closed_at
    return closed_at is not None and bool(iso(closed_at) == job.payload["closedAt"])


def _stage(booking_id: str, unit: UnitOfWork) -> None:
    booking, _ = bookings.read_with_history(unit, booking_id)
    if not bookings.is_upcoming(booking):
        return
    cancelled = BookingChange(actor=OF_JOBS, status="cancelled", reason=None)
    booking_changes.change(unit, booking, cancelled)
    # The business cancels, so the client gets back all that is left of the payment.
    payment = booking_payments.payment_of(unit.workspace_id, booking)
    if payment is not None and not payment.is_imported and payment.kept > 0:
        booking_payments.stage_refund(
            unit, payment, int(payment.kept), by=OF_JOBS, reason="cancelled"
        )
