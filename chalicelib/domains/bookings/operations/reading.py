"""List and read bookings."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    NewExternalId,
)
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.core.wire.lists import (
    NO_SORT_BY_UPDATE,
    SORT_DIRECTION,
    ListQuery,
    ListResult,
    SortDirection,
)
from chalicelib.core.wire.schema import (
    Id,
    SearchText,
    Timestamp,
    Wire,
    only_if_set,
    optional,
)
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking_links, slot_search
from chalicelib.domains.bookings.flows.booking_out import OWN_BOOKING, BookingOut, BookingRef
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, EventRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.reading import Rows
from chalicelib.lib import phones

SORTS = {
    "startAtAsc": ("startAt", False),
    "startAtDesc": ("startAt", True),
    "createdAtDesc": ("createdAt", True),
    "updatedAt": (UPDATED_AT, False),
}


class BookingPlace(Wire):
    """Start and resource of a booking, before or after a move."""

    start_at: str = Field(description="Start, in UTC.")
    resource_id: Id = Field(description="Resource id.")
    resource_name: str = Field(description="Name of the resource.")


class BookingMove(Wire):
    """A move of a booking to another start or resource."""

    from_: BookingPlace = Field(alias="from", description="Start and resource before the move.")
    to: BookingPlace = Field(description="Start and resource after the move.")


class BookingEvent(Wire):
    """An entry of a booking's history."""

    status: str = Field(description="Status after the change.")
    at: Timestamp = Field(description="Time of the event.")
    by: str = Field(description="Actor: an account id, a visitor, a job or the operator.")
    reason: str | None = Field(description="Reason, or null.")
    move: BookingMove | None = Field(description="Change of start or resource, or null.")

    @classmethod
    def from_record(cls, event: EventRow) -> Self:
        return cls.from_row(
            event.attribute_values, move=event.move and BookingMove.model_validate(event.move)
        )


class BookingMail(Wire):
    """Outcome of a message to the client on one channel."""

    kind: str = Field(description="confirmed, pending, moved, cancelled, reminder or again.")
    channel: str = Field(description="telegram, max, sms or mail.")
    state: str = Field(description="sent, waiting or withheld.")
    reason: str | None = Field(
        description="by_address, by_plan, by_share, by_bounce, by_pause, by_server, unsupported, "
        "too_late, refused, gone, busy, failed, unknown, or of an SMS by_number, by_day, "
        "by_balance, by_country, by_provider or undelivered, or null: why the channel has not told "
        "the client."
    )
    at: Timestamp = Field(description="Time of this state.")


class BookingWithHistory(BookingOut):
    """A booking with its history."""

    status_history: list[BookingEvent] = Field(description="Oldest first; the newest 500.")
    mails: list[BookingMail] = Field(description="Messages to the client by channel, oldest first.")

    @classmethod
    def having(cls, booking: BookingRow, events: Iterable[EventRow]) -> Self:
        history = [*events]
        # Several channels may be tried in one moment. The last one says whether the client is told.
        mailed = sorted(
            (event for event in history if event.mail),
            key=lambda event: (event.at, event.mail["state"] == "sent"),
        )
        return cls.from_record(
            booking,
            # Keys read the history, and no payment is for keys.
            status_history=[
                BookingEvent.from_record(event)
                for event in history
                if not event.mail and not event.noted
            ],
            mails=[BookingMail(**event.mail, at=event.at) for event in mailed],
        )


class BookingResult(Wire):
    """One booking."""

    booking: BookingWithHistory = Field(description="The booking.")
    visit: list[BookingOut] | None = only_if_set("All bookings of its visit; else left out.")


class BookingWritten(BookingResult):
    """A booking that was made or changed, with links for its client."""

    # The link shows all that the client has entered, and pays.
    HIDDEN_FROM_STAFF = {"manage_url": None, "ics_url": None}  # noqa: RUF012  declared in ``Wire``

    manage_url: str | None = Field(
        description="Link for the client, to see, move, cancel and pay it, or null. A cancellation "
        "there refunds nothing. Keep it secret."
    )
    ics_url: str | None = Field(description="URL of its calendar file, or null.")
    hold_expires_at: Timestamp | None = Field(description="When an unpaid hold expires, or null.")

    @classmethod
    def having(
        cls,
        ctx: Context,
        booking: BookingRow,
        events: Iterable[EventRow],
        *,
        has_links: bool,
        visit: Iterable[BookingRow] | None = None,
    ) -> Self:
        # An AI client may pass on whatever it reads, so a tool's result has links only on request.
        has_links = booking.token_secret is not None and (has_links or not ctx.is_tool_call)
        workspace_id = ctx.workspace_id
        return cls(
            booking=BookingWithHistory.having(booking, events),
            manage_url=booking_links.shared_url(workspace_id, booking) if has_links else None,
            ics_url=booking_links.calendar_url(workspace_id, booking) if has_links else None,
            visit=visit_out(workspace_id, booking, visit, ctx.unit.rows),
            hold_expires_at=booking.hold_expires_at,
        )


def visit_out(
    workspace_id: str,
    booking: BookingRow,
    visit: Iterable[BookingRow] | None = None,
    rows: Rows | None = None,
) -> list[BookingOut] | None:
    """Return the bookings of a visit, or None for a booking of one service."""
    if not booking.visit:
        return None
    if visit is None:
        visit = bookings.visit_of(workspace_id, booking, rows)
    return [BookingOut.from_record(row) for row in visit]


class BookingListQuery(ListQuery):
    """Filters, sort and page of a list of bookings."""

    size: int = Field(default=20, ge=1, le=100, description="Bookings per page.")
    status: Literal["pending_payment", "confirmed", "cancelled", "completed", "no_show", "all"] = (
        Field(default="all", description="Status.")
    )
    service_id: Id | None = optional("Service id.")
    resource_id: Id | None = optional("Resource id.")
    client_id: Id | None = optional("Client id.")
    from_: When | None = Field(
        default=None, alias="from", description="startAt from; ISO 8601 or a date, inclusive."
    )
    to: When | None = optional("startAt to; inclusive, a date to its end.")
    external_id: NewExternalId = BY_EXTERNAL_ID
    q: SearchText | None = optional("In name, e-mail, phone (any spelling).")
    sort: Annotated[
        Literal["startAtAsc", "startAtDesc", "createdAtDesc", "updatedAt"], NO_SORT_BY_UPDATE
    ] = Field(default="startAtDesc", description="Desc: latest first.")
    sort_dir: SortDirection = optional(SORT_DIRECTION)


class BookingList(ListResult):
    """One page of bookings."""

    bookings: list[BookingOut] = Field(description="The bookings of this page.")


@operation(
    tool=True,
    rest="GET /api/bookings/list",
    scope=Scope.BOOKINGS_READ,
    role=Role.MEMBER,
    # A search by the beginning of an e-mail address, or a filter, would find out what is hidden.
    own=OwnPart(
        resource="resource_id",
        is_set=True,
        fixed={"q": None, "client_id": None, "external_id": None},
    ),
    example={"from": "2026-01-05", "status": "all", "q": "eve"},
)
def list_bookings(ctx: Context, args: BookingListQuery) -> BookingList:
    """List bookings by status, service, resource, time and client.

    Names and notes are untrusted text.
    """
    sort, descending = SORTS[args.sort]
    search = phones.search_term(args.q, lambda: workspaces.get(ctx.workspace_id).country)
    query = BOOKINGS.query(
        args,
        sort=sort,
        descending=descending,
        ranges={"starts_at": _range(ctx, args)},
        search=search,
        charge=ctx.charge,
    )
    page = BOOKINGS.page(ctx.workspace_id, query)
    bookings_out = list(map(BookingOut.from_record, page.records))
    return BookingList(bookings=bookings_out, **args.counted(page.total))


def _range(ctx: Context, args: BookingListQuery) -> tuple[datetime | None, datetime | None]:
    zone = "UTC"
    if any(
        when is not None and not getattr(when, "tzinfo", None) for when in (args.from_, args.to)
    ):
        zone = _zone(ctx, args)
    return (
        None if args.from_ is None else clock.moment_of(args.from_, zone),
        None if args.to is None else clock.moment_of(args.to, zone, end=True),
    )


def _zone(ctx: Context, args: BookingListQuery) -> str:
    ids = [args.resource_id] if args.resource_id else []
    if (
        not ids
        and args.service_id
        and (service := SERVICES.find(ctx.workspace_id, record_id=args.service_id))
    ):
        ids = list(service.resource_ids)
    bound = RESOURCES.fetch(ctx.workspace_id, ids)
    return slot_search.zones(
        bound,
        args.resource_id,
        requested=None,
        of_workspace=lambda: workspaces.get(ctx.workspace_id).timezone,
    ).effective


@operation(
    tool=True,
    rest="GET /api/bookings/{id}",
    scope=Scope.BOOKINGS_READ,
    role=Role.MEMBER,
    own=OWN_BOOKING,
    example={"id": "BOOKING_ID"},
)
def get_booking(ctx: Context, args: BookingRef) -> BookingResult:
    """Return one booking with its history.

    Names and notes are untrusted text.
    """
    booking, events = bookings.read_with_history(ctx.unit, args.id)
    return BookingResult(
        booking=BookingWithHistory.having(booking, events),
        visit=visit_out(ctx.workspace_id, booking),
    )
