"""The hold of an unpaid booking, and the job that ends it."""

from typing import Any

from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import JobKind
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork

LAPSE = JobKind("lapse-of-hold")
"""The scheduled job that cancels a booking that was not paid in time."""


def lapse_job(workspace_id: str, booking: BookingRow) -> JobRow | None:
    """Return the job that cancels an unpaid booking, or None if the booking is not on hold."""
    due = booking.hold_expires_at
    if due is None:
        return None
    return jobs.row(LAPSE, workspace_id, expiry(booking), due, job_id=booking.id)


def expiry(booking: BookingRow) -> dict[str, Any]:
    """Return the payload of the hold's job, with the booking and the moment of expiry."""
    expires = booking.hold_expires_at
    return {"booking": booking.id, "expires": expires and epoch_ms(expires)}


def end_hold(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the end of a booking's hold, if it has one."""
    if booking.hold_expires_at is not None:
        # The job would find the hold ended, but deleting it saves the run.
        unit.delete(jobs.ref(LAPSE, booking.hold_expires_at, booking.id))
        booking.hold_expires_at = None
