"""Create the bookings of a visit in one transaction: all, or none (ADR 139).

The first booking has what the visit has once: its notes, its id in a program's system, its money,
and the links for the client.
"""

from collections.abc import Sequence
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.domains.bookings.flows import (
    holds,
    new_booking,
    slot_search,
    visit_placement,
    visit_search,
)
from chalicelib.domains.bookings.flows.new_booking import BookingRequest
from chalicelib.domains.bookings.flows.visit_placement import Agrees, VisitPlacement
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingRow, EventRow
from chalicelib.domains.clients.flows import matching
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.engine.unit import UnitOfWork


class NewVisit(NamedTuple):
    """The bookings of a new visit in order, and the entry that begins the first one's history."""

    rows: list[BookingRow]
    event: EventRow


def book(
    unit: UnitOfWork,
    request: BookingRequest,
    and_then: Sequence[str],
    agrees: Agrees | None = None,
) -> NewVisit:
    """Stage bookings of a service and of those that follow it.

    ``agrees`` is that of ``VisitPlacement.choose_all``.

    Raises as ``new_booking.book``, and ValidationError for a visit that is longer than a day.
    """
    services = visit_search.services_of(unit.workspace_id, request.service_id, and_then, unit.rows)
    visit_search.require_fit(services, request.slot.resource_id)
    workspace = slot_search.workspace_of(unit)
    if request.client is None:
        unit.rows.read(matching.holder_keys(unit.workspace_id, request.contact))
    match = new_booking.match_client(unit, request)
    placement = VisitPlacement.create_visit(unit, services, request.slot)
    places = placement.choose_all(agrees)
    rows = [
        new_booking.new_row(
            unit,
            request,
            service,
            place.candidate.resource,
            clock.moment_at(place.start),
            match=match,
        )
        for service, place in zip(services, places, strict=True)
    ]
    # Ids of one millisecond have no order.
    ids = sorted(row.id for row in rows)
    for row, booking_id in zip(rows, ids, strict=True):
        row.sk, row.visit = booking_id, ids
        row.status = request.status or "confirmed"
    for row in rows[1:]:
        row.notes = row.named_contacts = row.external_id = row.metadata = None
    if request.status is None and any(
        service.offer(row.resource_id).is_prepaid
        for service, row in zip(services, rows, strict=True)
    ):
        for row in rows:
            row.status = "pending_payment"
        by_id = {service.id: service for service in services}
        holds.set_visit_terms(unit.workspace_id, rows, by_id)
        holds.begin_visit(unit, rows, holds.hold_end(rows[0].starts_at))
    visit_placement.set_buffers(rows)
    placement.stage_all(rows, rows)
    if match is not None:
        match.count(unit, clock.now(), bookings=len(rows))
    for row in rows:
        unit.create(row)
    for service in services:
        # The prices and the lengths are copied from the services, so they must not have changed.
        visit_placement.require_once(unit, service)
    crm_metrics.count_bookings(
        unit,
        clock.local_day(clock.now(), workspace.timezone),
        [service.site_id for service in services],
        with_client=match is not None and match.is_new,
    )
    events = [bookings.new_event(unit, row, request.actor) for row in rows]
    return NewVisit(rows, events[0])
