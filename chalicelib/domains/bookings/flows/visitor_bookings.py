"""Bookings that visitors make: over the public API, and in a chat with a bot.

A visitor's contacts are stored with the booking only, and never change an existing client.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, NamedTuple, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.core.limits import Limit
from chalicelib.core.wire.schema import Id, Timestamp, Wire, has_at_least_one, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import binding, booking, booking_links, calendars
from chalicelib.domains.bookings.flows.booking import BookingRequest
from chalicelib.domains.bookings.flows.booking_reads import BookingReads
from chalicelib.domains.bookings.flows.placement import SlotRequest
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.rules.booking_tokens import Purpose
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow, VisitorBookingsRow
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.contacts.flows import contacts
from chalicelib.domains.contacts.flows.contacts import Contact
from chalicelib.domains.identity.flows.zones import Timezone
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine import limits
from chalicelib.engine.reading import Rows
from chalicelib.lib import zoned_times
from chalicelib.lib.contact_fields import Email, PersonName, PhoneText

PUBLIC = "public"
"""Source of bookings made over the public API."""
BOOKINGS_PER_DAY = Limit("public-bookings-day", "bookings a day", 200, timedelta(days=1))
"""Bookings per day from one visitor.

If the rate limiter is unavailable, requests are refused. ``BOOKING_CHANGES`` does the same.
"""
MAX_UPCOMING = 5
"""Maximum number of upcoming bookings that one visitor may make for one contact in a workspace."""
MAX_HOLDS = 2
"""Maximum number of unpaid bookings among them."""
RETRY_AFTER = timedelta(hours=1)
"""Retry-After of a refused request. It is constant, so that it reveals nothing."""

Notes = Annotated[str, StringConstraints(max_length=2000)]


class BookingContact(Wire):
    """Name and contact details of a client."""

    AT_LEAST_ONE_OF = ("phone", "email")

    name: PersonName = Field(description="Name.")
    phone: PhoneText | None = optional("In any format; or email.")
    email: Email | None = optional("E-mail address.")

    @model_validator(mode="after")
    def _require_phone_or_email(self) -> Self:
        if not has_at_least_one(self):
            raise PydanticCustomError("contact", "expected phone, email or both")
        return self


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


class MadeBooking(NamedTuple):
    """A new booking of a visitor. ``secret`` signs its tokens."""

    row: BookingRow
    secret: str

    def out(self, workspace_id: str) -> PublicBookingMade:
        """Return the wire form of the booking, with its tokens."""
        return PublicBookingMade(
            booking=PublicBookingOut.of(self.row),
            cancel_token=booking_links.token(workspace_id, self.row, Purpose.CANCEL),
            ics_url=booking_links.calendar_url(workspace_id, self.row),
        )


def book(ctx: Context, args: PublicBookingCreate, source: str = PUBLIC) -> MadeBooking:
    """Stage a visitor's booking.

    Raises:
        NotFoundError: there is no such service or resource, or the service's site is suspended.
        RateLimitedError: the visitor or the service has too many bookings.
        SlotUnavailableError: the time cannot be booked. The error has a reason and alternatives.
        ValidationError: the phone is not a valid number, or the start is not a valid moment.
    """
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
    require_open_site(ctx.workspace_id, service, reads.rows)
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
            source=source,
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
    return MadeBooking(made, secret)


def require_open_site(workspace_id: str, service: ServiceRow, rows: Rows) -> None:
    """Require that visitors may book a service.

    Raises:
        NotFoundError: its site is suspended.
    """
    site = binding.site_of_service(workspace_id, service.site_id, rows)
    if site is not None and site.status == SUSPENDED:
        raise SERVICES.unavailable()


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
        require_open_site(ctx.workspace_id, service, rows)
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
