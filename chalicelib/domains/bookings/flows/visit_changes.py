"""Change the bookings of a visit together, in one transaction (ADR 139)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import booking_changes, holds, visit_placement
from chalicelib.domains.bookings.flows.booking_changes import (
    SAME_TIME_STATUSES,
    BookingChange,
    time_and_resource,
)
from chalicelib.domains.bookings.flows.new_booking import copy_resource_fields
from chalicelib.domains.bookings.flows.placement import SlotRequest
from chalicelib.domains.bookings.flows.visit_placement import Place, VisitPlacement
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BLOCKING, VISITED, BookingRow, EventRow
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.unit import UnitOfWork


def change(  # noqa: C901  the order of the steps
    unit: UnitOfWork, booking: BookingRow, requested: BookingChange
) -> EventRow | None:
    """Stage a change of a booking and of the other bookings of its visit that follow it.

    These have its status. They keep their lengths and the pauses between them. A requested start
    and resource are those of the named booking, and the others keep their resources. With another
    resource that needs another time, the named booking takes that, and those after it follow.

    Returns and raises as ``booking_changes.change``.
    """
    visit = bookings.visit_of(unit.workspace_id, booking, unit.rows)
    is_move = booking_changes.may_move(booking, requested)
    group = _followers(visit, booking, requested, is_move=is_move)
    placement = _placement_of_move(unit, visit, group, booking, requested) if is_move else None
    if placement is not None and not _is_elsewhere(placement, group[0], booking, requested):
        placement = None
    status, former_status = requested.status or booking.status, booking.status
    if placement is None and status == former_status:
        return None
    if placement is not None:
        booking_changes.require_movable(status, requested)
    former_entries = list(map(_entry, visit))
    former_places = {each.id: time_and_resource(each) for each in group}
    former_due = visit[0].due
    if status != former_status:
        _set_status(unit, group, status, is_lapse=requested.is_lapse)
    if placement is not None:
        _move(group, placement.choose_all(), is_by_client=requested.is_by_client)
    _set_hold(unit, visit, group, former_status)
    visit_placement.set_buffers(visit)
    if placement is None and _has_to_be_free(status, former_status):
        placement = _placement_again(unit, visit, group, requested)
    changed = _stage_entries(unit, visit, group, former_entries, placement)
    if visit[0].due != former_due:
        changed.append(visit[0])
    for each in group:
        each.sequence += 1
    for each in (each for each in visit if each in group or each in changed):
        unit.save(each)
    if status != former_status and visit[0].paid_by and bookings.has_taken_place(visit):
        booking_changes.stage_receipt_job(unit, visit[0])
    events = [_new_event(unit, each, former_places[each.id], requested) for each in group]
    return events[group.index(booking)]


def _followers(
    visit: Sequence[BookingRow], booking: BookingRow, requested: BookingChange, *, is_move: bool
) -> list[BookingRow]:
    # The named booking is among them.
    statuses = {requested.status or booking.status, booking.status}
    is_own = not is_move and statuses <= VISITED and not requested.whole_visit
    if is_own or requested.is_alone:
        return [booking]
    return [each for each in visit if each.status == booking.status]


def _is_elsewhere(
    placement: VisitPlacement, first: BookingRow, booking: BookingRow, requested: BookingChange
) -> bool:
    is_later = placement.start != epoch_ms(first.starts_at)
    return is_later or requested.resource_id not in {None, booking.resource_id}


def _stage_entries(
    unit: UnitOfWork,
    visit: Sequence[BookingRow],
    group: Sequence[BookingRow],
    former_entries: Sequence[tuple[str, BusyEntry] | None],
    placement: VisitPlacement | None,
) -> list[BookingRow]:
    # Returns the bookings whose entries in the calendars are others than before.
    both = zip(visit, former_entries, strict=True)
    pairs = [(each, former) for each, former in both if _entry(each) != former]
    replacing = [former for _, former in pairs if former is not None]
    entries = [each for each, _ in pairs if each.blocks]
    if placement is not None:
        placement.stage_all(group, entries, replacing)
    elif pairs:
        days = visit_placement.read_days(unit, visit)
        visit_placement.stage_days(days, unit, entries, replacing)
    return [each for each, _ in pairs]


def _placement_again(
    unit: UnitOfWork,
    visit: Sequence[BookingRow],
    group: Sequence[BookingRow],
    requested: BookingChange,
) -> VisitPlacement:
    create = VisitPlacement.create_for_return
    if requested.is_booked_again:
        create = VisitPlacement.create_for_new_group
    placement = create(unit, visit, group)
    placement.choose_all()
    return placement


def _set_status(
    unit: UnitOfWork, group: Sequence[BookingRow], status: str, *, is_lapse: bool
) -> None:
    for booking in group:
        former_status = booking.status
        holds.end_hold(unit, booking)
        booking.status = status
        booking.has_lapsed = is_lapse or None
        booking_changes.forget_refunded(unit, booking, former_status)


def _has_to_be_free(status: str, former_status: str) -> bool:
    is_same_time = {status, former_status} <= SAME_TIME_STATUSES
    return status in BLOCKING and status != former_status and not is_same_time


def _new_event(
    unit: UnitOfWork, booking: BookingRow, former: dict[str, Any], requested: BookingChange
) -> EventRow:
    place = time_and_resource(booking)
    move = None if place == former else {"from": former, "to": place}
    return bookings.new_event(unit, booking, requested.actor, reason=requested.reason, move=move)


def _entry(booking: BookingRow) -> tuple[str, BusyEntry] | None:
    return (booking.resource_id, booking.busy) if booking.blocks else None


def _placement_of_move(
    unit: UnitOfWork,
    visit: Sequence[BookingRow],
    group: Sequence[BookingRow],
    booking: BookingRow,
    requested: BookingChange,
) -> VisitPlacement:
    place = SlotRequest(
        requested.start or booking.starts_at,
        requested.resource_id or booking.resource_id,
        ignores_schedule=requested.ignores_schedule,
    )
    resource_ids = [requested.resource_id if each is booking else None for each in group]
    return VisitPlacement.create_for_group(
        unit, visit, group, place, named=booking, resource_ids=resource_ids
    )


def _move(group: Sequence[BookingRow], places: Sequence[Place], *, is_by_client: bool) -> None:
    for booking, place in zip(group, places, strict=True):
        former_limit = booking.refund_limit
        booking.starts_at = clock.moment_at(place.start)
        booking.duration_min = place.duration_min
        booking.ends_at = booking.starts_at + timedelta(minutes=place.duration_min)
        if place.candidate.resource.id != booking.resource_id:
            for name, value in copy_resource_fields(place.candidate.resource).items():
                setattr(booking, name, value)
        if booking.refund_until_min is not None:
            booking.refundable_until = booking_changes.refund_limit(
                booking, former_limit, is_by_client=is_by_client
            )


def _set_hold(
    unit: UnitOfWork,
    visit: Sequence[BookingRow],
    group: Sequence[BookingRow],
    former_status: str,
) -> None:
    first, starts_at = group[0], group[0].starts_at
    if first.status == former_status:
        expires = first.hold_expires_at
        if expires is not None and clock.now() < starts_at < expires:
            for booking in group:
                holds.end_hold(unit, booking)
            holds.begin_visit(unit, group, starts_at)
    elif first.status == "pending_payment" and visit[0].paid_by is None:
        if visit[0].due is None:
            services = SERVICES.fetch(
                unit.workspace_id, list(dict.fromkeys(each.service_id for each in visit))
            )
            holds.set_visit_terms(
                unit.workspace_id, visit, {service.id: service for service in services}
            )
        holds.begin_visit(unit, group, holds.hold_end(starts_at))
