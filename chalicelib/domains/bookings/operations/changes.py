"""Create and move bookings, and set their statuses."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core.errors import ValidationError, VersionConflictError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import (
    IF_VERSION,
    Id,
    IfVersion,
    Wire,
    exactly_one,
    has_at_least_one,
    optional,
)
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking, calendars
from chalicelib.domains.bookings.flows.booking import BookingChange, BookingRequest
from chalicelib.domains.bookings.flows.booking_reads import BookingReads
from chalicelib.domains.bookings.flows.placement import SlotRequest, SlotUnavailableError
from chalicelib.domains.bookings.flows.visitor_bookings import Notes
from chalicelib.domains.bookings.operations.bookings import BookingResult, BookingWithHistory
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BookingStatus
from chalicelib.domains.contacts.flows.contacts import Contact
from chalicelib.domains.contacts.store.clients import CLIENTS, ClientRow
from chalicelib.engine.reading import Rows
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

API, CONSOLE = "api", "console"
"""Sources of bookings made with an API key, and by users in the console."""

ReasonText = Annotated[str, StringConstraints(max_length=500)]


class ClientContact(Wire):
    """Name and contact details of a client. People in the console may send a name alone."""

    AT_LEAST_ONE_OF = ("phone", "email")

    name: PersonName = Field(description="Name.")
    phone: PhoneText | None = optional("In any format; or send email.")
    email: Email | None = optional("E-mail address.")


class BookingCreate(Wire):
    """A new booking."""

    EXACTLY_ONE_OF = (("client", "client_id"),)

    service_id: Id = Field(description="Service id.")
    start_at: When = Field(description="startAt of a free slot.")
    resource_id: Id | None = optional("Default: the first free resource.")
    client: ClientContact | None = optional("Found by contacts, or created.")
    client_id: Id | None = optional("Or the id of a client.")
    notes: Notes | None = optional("Notes.")
    status: Literal["pending_payment", "confirmed"] | None = optional(
        "Default: confirmed; a 30-minute hold if requirePayment."
    )
    ignore_schedule: bool = Field(
        default=False,
        description="Ignore hours, grid, notice, horizon, time off; allow the past.",
    )

    @model_validator(mode="after")
    def _require_one_client(self) -> Self:
        exactly_one(self)
        return self


class BookingMoveTo(Wire):
    """New start or resource of a booking."""

    start_at: When | None = optional("New start.")
    resource_id: Id | None = optional("New resource.")
    ignore_schedule: bool = Field(default=False, description="As in svc_create_booking.")
    if_version: IfVersion | None = IF_VERSION


class BookingStatusSet(BookingMoveTo):
    """New status of a booking, and optionally a new start or resource."""

    id: Id = Field(description="Booking id.")
    status: BookingStatus = Field(description="To only move it, send its current status.")
    reason: ReasonText | None = optional("Kept in the history.")


class BookingReschedule(BookingMoveTo):
    """A booking to move, and its new start or resource."""

    AT_LEAST_ONE_OF = ("start_at", "resource_id")

    id: Id = Field(description="Booking id.")

    @model_validator(mode="after")
    def _require_new_place(self) -> Self:
        if not has_at_least_one(self):
            raise PydanticCustomError("nowhere", "expected startAt, resourceId or both")
        return self


@operation(
    tool=True,
    rest="POST /api/bookings/create",
    scope=Scope.BOOKINGS_WRITE,
    example={
        "serviceId": "SERVICE_ID",
        "startAt": "2027-03-02T12:00:00+03:00",
        "client": {"name": "Ada", "phone": "8 495 123-45-67"},
        "notes": "Decaf, please",
        "ignoreSchedule": True,
    },
    errors=(SlotUnavailableError,),
    role=Role.MEMBER,
)
def create_booking(ctx: Context, args: BookingCreate) -> BookingResult:
    """Book a slot of svc_get_available_slots for a client.

    If it is no longer free: 409 slot_unavailable with alternatives.
    """
    is_person = ctx.principal.audience is Audience.SESSION
    if args.client is not None and not is_person and not has_at_least_one(args.client):
        raise ValidationError.of("client", "expected phone, email or both")
    reads = BookingReads(ctx.unit)
    client_keys = [CLIENTS.key(ctx.workspace_id, args.client_id)] if args.client_id else []
    reads.read_service(args.service_id, client_keys)
    client, contact = _client_and_contact(ctx, args, reads.rows)
    new_row, event = booking.book(
        ctx.unit,
        BookingRequest(
            service_id=args.service_id,
            slot=SlotRequest(
                args.start_at, args.resource_id, ignores_schedule=args.ignore_schedule
            ),
            contact=contact,
            source=CONSOLE if is_person else API,
            actor=ctx.principal.audit_actor,
            client=client,
            notes=args.notes,
            status=args.status,
            token_secret=ctx.unit.run_side_effect_once("secret", booking_tokens.new_secret),
        ),
        reads,
    )
    return BookingResult(booking=BookingWithHistory.having(new_row, [event]))


@operation(
    tool=True,
    rest="POST /api/bookings/set-status",
    scope=Scope.BOOKINGS_WRITE,
    title="Set a booking's status, or move it",
    idempotent=True,
    destructive=True,
    example={"id": "BOOKING_ID", "status": "completed", "reason": "Came"},
    errors=(SlotUnavailableError, VersionConflictError),
    role=Role.MEMBER,
)
def set_booking_status(ctx: Context, args: BookingStatusSet) -> BookingResult:
    """Set any status of a booking; with startAt or resourceId, move it.

    To reactivate a cancelled booking, its time must be free (else 409 slot_unavailable).
    """
    return _change_booking(ctx, args, args.status, args.reason)


@operation(
    rest="POST /api/bookings/reschedule",
    scope=Scope.BOOKINGS_WRITE,
    title="Move a booking",
    idempotent=True,
    destructive=True,
    example={"id": "BOOKING_ID", "startAt": "2027-03-02T15:00", "ignoreSchedule": True},
    errors=(SlotUnavailableError, VersionConflictError),
    role=Role.MEMBER,
)
def reschedule_booking(ctx: Context, args: BookingReschedule) -> BookingResult:
    """Move a booking to another start, another resource, or both. Its status stays."""
    return _change_booking(ctx, args, None, None)


def _change_booking(
    ctx: Context,
    args: BookingStatusSet | BookingReschedule,
    status: BookingStatus | None,
    reason: str | None,
) -> BookingResult:
    row, events = bookings.read_with_history(ctx.workspace_id, args.id)
    row.require_version(args.if_version)
    event = booking.change(
        ctx.unit,
        row,
        BookingChange(
            actor=ctx.principal.audit_actor,
            status=status,
            start=args.start_at,
            resource_id=args.resource_id,
            ignores_schedule=args.ignore_schedule,
            reason=reason or None,
        ),
    )
    history = [*events, *([event] if event else [])]
    return BookingResult(booking=BookingWithHistory.having(row, history))


def _client_and_contact(
    ctx: Context, args: BookingCreate, rows: Rows
) -> tuple[ClientRow | None, Contact]:
    """Return the client with the given id, if any, and the contacts to store with the booking."""
    if args.client is not None:
        country = calendars.workspace_of(ctx.unit).country
        contact = booking.contact_of(
            args.client.name, args.client.phone, args.client.email, country
        )
        return None, contact
    key = CLIENTS.key(ctx.workspace_id, args.client_id or "")
    client = CLIENTS.found(rows.find(ClientRow, key))
    return client, Contact(client.name, client.email, client.phone)
