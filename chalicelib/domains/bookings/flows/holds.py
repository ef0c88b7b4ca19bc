"""Hold an unpaid booking, until its start at the latest, and end the hold with a job."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import JobKind
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.payments.rules.payment_states import deposit
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.engine.workspace_currency import currency_of
from chalicelib.gateways.payments import stripe_units

HOLD = timedelta(minutes=30)  # at most
LAPSE = JobKind("lapse-of-hold")  # cancels a booking that was not paid in time


def hold_end(starts_at: datetime) -> datetime:
    """Return when a hold that begins now ends. A booking in the past is held for ``HOLD``."""
    now = clock.now()
    # Nobody may pay for a time that has begun.
    return min(now + HOLD, starts_at) if starts_at > now else now + HOLD


def lapse_job(workspace_id: str, booking: BookingRow) -> JobRow | None:
    """Return the job that cancels an unpaid booking, or None if the booking is not on hold."""
    due = booking.hold_expires_at
    if due is None:
        return None
    return jobs.row(LAPSE, workspace_id, expiry(booking), due, job_id=booking.id)


def expiry(booking: BookingRow) -> dict[str, Any]:
    """Return the payload of the hold's job."""
    expires = booking.hold_expires_at
    return {"booking": booking.id, "expires": expires and epoch_ms(expires)}


def begin_hold(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the hold of a booking that has to be paid again, with what has to be paid."""
    if booking.due is None:
        service = SERVICES.find(unit.workspace_id, record_id=booking.service_id)
        if service is not None and service.offer(booking.resource_id).is_prepaid:
            set_terms(unit.workspace_id, booking, service)
    _set_end(unit, booking, hold_end(booking.starts_at))


def shorten_hold(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage an earlier end of the hold of a booking that was moved to an earlier start."""
    expires, starts_at = booking.hold_expires_at, booking.starts_at
    if expires is not None and clock.now() < starts_at < expires:
        end_hold(unit, booking)
        _set_end(unit, booking, starts_at)


def end_hold(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the end of a booking's hold, if it has one."""
    if booking.hold_expires_at is not None:
        # The job would find the hold ended, but deleting it saves the run.
        unit.delete(jobs.ref(LAPSE, booking.hold_expires_at, booking.id))
        booking.hold_expires_at = None


def begin_visit(unit: UnitOfWork, group: Sequence[BookingRow], end: datetime) -> None:
    """Stage the hold of bookings of a visit, which one job ends together."""
    for booking in group:
        booking.hold_expires_at = end
    if job := lapse_job(unit.workspace_id, group[0]):
        unit.create(job)


def set_visit_terms(
    workspace_id: str, visit: Sequence[BookingRow], services: Mapping[str, ServiceRow]
) -> None:
    """Set, for a visit, what ``set_terms`` sets for a booking. Its first booking has it all."""
    step = stripe_units.step(currency_of(workspace_id))
    paid = [
        (booking, services[booking.service_id].terms)
        for booking in visit
        if booking.service_id in services
        and services[booking.service_id].offer(booking.resource_id).is_prepaid
    ]
    if not paid:
        return
    first = visit[0]
    first.due = sum(
        deposit(int(booking.price), percent=terms.deposit_percent, step=step)
        for booking, terms in paid
    )
    first.refund_until_min = max(terms.refund_until_min for _, terms in paid)
    first.refundable_until = first.refund_limit_by_start


def set_terms(workspace_id: str, booking: BookingRow, service: ServiceRow) -> None:
    """Set what the client pays in advance, and until when a cancellation is refunded."""
    step = stripe_units.step(currency_of(workspace_id))
    percent = service.terms.deposit_percent
    booking.due = deposit(int(booking.price), percent=percent, step=step)
    booking.refund_until_min = service.terms.refund_until_min
    booking.refundable_until = booking.refund_limit_by_start


def _set_end(unit: UnitOfWork, booking: BookingRow, end: datetime) -> None:
    booking.hold_expires_at = end
    if job := lapse_job(unit.workspace_id, booking):
        unit.create(job)
