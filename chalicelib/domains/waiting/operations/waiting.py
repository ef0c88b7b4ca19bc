"""Show who waits for a free time, and add and remove them."""

from datetime import date, timedelta
from typing import Self

from pydantic import Field, model_validator

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError, call
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import DeletedResult, Id, Wire, exactly_one, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.booking_page.flows.public_booking import BookingContact
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.clients.flows.contacts import Contact
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.waiting.flows import joining, lines
from chalicelib.domains.waiting.flows.joining import Joining, NotAwaitedError
from chalicelib.domains.waiting.flows.waiting_out import WaitingEntry
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import LinePlace

API, CONSOLE = "api", "console"  # as of bookings


class WaitingListQuery(Wire):
    """Whose waiting list."""

    day: Day | None = optional("Only this local date. By default all from today on.")
    service_id: Id | None = optional("Only this service.")


class WaitingList(Wire):
    """Those who wait."""

    waiting: list[WaitingEntry] = Field(description="By day and service, then the first in line.")


class WaitingEntryCreate(Wire):
    """Somebody who is to wait."""

    EXACTLY_ONE_OF = (("client", "client_id"),)

    service_id: Id = Field(description="Service id.")
    day: Day = Field(description="Local date without free times.")
    resource_id: Id | None = optional("Only for times of this resource.")
    client: BookingContact | None = optional("Found by contacts, or created.")
    client_id: Id | None = optional("Or the id of a client.")

    @model_validator(mode="after")
    def _require_one_client(self) -> Self:
        exactly_one(self)
        return self


class WaitingEntryResult(Wire):
    """One who waits."""

    waiting_entry: WaitingEntry = Field(description="The one who waits.")


class WaitingEntryRef(Wire):
    """One who waits."""

    id: Id = Field(description="Id of the one who waits.")


@operation(
    title="Get the waiting list",
    rest="GET /api/bookings/waiting",
    scope=Scope.BOOKINGS_READ,
    role=Role.MEMBER,
    example={"day": "2030-03-02"},
)
def get_waiting_list(ctx: Context, args: WaitingListQuery) -> WaitingList:
    """Return who waits for a free time of a service on a day, in the order of the lines.

    A free time is offered to the first of a line for two hours, or half of what is left until its
    start, and then to the next. It is not held.
    """
    # Yesterday, because it may still be that day elsewhere.
    first = args.day or clock.now().date() - timedelta(days=1)
    last = args.day or date.max
    found = [
        row
        for row in waiting_lines.lines_between(ctx.workspace_id, first, last=last)
        if args.service_id in {None, row.place.service_id}
    ]
    ids = [each.id for row in found for each in row.line.waiting]
    rows = {row.sk: row for row in waiting_lines.fetch(ctx.workspace_id, ids)}
    return WaitingList(
        waiting=[
            WaitingEntry.from_line(row, rows[each.id])
            for row in found
            for each in row.line.waiting
            if each.id in rows
        ]
    )


@operation(
    title="Add to the waiting list",
    rest="POST /api/bookings/waiting",
    scope=Scope.BOOKINGS_WRITE,
    role=Role.MEMBER,
    example={
        "serviceId": "SERVICE_ID",
        "day": "2030-03-02",
        "client": {"name": "Joan", "email": "joan@example.com"},
    },
    errors=(NotAwaitedError,),
)
def create_waiting_entry(ctx: Context, args: WaitingEntryCreate) -> WaitingEntryResult:
    """Let a client wait for a free time of a service on a day that has none.

    Whoever waits already keeps the place. A booking of the client for the service and the day ends
    the waiting.
    """
    client, contact = _client_and_contact(ctx, args)
    is_person = ctx.principal.audience is Audience.SESSION
    joined = joining.join(
        ctx.unit,
        Joining(
            LinePlace(args.day, args.service_id),
            contact,
            CONSOLE if is_person else API,
            resource_id=args.resource_id,
            client=client,
            fills_client=True,
        ),
    )
    ctx.unit.mention(f"service:{args.service_id}")
    entry = WaitingEntry.from_record(joined.row, joined.position)
    return WaitingEntryResult(waiting_entry=entry)


@operation(
    title="Remove from the waiting list",
    rest="DELETE /api/bookings/waiting",
    scope=Scope.BOOKINGS_WRITE,
    role=Role.MEMBER,
    example={"id": "WAITING_ENTRY_ID"},
)
def delete_waiting_entry(ctx: Context, args: WaitingEntryRef) -> DeletedResult:
    """Remove one who waits. If a time is offered to them, it is offered to the next.

    The client is not told.
    """
    row = waiting_lines.find(ctx.workspace_id, args.id)
    if row is None:
        msg = f"Nobody waits with this id. {call('get_waiting_list')} returns all who wait."
        raise NotFoundError(msg, key="waiting")
    lines.stage_leaving(ctx.unit, [row])
    ctx.unit.mention(f"service:{row.service_id}")
    return DeletedResult(id=args.id, deleted=True)


def _client_and_contact(ctx: Context, args: WaitingEntryCreate) -> tuple[ClientRow | None, Contact]:
    if args.client is not None:
        country = slot_search.workspace_of(ctx.unit).country
        contact = Contact.create(
            name=args.client.name,
            email=args.client.email,
            phone=args.client.phone,
            country=country,
            required_phone=None if args.client.email else "client.phone",
        )
        return None, contact
    client = CLIENTS.require(ctx.workspace_id, record_id=args.client_id or "")
    return client, Contact(client.name, client.email, client.phone, client.phone_entered)
