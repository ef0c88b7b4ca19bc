"""Public operations for visitors: find a slot, book it, cancel it, get its calendar file.

Responses reveal nothing about other visitors' bookings. A visitor's contacts are stored with the
booking only, and never change an existing client.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from chalicelib import SERVICE
from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.errors import ConflictError, RateLimitedError, ValidationError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import ServedAs, operation
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import binding, booking, calendars
from chalicelib.domains.bookings.flows.booking import BookingChange, BookingRequest
from chalicelib.domains.bookings.flows.booking_reads import BookingReads
from chalicelib.domains.bookings.flows.calendars import Search
from chalicelib.domains.bookings.flows.placement import SlotRequest, SlotUnavailableError
from chalicelib.domains.bookings.operations.changes import BookingContact, Notes
from chalicelib.domains.bookings.operations.free_slots import (
    MAX_SLOTS,
    SlotList,
    SlotsRange,
    slot_list,
)
from chalicelib.domains.bookings.rules import booking_tokens, calendar_files
from chalicelib.domains.bookings.rules.booking_tokens import BookingToken, Purpose
from chalicelib.domains.bookings.rules.calendar_files import CalendarEvent
from chalicelib.domains.bookings.store import bookings, resources
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, VisitorBookingsRow
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.contacts.flows import contacts
from chalicelib.domains.contacts.flows.contacts import Contact
from chalicelib.domains.identity.flows.zones import Timezone
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.lib import zoned_times

SOURCE = "public"
"""Source of bookings made by visitors."""
SLOT_SEARCHES = Limit("public-slots", "searches a minute", 60, timedelta(minutes=1))
BOOKING_CHANGES = Limit(
    "public-bookings", "bookings and cancellations a minute", 30, timedelta(minutes=1)
)
BOOKINGS_PER_DAY = Limit("public-bookings-day", "bookings a day", 200, timedelta(days=1))
"""Bookings per day from one visitor.

If the rate limiter is unavailable, requests are refused. ``BOOKING_CHANGES`` does the same.
"""
CALENDAR_FILES = Limit("public-calendar", "calendar files a minute", 60, timedelta(minutes=1))
MAX_UPCOMING = 5
"""Maximum number of upcoming bookings that one visitor may make for one contact in a workspace."""
MAX_HOLDS = 2
"""Maximum number of unpaid bookings among them."""
RETRY_AFTER = timedelta(hours=1)
"""Retry-After of a refused request. It is constant, so that it reveals nothing."""
SUFFIX = ".ics"

TokenText = Annotated[str, StringConstraints(max_length=100)]


class BookingStartedError(ConflictError):
    """The booking has begun, so its visitor can no longer cancel it."""

    code = "booking_started"


class PublicSlotsQuery(SlotsRange):
    """Service and range of a visitor's slot search."""

    id: Id = Field(description="Service id.")
    limit: int = Field(default=2000, ge=1, le=MAX_SLOTS, description="Slots at most.")


class PublicBookingCreate(Wire):
    """A visitor's request for a booking."""

    service_id: Id = Field(description="Service id.")
    start_at: When = Field(description="startAt of a slot.")
    timezone: Timezone | None = optional("IANA zone of a time without an offset.")
    resource_id: Id | None = optional("Default: the first free one.")
    client: BookingContact = Field(description="Name and contact details of the client.")
    notes: Notes | None = optional("Notes for the business.")


class PublicBookingOut(Wire):
    """Public data of a booking. Anyone with its token can read them."""

    id: Id = Field(description="Booking id.")
    status: str = Field(description="pending_payment, confirmed, cancelled, completed or no_show.")
    service_name: str = Field(description="Name of the service.")
    resource_name: str = Field(description="Name of the resource.")
    start_at: Timestamp = Field(description="Start.")
    start_local: str = Field(description="Start with the offset of its zone.")
    end_at: Timestamp = Field(description="End.")
    timezone: str = Field(description="IANA zone of the resource.")
    price: int = Field(description="Price in kopecks.")

    @classmethod
    def of(cls, row: BookingRow) -> Self:
        """Return the wire form of a stored booking for a visitor."""
        return cls.from_row(
            row.values,
            start_at=row.starts_at,
            end_at=row.ends_at,
            start_local=zoned_times.local_time(row.starts_at, row.timezone).text,
        )


class PublicBookingMade(Wire):
    """A new booking with its cancellation token and calendar file."""

    booking: PublicBookingOut = Field(description="The booking.")
    cancel_token: str = Field(description="Token to cancel the booking. Keep it secret.")
    ics_url: str = Field(description="URL of its calendar file, which has no contact details.")


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


def _read(text: str) -> BookingToken:
    return BOOKINGS.found_for_visitor(booking_tokens.read(text))


def _require_open_site(ctx: Context, service: ServiceRow, rows: Rows) -> None:
    """Require that visitors may book a service.

    Raises:
        NotFoundError: its site is suspended.
    """
    site = binding.site_of_service(ctx.workspace_id, service.site_id, rows)
    if site is not None and site.status == SUSPENDED:
        raise SERVICES.unavailable()


@operation(
    rest="GET /api/public/services/{id}/slots",
    title="Find free slots",
    audience=(Audience.PUBLIC,),
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
    _require_open_site(ctx, service, rows)
    search = Search.of(ctx.workspace_id, service, args.resource_id, rows=rows)
    return slot_list(ctx, search, args, args.limit)


@operation(
    rest="POST /api/public/bookings",
    title="Book a service",
    audience=(Audience.PUBLIC,),
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
def create_public_booking(ctx: Context, args: PublicBookingCreate) -> PublicBookingMade:
    """Book a free slot. If it is no longer free: 409 slot_unavailable with up to 5 alternatives."""
    reads = BookingReads(ctx.unit)
    service = SERVICES.found(reads.read_service(args.service_id))
    contact = _contact(ctx, args.client, service, reads.rows)
    visitor_keys = bookings.visitor_keys(
        ctx.workspace_id, ctx.principal.rate_limit_key, contact.identity.values()
    )
    reads.read_ahead(
        service,
        args.start_at,
        args.resource_id,
        with_time_off=True,
        keys=[
            *binding.site_keys(ctx.workspace_id, service.site_id),
            *contacts.holder_keys(ctx.workspace_id, contact),
            *visitor_keys,
        ],
    )
    _require_open_site(ctx, service, reads.rows)
    earlier = bookings.made_by_visitor(visitor_keys, reads.rows)
    with deadline.side_by_side() as start:
        within_limit = start(lambda: _take_daily_limit(ctx))
        reads.rows.read(BOOKINGS.key(ctx.workspace_id, each) for row in earlier for each in row.ids)
        within_limit.result()
    _check_upcoming(ctx, service, earlier, reads.rows)
    secret = ctx.unit.run_side_effect_once("secret", booking_tokens.new_secret)
    made, _ = booking.book(
        ctx.unit,
        BookingRequest(
            service_id=service.id,
            slot=SlotRequest(args.start_at, args.resource_id, args.timezone),
            contact=contact,
            source=SOURCE,
            actor=ctx.principal.audit_actor,
            fills_client=False,
            notes=args.notes,
            token_secret=secret,
        ),
        reads,
    )
    for row in earlier:
        row.ids = [*row.ids, made.id]
        ctx.unit.save(row)
    limits.stage(ctx.unit, _unverified(service), service.id)

    def token(purpose: Purpose) -> str:
        return booking_tokens.token(ctx.workspace_id, made.id, purpose, secret)

    return PublicBookingMade(
        booking=PublicBookingOut.of(made),
        cancel_token=token(Purpose.CANCEL),
        ics_url=f"{settings().public_url}/api/public/bookings/{token(Purpose.CALENDAR)}{SUFFIX}",
    )


def _contact(ctx: Context, client: BookingContact, service: ServiceRow, rows: Rows) -> Contact:
    """Return the contact of a visitor.

    Raises:
        NotFoundError: the service's site is suspended.
        ValidationError: the phone is not a valid number.
    """
    country = calendars.workspace_of(ctx.unit).country
    try:
        return booking.contact_of(client.name, client.phone, client.email, country)
    except ValidationError:
        _require_open_site(ctx, service, rows)
        raise


def _take_daily_limit(ctx: Context) -> None:
    ctx.unit.run_side_effect_once(
        "day", lambda: limits.take(BOOKINGS_PER_DAY, ctx.principal.rate_limit_key)
    )


def _check_upcoming(
    ctx: Context, service: ServiceRow, earlier: Iterable[VisitorBookingsRow], rows: Rows
) -> None:
    """Keep the visitor's upcoming bookings in the rows of earlier ones, one row for each contact.

    Bookings of other visitors for the same contact do not count, and every refusal is the same.
    Therefore a visitor cannot learn about another person's contact, or prevent that person from
    booking. The caller saves these rows with the new booking. Of several concurrent requests one
    commits, and the others run again.

    Raises:
        RateLimitedError: the visitor has too many upcoming bookings or unpaid holds.
    """
    for row in earlier:
        upcoming = bookings.upcoming(ctx.workspace_id, row.ids, rows)
        row.ids = [each.id for each in upcoming]
        holds = sum(each.hold_expires_at is not None for each in upcoming)
        if len(upcoming) >= MAX_UPCOMING or (service.require_payment and holds >= MAX_HOLDS):
            msg = (
                "You have the maximum number of upcoming bookings for these contacts. "
                "Cancel one of them, or try again later."
            )
            wait = round(RETRY_AFTER.total_seconds())
            raise RateLimitedError(msg, headers={"Retry-After": str(wait)})


def _unverified(service: ServiceRow) -> Limit:
    """Return the limit on visitors' bookings of a service. Their contacts are not verified."""
    max_bookings = int(service.unverified_per_hour)
    return Limit("unverified", "bookings of this service an hour", max_bookings, timedelta(hours=1))


@operation(
    rest="POST /api/public/bookings/cancel",
    title="Cancel a booking",
    audience=(Audience.PUBLIC,),
    resolve=lambda args: _read(args.token).workspace_id,
    limit=BOOKING_CHANGES,
    idempotent=True,
    destructive=True,
    example={"token": "CANCEL_TOKEN"},
    errors=(BookingStartedError,),
)
def cancel_public_booking(ctx: Context, args: PublicCancellation) -> PublicBookingResult:
    """Cancel a booking before it begins. Cancelling it again has no effect."""
    row = _booking_for_token(ctx, args.token, Purpose.CANCEL)
    if row.status != "cancelled":
        if row.starts_at <= clock.now():
            msg = "This booking has already begun and can no longer be cancelled."
            raise BookingStartedError(msg)
        if not args.dry_run:
            booking.change(ctx.unit, row, BookingChange(ctx.principal.audit_actor, "cancelled"))
    return PublicBookingResult(booking=PublicBookingOut.of(row))


@operation(
    rest="GET /api/public/bookings/{file}",
    title="Get a booking's calendar file",
    audience=(Audience.PUBLIC,),
    resolve=lambda args: _read(args.file.removesuffix(SUFFIX)).workspace_id,
    limit=CALENDAR_FILES,
    served_as=ServedAs.CALENDAR_FILE,
    example={"file": "CALENDAR_FILE"},
)
def get_booking_calendar(ctx: Context, args: CalendarFileRef) -> CalendarFile:
    """Return a booking as an iCalendar file. Calendars replace an earlier copy with it."""
    with deadline.side_by_side() as start:
        workspace = start(lambda: workspaces.get(ctx.workspace_id))
        row = _booking_for_token(ctx, args.file.removesuffix(SUFFIX), Purpose.CALENDAR)
    file = calendar_files.calendar_file(
        CalendarEvent(
            uid=f"{row.id}@{ctx.workspace_id}",
            sequence=int(row.sequence),
            changed_at=row.updated_at,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
            status=row.status,
            summary=f"{row.service_name} ({row.resource_name})",
            location=workspace.result().name,
        ),
        producer=SERVICE,
    )
    return CalendarFile(content=file.decode())


def _booking_for_token(ctx: Context, text: str, purpose: Purpose) -> BookingRow:
    """Return the booking of a token.

    Raises:
        NotFoundError: the token is invalid, or it is for another purpose. The error is the same.
    """
    token = _read(text)
    row = BOOKINGS.find(ctx.workspace_id, token.booking_id)
    if row is None or not token.is_for(purpose, row.token_secret):
        raise BOOKINGS.unavailable()
    return row
