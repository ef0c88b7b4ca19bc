"""Create a booking for a client."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from chalicelib.application.context import Context
from chalicelib.core.errors import ExternalIdTakenError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    EXTERNAL_ID,
    METADATA,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.schema import Id, Wire, exactly_one, has_at_least_one, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking_reads, new_booking, slot_search
from chalicelib.domains.bookings.flows.new_booking import BookingRequest, Notes
from chalicelib.domains.bookings.flows.placement import SlotRequest, SlotUnavailableError
from chalicelib.domains.bookings.flows.visit_search import AndThen
from chalicelib.domains.bookings.operations.reading import BookingWritten
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.flows.phone_warning import warn_of_phone
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

API, CONSOLE = "api", "console"  # sources: with an API key, and by users in the console


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
    and_then: AndThen = Field(
        default=[], description="Ids of services that follow at once: one visit, one transaction."
    )
    start_at: When = Field(description="startAt of a free slot.")
    resource_id: Id | None = optional("Default: the free one with the fewest bookings.")
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
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA
    include_manage_url: bool = Field(default=False, description="For tools: return manageUrl.")

    @model_validator(mode="after")
    def _require_one_client(self) -> Self:
        exactly_one(self)
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
    errors=(ExternalIdTakenError, SlotUnavailableError),
    role=Role.MEMBER,
    # Whoever could name a client by id, or a program's id, would find out who is a client.
    own=OwnPart(
        resource="resource_id",
        is_set=True,
        fixed={
            "and_then": [],
            "client_id": None,
            "external_id": None,
            "metadata": None,
            "include_manage_url": False,
        },
    ),
)
def create_booking(ctx: Context, args: BookingCreate) -> BookingWritten:
    """Book a slot of svc_get_available_slots for a client.

    If it is no longer free: 409 slot_unavailable with alternatives.
    """
    is_person = ctx.principal.audience is Audience.SESSION
    if args.client is not None and not is_person and not has_at_least_one(args.client):
        raise ValidationError.of("client", message="expected phone, email or both")
    client_keys = (
        [CLIENTS.key(ctx.workspace_id, record_id=args.client_id)] if args.client_id else []
    )
    booking_reads.read_service(ctx.unit, args.service_id, client_keys)
    client, contact = _client_and_contact(ctx, args)
    _check_external_id(ctx, args.external_id)
    external_data: dict[str, Any] = {"external_id": args.external_id, "metadata": args.metadata}
    merge_metadata(external_data)
    request = BookingRequest(
        service_id=args.service_id,
        slot=SlotRequest(args.start_at, args.resource_id, ignores_schedule=args.ignore_schedule),
        contact=contact,
        source=CONSOLE if is_person else API,
        actor=ctx.principal.audit_actor,
        client=client,
        notes=args.notes,
        status=args.status,
        token_secret=ctx.unit.run_side_effect_once("secret", booking_tokens.new_secret),
        **external_data,
    )
    has_links = args.include_manage_url
    if args.and_then:
        from chalicelib.domains.bookings.flows import new_visit  # noqa: PLC0415  few need it

        visit = new_visit.book(ctx.unit, request, args.and_then)
        return BookingWritten.having(
            ctx, visit.rows[0], [visit.event], has_links=has_links, visit=visit.rows
        )
    new_row, event = new_booking.book(ctx.unit, request)
    return BookingWritten.having(ctx, new_row, [event], has_links=has_links)


def _check_external_id(ctx: Context, external_id: str | None) -> None:
    # A program that repeats a call whose response was lost finds its booking by this error. The
    # booking's own time would be the reason otherwise.
    if external_id is None:
        return
    ids = BOOKINGS.find_by(ctx.workspace_id, lookup="external_id", value=external_id)
    if ids:
        raise ExternalIdTakenError(ids[0])


def _client_and_contact(ctx: Context, args: BookingCreate) -> tuple[ClientRow | None, Contact]:
    if args.client is not None:
        contact = Contact.create(
            name=args.client.name,
            email=args.client.email,
            phone=args.client.phone,
            country=slot_search.workspace_of(ctx.unit).country,
            required_phone=None if args.client.email else "client.phone",
        )
        warn_of_phone(ctx, contact)
        return None, contact
    key = CLIENTS.key(ctx.workspace_id, record_id=args.client_id or "")
    client = CLIENTS.found(ctx.unit.rows.find(ClientRow, key))
    entered = None if client.phone else client.phone_entered
    return client, Contact(client.name, client.email, client.phone, entered)
