"""Let somebody wait for a free time of a service on a day (ADR 142)."""

from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import ConflictError, ValidationError
from chalicelib.core.ids import new_id
from chalicelib.domains.bookings.flows.slot_search import PERMANENT_REASONS
from chalicelib.domains.bookings.rules.slots import NoSlotReason
from chalicelib.domains.clients.flows import matching
from chalicelib.domains.clients.flows.contacts import NOTHING, Contact
from chalicelib.domains.clients.store.clients import ClientRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.waiting.flows import lines
from chalicelib.domains.waiting.flows.day_search import DaySearch
from chalicelib.domains.waiting.rules.line_steps import MAX_IN_LINE
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import LinePlace, WaitingLineRow, WaitingRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails
from chalicelib.lib.localized import Language

# Visitors see none of these days.
_NEVER_FREE = PERMANENT_REASONS | {NoSlotReason.TOO_LITTLE_NOTICE}


class NotAwaitedError(ConflictError):
    """Nobody can wait for the day. ``key`` says why.

    ``times_free``: it has free times, so book one. ``day_closed``: the day has passed or cannot be
    booked yet, or the service cannot be booked. ``line_full``: 30 wait already.
    """

    code = "not_awaited"


class Joining(NamedTuple):
    """A request to wait. ``client`` is a known one, or found by the contact."""

    place: LinePlace
    contact: Contact
    source: str
    resource_id: str | None = None
    client: ClientRow | None = None
    fills_client: bool = False  # as in ``new_booking.BookingRequest``
    language: Language | None = None
    visitor_shares: tuple[str, ...] | None = None  # of the visitor, if it is one

    @property
    def is_by_visitor(self) -> bool:
        return self.visitor_shares is not None


class Joined(NamedTuple):
    """One who waits now."""

    row: WaitingRow
    is_new: bool  # Otherwise the person has waited before, and keeps the place.
    position: int  # in the line, from 1
    timezone: str  # of the day


def join(unit: UnitOfWork, request: Joining) -> Joined:
    """Stage that somebody waits, or return that the person waits already.

    Raises:
        NotFoundError: the service or the resource does not exist.
        NotAwaitedError: the day has free times, or cannot have any, or the line is full.
        ValidationError: the resource does not provide the service.
    """
    place, workspace_id = request.place, unit.workspace_id
    service = SERVICES.found(
        unit.rows.find(ServiceRow, SERVICES.key(workspace_id, record_id=place.service_id))
    )
    if request.resource_id is not None and request.resource_id not in service.resource_ids:
        key = RESOURCES.key(workspace_id, record_id=request.resource_id)
        RESOURCES.found(unit.rows.find(ResourceRow, key))
        message = "expected a resource of the service, or none"
        raise ValidationError.of("resourceId", message=message)
    search = DaySearch.create(workspace_id, service, place, unit.rows)
    line_row = WaitingLineRow.of(workspace_id, place)
    line_row = line_row or waiting_lines.new_line(workspace_id, place)
    ids = [each.id for each in line_row.line.waiting]
    for number, row in enumerate(waiting_lines.fetch(workspace_id, ids), start=1):
        client_id = request.client.id if request.client else None
        if row.is_of(client_id, request.contact.identity.values()):
            return Joined(row, is_new=False, position=number, timezone=search.timezone)
    _require_awaited(request, search)
    if len(ids) >= MAX_IN_LINE:
        msg = f"{MAX_IN_LINE} people wait for this day already. Choose another day."
        raise NotAwaitedError(msg, key="line_full")
    row = _new_row(unit, request)
    lines.stage_joining(unit, line_row, row)
    return Joined(row, is_new=True, position=len(ids) + 1, timezone=search.timezone)


def _require_awaited(request: Joining, search: DaySearch) -> None:
    day, found = request.place.day, search.find(request.resource_id)
    if found.slots:
        msg = f"{day} has free times. Book one of them."
        raise NotAwaitedError(msg, key="times_free")
    today = clock.local_day(clock.now(), search.timezone)
    # The business knows for which days it will open times.
    if day < today or (request.is_by_visitor and found.reason in _NEVER_FREE):
        msg = f"{day}: no time can become free on this day. Choose another day."
        raise NotAwaitedError(msg, key="day_closed")


def _new_row(unit: UnitOfWork, request: Joining) -> WaitingRow:
    contact = request.contact
    client_id = request.client.id if request.client else None
    if request.client is None:
        fills = contact if request.fills_client else NOTHING
        match = matching.match(unit.workspace_id, contact, fills=fills, rows=unit.rows)
        if match is not None:
            match.count(unit, clock.now())
            client_id = match.client.id
    waiting_id = unit.run_side_effect_once("waiting", new_id)
    row = waiting_lines.new_waiting(unit.workspace_id, waiting_id, request.place)
    row.resource_id, row.client_id, row.source = request.resource_id, client_id, request.source
    row.name, row.email, row.phone = contact.name, contact.email, contact.phone
    row.contacts = [emails.key(each) for each in contact.identity.values() if each]
    row.language = request.language
    row.visitor_shares = list(request.visitor_shares) if request.visitor_shares else None
    return row
