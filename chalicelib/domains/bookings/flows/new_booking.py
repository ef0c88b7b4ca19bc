"""Create a booking in one transaction, so that a time is booked only once (ADR 21).

It reads the calendar days of the requested time and checks them with the same predicate that lists
free slots. At commit, these days must be unchanged. If several requests compete for a time, the
first one commits. The others run again, find its entry in the calendar, and return alternatives.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import StringConstraints

from chalicelib.core import clock
from chalicelib.domains.bookings.flows import booking_reads, holds, slot_search
from chalicelib.domains.bookings.flows.placement import Placement, SlotRequest
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, BookingStatus, EventRow
from chalicelib.domains.clients.flows import contacts, matching
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.flows.matching import Match
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.domains.clients.store.clients import ClientRow
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import phones
from chalicelib.lib.localized import Language

Notes = Annotated[str, StringConstraints(max_length=2000)]


class BookingRequest(NamedTuple):
    """A request of an API caller or a visitor for a new booking."""

    service_id: str
    slot: SlotRequest
    contact: Contact
    source: str
    actor: str  # for the history
    client: ClientRow | None = None  # Default: found or created by ``contact``.
    # The contact may complete the record of an existing client. Contacts from visitors may not,
    # because they are not verified.
    fills_client: bool = True
    notes: str | None = None
    # Default: confirmed, or held if the service is paid in advance.
    status: BookingStatus | None = None
    token_secret: str | None = None  # signs the visitor's tokens
    is_proved: bool | None = None  # An e-mail's link has proved the visitor's address.
    visitor_shares: Sequence[str] | None = None  # subjects of the shares of the visitor who books
    own_client_id: str | None = None  # the client that the visitor's dialog has created
    language: Language | None = None  # of the client's e-mails, if known
    external_id: str | None = None  # in the system of the program that books
    metadata: Mapping[str, str] | None = None


def book(unit: UnitOfWork, request: BookingRequest) -> tuple[BookingRow, EventRow]:
    """Stage a new booking, and return it with the first entry of its history.

    Raises:
        NotFoundError: the service or the resource does not exist.
        ValidationError: the start is not a valid moment, or it has passed.
        SlotUnavailableError: the time cannot be booked. The error has a reason and alternatives.
    """
    workspace = slot_search.workspace_of(unit)
    key = SERVICES.key(unit.workspace_id, record_id=request.service_id)
    service = SERVICES.found(unit.rows.find(ServiceRow, key))
    slot, contact = request.slot, request.contact
    booking_reads.read_ahead(
        unit,
        service,
        slot.start,
        slot.resource_id,
        with_time_off=not slot.ignores_schedule,
        keys=() if request.client else matching.holder_keys(unit.workspace_id, contact),
    )
    match = match_client(unit, request)
    placement = Placement.create(unit, service, slot)
    candidate = placement.choose()
    offer = service.offer(candidate.resource.id)
    status, expires = request.status, None
    starts_at = clock.moment_at(placement.start)
    if status is None and offer.is_prepaid:
        status, expires = "pending_payment", holds.hold_end(starts_at)
    if match is not None:
        match.count(unit, clock.now(), bookings=1)
    booking = new_row(unit, request, service, candidate.resource, starts_at, match=match)
    booking.status, booking.hold_expires_at = status or "confirmed", expires
    if status == "pending_payment":
        holds.set_terms(workspace.id, booking, service)
    placement.stage(booking)
    unit.create(booking)
    # The price and the length are copied from the service, so it must not have changed.
    unit.require(service, type(service).version == service.version)
    if job := holds.lapse_job(unit.workspace_id, booking):
        unit.create(job)
    crm_metrics.count_bookings(
        unit,
        clock.local_day(clock.now(), workspace.timezone),
        [service.site_id],
        with_client=match is not None and match.is_new,
    )
    return booking, bookings.new_event(unit, booking, request.actor)


def new_row(  # noqa: PLR0913  what a booking consists of
    unit: UnitOfWork,
    request: BookingRequest,
    service: ServiceRow,
    resource: ResourceRow,
    starts_at: datetime,
    *,
    match: Match | None,
) -> BookingRow:
    """Return the row of a confirmed booking of a service, with a resource at a start."""
    workspace, offer = slot_search.workspace_of(unit), service.offer(resource.id)
    return BOOKINGS.new(
        unit.workspace_id,
        status="confirmed",
        service_id=service.id,
        service_name=service.name,
        starts_at=starts_at,
        ends_at=starts_at + timedelta(minutes=offer.duration_min),
        duration_min=offer.duration_min,
        buffer_before_min=int(service.buffer_before_min),
        buffer_after_min=int(service.buffer_after_min),
        price=offer.price,
        client_id=match.client.id if match else None,
        client_name=request.contact.name,
        client_phone=request.contact.phone,
        phone_entered=request.contact.phone_entered,
        client_email=request.contact.email,
        phone_digits=phones.national_digits(request.contact.phone)
        if request.contact.phone
        else None,
        notes=request.notes,
        named_contacts=contact_lookups.merge_contacts(
            None,
            contacts.contacts_in([request.notes or ""], workspace.country),
            besides=request.contact.identity.values(),
        ),
        source=request.source,
        token_secret=request.token_secret,
        is_proved=request.is_proved,
        visitor_shares=request.visitor_shares and list(request.visitor_shares),
        language=request.language,
        external_id=request.external_id,
        metadata=request.metadata,
        **copy_resource_fields(resource),
    )


def match_client(unit: UnitOfWork, request: BookingRequest) -> Match | None:
    """Return the client of a request, to count the booking, or None without one."""
    if request.client is not None:
        return Match(request.client, is_new=False, is_filled=False)
    fills = request.contact
    if not request.fills_client:
        fills = matching.name_for_own_client(
            unit.workspace_id,
            request.contact,
            unit.rows,
            own_client_id=request.own_client_id,
            is_proved=bool(request.is_proved),
        )
    return matching.match(unit.workspace_id, request.contact, fills=fills, rows=unit.rows)


def copy_resource_fields(resource: ResourceRow) -> dict[str, Any]:
    """Return what a booking copies from its resource."""
    return {
        "resource_id": resource.id,
        "resource_name": resource.name,
        "timezone": resource.timezone,
    }
