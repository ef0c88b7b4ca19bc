"""Move a booking or change its status, in one transaction (ADR 21)."""

from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from chalicelib.core import clock, retry
from chalicelib.core.clock import iso
from chalicelib.core.errors import ValidationError
from chalicelib.domains.bookings.flows.holds import begin_hold, end_hold, shorten_hold
from chalicelib.domains.bookings.flows.new_booking import copy_resource_fields
from chalicelib.domains.bookings.flows.placement import Placement, SlotRequest
from chalicelib.domains.bookings.rules.job_kinds import CLOSE_RECEIPT
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BLOCKING, BookingRow, BookingStatus, EventRow
from chalicelib.domains.bookings.store.calendar_days import CalendarDays
from chalicelib.domains.payments.store import payments
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork

# A change from one of these statuses to another keeps the booked time, so it is not checked again.
SAME_TIME_STATUSES = {"confirmed", "completed"}


class BookingChange(NamedTuple):
    """Requested status, start and resource of a booking, with the reason for the change."""

    actor: str
    status: BookingStatus | None = None
    start: date | None = None
    resource_id: str | None = None
    ignores_schedule: bool = False
    reason: str | None = None
    is_lapse: bool = False  # the hold of an unpaid booking has expired
    is_by_client: bool = False  # the client makes the change, to whom the time for refunds applies
    is_booked_again: bool = False  # a new booking must be allowed at the time, as in ``book``
    # Of a visit, all bookings with the status of the named one change. Otherwise each has its own
    # status among ``VISITED``, and any other change is of all of them (ADR 139).
    whole_visit: bool = False
    is_alone: bool = False  # The caller changes the other bookings of the visit itself.


def change(unit: UnitOfWork, booking: BookingRow, requested: BookingChange) -> EventRow | None:
    """Stage a change of a booking, and return the new entry of its history, or None without effect.

    Of a visit, the other bookings change with it (``visit_changes``). If the booking is moved, the
    new time must be free. The booking's own time counts as free. The time must also be free if the
    new status is one in which a booking occupies time.

    Raises:
        NotFoundError: the resource does not exist.
        ValidationError: the start is not a valid moment, or it has passed. Or a move was requested
            for a booking whose status occupies no time.
        SlotUnavailableError: the time cannot be booked, as in ``book``.
    """
    if not booking.visit:
        return _change(unit, booking, requested)
    from chalicelib.domains.bookings.flows import visit_changes  # noqa: PLC0415  it imports this

    return visit_changes.change(unit, booking, requested)


def _change(unit: UnitOfWork, booking: BookingRow, requested: BookingChange) -> EventRow | None:
    status: str = requested.status or booking.status
    former_entry, blocked, former_status = booking.busy, booking.blocks, booking.status
    former_resource_id = booking.resource_id
    is_move = may_move(booking, requested)
    placement = (
        Placement.create_for_move(
            unit,
            booking,
            SlotRequest(
                requested.start or booking.starts_at,
                requested.resource_id or booking.resource_id,
                ignores_schedule=requested.ignores_schedule,
            ),
        )
        if is_move
        else None
    )
    if placement is not None:
        is_move = (
            placement.start != former_entry.start
            or placement.requested.resource_id != booking.resource_id
        )
    if not is_move and status == booking.status:
        return None
    if is_move:
        require_movable(status, requested)
    former = time_and_resource(booking)
    if status != booking.status:
        end_hold(unit, booking)
        # Both statuses occupy the time, so nothing has to be checked or written in the calendar.
        to_check = {status, booking.status} - SAME_TIME_STATUSES
        booking.status = status
        booking.has_lapsed = requested.is_lapse or None
        forget_refunded(unit, booking, former_status)
    else:
        to_check = set()
    if is_move and placement is not None:
        _choose_place(placement, booking, is_by_client=requested.is_by_client)
    _set_hold(unit, booking, former_status)
    if is_move and placement is not None:
        replaced = (former_resource_id, former_entry) if blocked else None
        placement.stage(booking, replacing=replaced)
    elif booking.blocks and to_check:
        is_new = requested.is_booked_again
        create = Placement.create_for_rebooking if is_new else Placement.create_for_reactivation
        create(unit, booking).reactivate(booking)
    elif blocked and not booking.blocks:
        # All bookings of a day write the same calendar row, so conflicts are expected.
        unit.retry_policy = retry.high_contention()
        days = CalendarDays(unit.workspace_id, [(booking.resource_id, former_entry.buffered)])
        days.remove(booking.resource_id, former_entry)
        days.stage(unit)
    booking.sequence += 1
    unit.save(booking)
    if status != former_status:
        stage_closing_receipt(unit, booking)
    move = {"from": former, "to": time_and_resource(booking)} if is_move else None
    return bookings.new_event(unit, booking, requested.actor, reason=requested.reason, move=move)


def stage_closing_receipt(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the job of the closing receipt if the booking took place and is paid."""
    if booking.status == "completed" and booking.paid_by:
        stage_receipt_job(unit, booking)


def stage_receipt_job(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the job of the closing receipt of a booking, or of the visit that it begins."""
    payload = {"bookingId": booking.id, "at": iso(clock.now())}
    unit.create(jobs.row(CLOSE_RECEIPT, unit.workspace_id, payload))


def require_movable(status: str, requested: BookingChange) -> None:
    """Raise ValidationError for a move of a booking whose status occupies no time."""
    if status not in BLOCKING:
        message = (
            f"a booking with the status {status} has no reserved time and cannot be moved; also "
            "send another status, such as confirmed"
        )
        raise ValidationError.of("startAt" if requested.start else "resourceId", message=message)


def may_move(booking: BookingRow, requested: BookingChange) -> bool:
    """Return whether another start or resource is requested."""
    # A start without a UTC offset may be the current start. ``change`` finds that out later.
    start = requested.start
    same = isinstance(start, datetime) and start.tzinfo and start == booking.starts_at
    return requested.resource_id not in {None, booking.resource_id} or not (start is None or same)


def _choose_place(placement: Placement, booking: BookingRow, *, is_by_client: bool) -> None:
    # The price and the buffers do not change. The length does with a resource that needs another.
    candidate, former_limit = placement.choose(), booking.refund_limit
    booking.starts_at = clock.moment_at(placement.start)
    booking.duration_min = placement.rules.with_resource(candidate.resource.id).duration_min
    booking.ends_at = booking.starts_at + timedelta(minutes=int(booking.duration_min))
    if candidate.resource.id != booking.resource_id:
        for name, value in copy_resource_fields(candidate.resource).items():
            setattr(booking, name, value)
    if booking.refund_until_min is not None:
        booking.refundable_until = refund_limit(booking, former_limit, is_by_client=is_by_client)


def refund_limit(booking: BookingRow, former: datetime, *, is_by_client: bool) -> datetime:
    """Return until when a moved booking is refunded."""
    # The client chooses the new start with its limit. But once the time for refunds has passed, it
    # has passed for good, or the client would move the booking and then cancel it in time. A move
    # by the business never makes the time shorter.
    if not is_by_client:
        return max(former, booking.refund_limit_by_start)
    return booking.refund_limit_by_start if clock.now() <= former else former


def _set_hold(unit: UnitOfWork, booking: BookingRow, former_status: str) -> None:
    if booking.status == former_status:
        shorten_hold(unit, booking)
    elif booking.status == "pending_payment" and booking.paid_by is None:
        # Otherwise it would occupy its time for ever.
        begin_hold(unit, booking)


def forget_refunded(unit: UnitOfWork, booking: BookingRow, former_status: str) -> None:
    """Make a booking unpaid that was refunded in whole and takes place again."""
    if booking.paid_by is None or former_status in BLOCKING or not booking.blocks:
        return
    payment = payments.find(unit.workspace_id, payment_id=booking.paid_by)
    if payment is not None and payment.status == payments.SUCCEEDED and not payment.refundable:
        booking.paid_by = booking.paid = None


def time_and_resource(booking: BookingRow) -> dict[str, Any]:
    """Return the place of a booking, for its history."""
    return {
        "startAt": iso(booking.starts_at),
        "resourceId": booking.resource_id,
        "resourceName": booking.resource_name,
    }
