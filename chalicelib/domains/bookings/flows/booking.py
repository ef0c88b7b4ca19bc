"""Create and change bookings in one transaction, so that a time is booked only once (ADR 21).

API callers and visitors use the same code. It reads the calendar days of the requested time and
checks them with the same predicate that lists free slots. At commit, these days must be unchanged.
If several requests compete for a time, the first one commits. The others run again, find its entry
in the calendar, and return alternatives.
"""

from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from chalicelib.core import clock, retry
from chalicelib.core.clock import epoch_ms, iso
from chalicelib.core.errors import ValidationError
from chalicelib.core.jobs import CLOSE_RECEIPT
from chalicelib.domains.bookings.flows import calendars
from chalicelib.domains.bookings.flows.booking_reads import BookingReads
from chalicelib.domains.bookings.flows.placement import Placement, SlotRequest
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import (
    BLOCKING,
    BOOKINGS,
    BookingRow,
    BookingStatus,
    EventRow,
)
from chalicelib.domains.bookings.store.calendar_days import CalendarDays
from chalicelib.domains.bookings.store.resources import ResourceRow
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.contacts.flows import contacts
from chalicelib.domains.contacts.flows.contacts import Contact, Match
from chalicelib.domains.contacts.store import clients
from chalicelib.domains.contacts.store.clients import ClientRow
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.payments.rules.schedule import deposit
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import phones
from chalicelib.lib.localized import Language

HOLD = timedelta(minutes=30)
"""Time for which an unpaid booking is held."""
LAPSE = "lapse-of-hold"
"""The scheduled job that cancels a booking that was not paid in time."""
_SAME_TIME_STATUSES = {"confirmed", "completed"}
"""A change from one of these statuses to another does not change the booked time.

Therefore the time is not checked again.
"""


class BookingRequest(NamedTuple):
    """A request for a new booking.

    Without ``status``, the booking is confirmed, or held for ``HOLD`` if the service requires
    payment. Without ``client``, the client is found or created by ``contact``. If ``fills_client``,
    the contact may also complete the record of an existing client. Contacts from visitors may not,
    because they are not verified. ``actor`` appears in the history. ``token_secret`` signs the
    visitor's tokens. ``is_proved`` says that an e-mail's link has proved the visitor's address.
    ``own_client_id`` is the client that the visitor's dialog has created.
    ``language`` is the language of the client's e-mails, if known.
    """

    service_id: str
    slot: SlotRequest
    contact: Contact
    source: str
    actor: str
    client: ClientRow | None = None
    fills_client: bool = True
    notes: str | None = None
    status: BookingStatus | None = None
    token_secret: str | None = None
    is_proved: bool | None = None
    own_client_id: str | None = None
    language: Language | None = None


class BookingChange(NamedTuple):
    """Requested status, start and resource of a booking, with the reason for the change.

    ``is_lapse`` says that the hold of an unpaid booking has expired.
    """

    actor: str
    status: BookingStatus | None = None
    start: date | None = None
    resource_id: str | None = None
    ignores_schedule: bool = False
    reason: str | None = None
    is_lapse: bool = False


def contact_of(name: str, phone: str | None, email: str | None, country: str) -> Contact:
    """Return a contact in normal form.

    Raises:
        ValidationError: the phone is not a valid number.
    """
    number = phones.find_phone(phone, country) if phone else None
    if phone and number is None:
        message = f'expected a phone number such as +74951234567, received "{phone}"'
        raise ValidationError.of("client.phone", message)
    return Contact(name, email, number, phone)


def book(
    unit: UnitOfWork, request: BookingRequest, reads: BookingReads
) -> tuple[BookingRow, EventRow]:
    """Stage a new booking, and return it with the first entry of its history.

    ``reads`` has what the caller has read before, in this attempt.

    Raises:
        NotFoundError: the service or the resource does not exist.
        ValidationError: the start is not a valid moment, or it has passed.
        SlotUnavailableError: the time cannot be booked. The error has a reason and alternatives.
    """
    workspace = calendars.workspace_of(unit)
    key = SERVICES.key(unit.workspace_id, request.service_id)
    service = SERVICES.found(reads.rows.find(ServiceRow, key))
    slot, contact = request.slot, request.contact
    reads.read_ahead(
        service,
        slot.start,
        slot.resource_id,
        with_time_off=not slot.ignores_schedule,
        keys=() if request.client else contacts.holder_keys(unit.workspace_id, contact),
    )
    match = _match_client(unit, request, reads.rows)
    placement = Placement.create(unit, reads, service, slot)
    candidate = placement.choose()
    status, expires = request.status, None
    if status is None and service.require_payment:
        status, expires = "pending_payment", clock.now() + HOLD
    terms = service.terms if status == "pending_payment" else None
    if match is not None:
        match.count(unit, clock.now(), bookings=1)
    booking = BOOKINGS.new(
        unit.workspace_id,
        status=status or "confirmed",
        service_id=service.id,
        service_name=service.name,
        starts_at=clock.moment_at(placement.start),
        ends_at=clock.moment_at(placement.start) + timedelta(minutes=int(service.duration_min)),
        duration_min=int(service.duration_min),
        buffer_before_min=int(service.buffer_before_min),
        buffer_after_min=int(service.buffer_after_min),
        price=int(service.price),
        client_id=match.client.id if match else None,
        client_name=request.contact.name,
        client_phone=request.contact.phone,
        phone_entered=request.contact.phone_entered,
        client_email=request.contact.email,
        phone_digits=phones.national_digits(request.contact.phone)
        if request.contact.phone
        else None,
        notes=request.notes,
        named_contacts=clients.merge_contacts(
            None,
            contacts.contacts_in([request.notes or ""], workspace.country),
            besides=request.contact.identity.values(),
        ),
        source=request.source,
        hold_expires_at=expires,
        due=terms and deposit(int(service.price), terms.deposit_percent),
        refund_until_min=terms and terms.refund_until_min,
        token_secret=request.token_secret,
        is_proved=request.is_proved,
        language=request.language,
        **_resource_fields(candidate.resource),
    )
    placement.stage(booking)
    unit.create(booking)
    # The price and the length are copied from the service, so it must not have changed.
    unit.require(service, type(service).version == service.version)
    if job := lapse_job(unit.workspace_id, booking):
        unit.create(job)
    crm_metrics.count_booking(
        unit,
        clock.local_day(clock.now(), workspace.timezone),
        service.site_id,
        with_client=match is not None and match.is_new,
    )
    return booking, bookings.new_event(unit, booking, request.actor)


def change(unit: UnitOfWork, booking: BookingRow, requested: BookingChange) -> EventRow | None:
    """Stage a change of a booking, and return the new entry of its history, or None.

    If the booking is moved, the new time must be free. The booking's own time counts as free. The
    time must also be free if the new status is a blocking one, in which a booking occupies time.
    Changes between confirmed and completed need no check. A change without effect is ignored.

    Raises:
        NotFoundError: the resource does not exist.
        ValidationError: the start is not a valid moment, or it has passed. Or a move was requested
            for a booking whose status occupies no time.
        SlotUnavailableError: the time cannot be booked, as in ``book``.
    """
    status: str = requested.status or booking.status
    former_entry, blocked, former_status = booking.busy, booking.blocks, booking.status
    is_move = _may_move(booking, requested)
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
    if is_move and status not in BLOCKING:
        message = (
            f"a booking with the status {status} has no reserved time and cannot be moved; also "
            "send another status, such as confirmed"
        )
        raise ValidationError.of("startAt" if requested.start else "resourceId", message)
    former = _time_and_resource(booking)
    if status != booking.status:
        _end_hold(unit, booking)
        # Both statuses occupy the time, so nothing has to be checked or written in the calendar.
        to_check = {status, booking.status} - _SAME_TIME_STATUSES
        booking.status = status
        booking.has_lapsed = requested.is_lapse or None
    else:
        to_check = set()
    if is_move and placement is not None:
        _move(placement, booking, former_entry if blocked else None)
    elif booking.blocks and to_check:
        Placement.create_for_reactivation(unit, booking).reactivate(booking)
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
    move = {"from": former, "to": _time_and_resource(booking)} if is_move else None
    return bookings.new_event(unit, booking, requested.actor, reason=requested.reason, move=move)


def stage_closing_receipt(unit: UnitOfWork, booking: BookingRow) -> None:
    """Stage the job of the closing receipt if the booking took place and is paid."""
    if booking.status == "completed" and booking.paid_by:
        payload = {"bookingId": booking.id, "at": iso(clock.now())}
        unit.create(jobs.row(CLOSE_RECEIPT, unit.workspace_id, payload))


def _may_move(booking: BookingRow, requested: BookingChange) -> bool:
    """Return whether a change may move the booking.

    A start without a UTC offset may be the current start. ``change`` finds that out later.
    """
    start = requested.start
    same = isinstance(start, datetime) and start.tzinfo and start == booking.starts_at
    return requested.resource_id not in {None, booking.resource_id} or not (start is None or same)


def _move(placement: Placement, booking: BookingRow, former_entry: BusyEntry | None) -> None:
    """Stage another start or resource of a booking. Its length and buffers do not change.

    ``former_entry`` is its entry in the calendar, or None if it did not occupy its time.
    """
    former_resource_id = booking.resource_id
    candidate = placement.choose()
    booking.starts_at = clock.moment_at(placement.start)
    booking.ends_at = booking.starts_at + timedelta(minutes=int(booking.duration_min))
    if candidate.resource.id != former_resource_id:
        for name, value in _resource_fields(candidate.resource).items():
            setattr(booking, name, value)
    placement.stage(booking, replacing=former_entry and (former_resource_id, former_entry))


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


def _end_hold(unit: UnitOfWork, booking: BookingRow) -> None:
    if booking.hold_expires_at is not None:
        # The job would find the hold ended, but deleting it saves the run.
        unit.delete(jobs.ref(LAPSE, booking.hold_expires_at, booking.id))
        booking.hold_expires_at = None


def _match_client(unit: UnitOfWork, request: BookingRequest, rows: Rows) -> Match | None:
    if request.client is not None:
        return Match(request.client, is_new=False, is_filled=False)
    fills = request.contact
    if not request.fills_client:
        fills = contacts.name_for_own_client(
            unit.workspace_id,
            request.contact,
            rows,
            own_client_id=request.own_client_id,
            is_proved=bool(request.is_proved),
        )
    return contacts.match(unit.workspace_id, request.contact, fills=fills, rows=rows)


def _resource_fields(resource: ResourceRow) -> dict[str, Any]:
    return {
        "resource_id": resource.id,
        "resource_name": resource.name,
        "timezone": resource.timezone,
    }


def _time_and_resource(booking: BookingRow) -> dict[str, Any]:
    return {
        "startAt": iso(booking.starts_at),
        "resourceId": booking.resource_id,
        "resourceName": booking.resource_name,
    }
