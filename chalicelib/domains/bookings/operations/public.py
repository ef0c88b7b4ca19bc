"""Let visitors find a slot, book it, cancel the booking and download its calendar file.

Responses reveal nothing about other visitors' bookings. A visitor's contacts are stored with the
booking only, and never change an existing client.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import ConflictError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.bookings.flows import (
    binding,
    booking,
    booking_links,
    booking_payments,
    visitor_bookings,
)
from chalicelib.domains.bookings.flows.booking import BookingChange
from chalicelib.domains.bookings.flows.calendars import Search
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.flows.visitor_bookings import (
    BookingAwaitsMail,
    PublicBookingCreate,
    PublicBookingMade,
    PublicBookingOut,
)
from chalicelib.domains.bookings.operations.free_slots import (
    MAX_SLOTS,
    SlotList,
    SlotsRange,
    slot_list,
)
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store import resources
from chalicelib.domains.bookings.store.services import SERVICES
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.reading import Rows

SLOT_SEARCHES = Limit("public-slots", "searches a minute", 60, timedelta(minutes=1))
BOOKING_CHANGES = Limit(
    "public-bookings", "bookings and cancellations per minute", 30, timedelta(minutes=1)
)
CALENDAR_FILES = Limit("public-calendar", "calendar files per minute", 60, timedelta(minutes=1))
TokenText = Annotated[str, StringConstraints(max_length=100)]


class BookingStartedError(ConflictError):
    """The booking has begun, so its visitor can no longer cancel it."""

    code = "booking_started"


class PublicSlotsQuery(SlotsRange):
    """Service and range of a visitor's slot search."""

    id: Id = Field(description="Service id.")
    limit: int = Field(default=2000, ge=1, le=MAX_SLOTS, description="Slots at most.")


class PublicCancellation(Wire):
    """Token of a booking to cancel."""

    token: TokenText = Field(description="cancelToken of the booking.")
    dry_run: bool = Field(default=False, description="Only return the booking.")


class PublicBookingResult(Wire):
    """A booking."""

    booking: PublicBookingOut = Field(description="The booking.")


class CalendarFileRef(Wire):
    """Name of a calendar file."""

    file: TokenText = Field(description="File name: the last part of icsUrl.")


class CalendarFile(Wire):
    """A calendar file."""

    content: str = Field(description="iCalendar (RFC 5545).")


@operation(
    rest="GET /api/public/services/{id}/slots",
    title="Find free slots",
    audience=PUBLIC,
    resolve=lambda args: SERVICES.found_for_visitor(SERVICES.workspace_of(args.id)),
    limit=SLOT_SEARCHES,
    example={"id": "SERVICE_ID", "from": "2027-03-01", "limit": 2},
)
def get_public_slots(ctx: Context, args: PublicSlotsQuery) -> SlotList:
    """Find free slots of a service. Book one by its startAt."""
    service, rows = SERVICES.require(ctx.workspace_id, args.id), Rows()
    rows.read(
        [
            *binding.site_keys(ctx.workspace_id, service.site_id),
            *resources.keys_with_schedules(ctx.workspace_id, service.resource_ids),
        ]
    )
    visitor_bookings.require_open_site(ctx.workspace_id, service, rows)
    search = Search.create(ctx.workspace_id, service, args.resource_id, rows=rows)
    return slot_list(ctx, search, args, args.limit)


@operation(
    rest="POST /api/public/bookings",
    title="Book a service",
    audience=PUBLIC,
    resolve=lambda args: SERVICES.found_for_visitor(SERVICES.workspace_of(args.service_id)),
    limit=BOOKING_CHANGES,
    example={
        "serviceId": "SERVICE_ID",
        "startAt": "2027-03-02T12:00:00+03:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
        "idempotencyKey": "visit-1-booking-1",
    },
    errors=(SlotUnavailableError,),
)
def create_public_booking(
    ctx: Context, args: PublicBookingCreate
) -> PublicBookingMade | BookingAwaitsMail:
    """Book a free slot. If it is no longer free: 409 slot_unavailable with up to 5 alternatives.

    After 3 bookings of a visitor in an hour, or as many as the service takes from all visitors, the
    answer is 202 with confirmByMail. The link in an e-mail to client.email then books. Without an
    address, or if the service sends no mail: 429.
    """
    return visitor_bookings.book(ctx, args).out(ctx.workspace_id)


@operation(
    rest="POST /api/public/bookings/cancel",
    title="Cancel a booking",
    audience=PUBLIC,
    resolve=lambda args: booking_links.parse(args.token).workspace_id,
    limit=BOOKING_CHANGES,
    idempotent=True,
    destructive=True,
    example={"token": "CANCEL_TOKEN"},
    errors=(BookingStartedError,),
)
def cancel_public_booking(ctx: Context, args: PublicCancellation) -> PublicBookingResult:
    """Cancel a booking before it begins. Cancelling it again has no effect."""
    row = booking_links.booking_of(args.token, Purpose.CANCEL)
    if row.status != "cancelled":
        if row.starts_at <= clock.now():
            msg = "This booking has already begun and can no longer be cancelled."
            raise BookingStartedError(msg)
        if not args.dry_run:
            booking_payments.stage_refund_for_client(ctx.unit, row, ctx.principal.audit_actor)
            booking.change(ctx.unit, row, BookingChange(ctx.principal.audit_actor, "cancelled"))
    return PublicBookingResult(booking=PublicBookingOut.from_record(row))


@operation(
    rest="GET /api/public/bookings/{file}",
    title="Get a booking's calendar file",
    audience=PUBLIC,
    resolve=lambda args: booking_links.parse(_token(args)).workspace_id,
    limit=CALENDAR_FILES,
    served_as=ServedAs.CALENDAR_FILE,
    example={"file": "CALENDAR_FILE"},
)
def get_booking_calendar(ctx: Context, args: CalendarFileRef) -> CalendarFile:
    """Return a booking as an iCalendar file. Calendars replace an earlier copy with it."""
    with deadline.side_by_side() as start:
        workspace = start(lambda: workspaces.get(ctx.workspace_id))
        row = booking_links.booking_of(_token(args), Purpose.CALENDAR)
    file = booking_links.calendar_file(ctx.workspace_id, workspace.result().name, row)
    return CalendarFile(content=file.decode())


def _token(args: CalendarFileRef) -> str:
    return args.file.removesuffix(booking_links.FILE_SUFFIX)
