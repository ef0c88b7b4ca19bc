"""Serve the public booking page with its services, free times and bookings.

The page is an HTML page of the service, so these operations have no REST route.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.booking_page.flows import (
    book_for_visitor,
    open_page,
    slot_months,
    visitor_shares,
)
from chalicelib.domains.booking_page.flows.book_for_visitor import ByPhoneOnlyError, ChangedError
from chalicelib.domains.booking_page.flows.open_page import Slug
from chalicelib.domains.booking_page.flows.public_booking import (
    BookingAwaitsMail,
    PublicBookingCreate,
    PublicBookingMade,
)
from chalicelib.domains.booking_page.flows.slot_months import MonthOfSlots, MonthQuery
from chalicelib.domains.booking_page.operations.cancel_and_move import BOOKING_CHANGES
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.bookings.flows import placement, slot_search, visit_search
from chalicelib.domains.bookings.flows.advance import AdvanceOut, OfferOut, sum_of
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.flows.slot_out import SlotOut
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.flows.visit_search import AndThen
from chalicelib.domains.bookings.rules.slots import NoSlotReason
from chalicelib.domains.bookings.store.bookings import AGENT
from chalicelib.domains.bookings.store.bookings import PUBLIC as PUBLIC_SOURCE
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.lib.localized import Language
from chalicelib.lib.spans import Span

PAGE_VIEWS = Limit(
    "booking-page", "views of booking pages per minute", 120, timedelta(minutes=1), fails_open=True
)
PAGE_SEARCHES = Limit(
    "booking-page-times",
    "searches for free times per minute",
    60,
    timedelta(minutes=1),
    fails_open=True,
)
MAX_DESCRIPTION = 600  # characters of a service's description on the page

PreparedToken = Annotated[str, StringConstraints(max_length=prepared_links.MAX_TOKEN)]


class PreparedBooking(Wire):
    """What a link of a visitor's assistant has filled in."""

    resource_id: Id = Field(description="Resource id.")
    start_at: When = Field(description="Start, with an offset.")
    token: PreparedToken = Field(description="The link's token.")


class BookingPageRef(Wire):
    """A booking page, and optionally a service on it."""

    workspace: Slug = Field(description="Slug of the workspace.")
    service_id: Id | None = optional("Only this service.")
    and_then: AndThen = Field(
        default=[], description="Services that follow the named one in one visit."
    )
    prepared: PreparedBooking | None = optional("What a link has filled in, to check it.")


class PageService(OfferOut):
    """A service on a booking page."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name of the service.")
    description: str | None = Field(description="Its beginning, or null.")
    photo_url: str | None = Field(description="URL of the main image, or null.")
    asks_for_advertising: bool = Field(
        description="Whether its form has the box by which a client agrees to advertising."
    )
    fixed_starts: bool = Field(
        description="Whether it is offered on dates only, and therefore alone."
    )

    @classmethod
    def from_record(cls, service: ServiceRow, page: open_page.OpenPage) -> Self:
        text = service.description or ""
        cut = text if len(text) <= MAX_DESCRIPTION else f"{text[:MAX_DESCRIPTION].rstrip()} …"
        return cls.from_row(
            service.values,
            description=cut or None,
            photo_url=_photo_url(service.images),
            asks_for_advertising=bool(service.book_again_days),
            fixed_starts=bool(service.fixed_starts),
            **page.terms_of(service),
        )


class PageStaff(AdvanceOut):
    """A member of the staff, a room or a thing on a booking page, and the service with it."""

    id: Id = Field(description="Resource id.")
    name: str = Field(description="Name of the resource.")
    timezone: str = Field(description="IANA time zone.")
    price: int = Field(description="Price of the service with it, in minor units (kopecks).")
    duration_min: int = Field(description="Length of the service with it, in minutes.")
    photo_url: str | None = Field(description="URL of the photo, or null.")


class PageHours(Wire):
    """Opening hours of consecutive weekdays."""

    first: int = Field(description="First weekday, 0 for Monday.")
    last: int = Field(description="Last weekday, 6 for Sunday.")
    intervals: list[str] = Field(description="Hours as HH:MM, with a dash.")


def _photo_url(images: Sequence[ImageMap]) -> str | None:
    return images[0].url if images else None


class PublicBookingPage(Wire):
    """A booking page."""

    name: str = Field(description="Name of the workspace.")
    phone: str | None = Field(description="Phone of the business, or null.")
    logo_url: str | None = Field(description="URL of the workspace's logo, or null.")
    address: str | None = Field(description="Address of the business, or null.")
    accent: str | None = Field(description="Name of the colour of the page, or null.")
    privacy_url: str | None = Field(description="Privacy policy of the business, or null.")
    hours: list[PageHours] = Field(
        description="Weekly hours in which any of the staff works; empty for a named service."
    )
    country: str = Field(description="Country of the business (ISO 3166-1 alpha-2).")
    timezone: str = Field(description="IANA zone of the workspace.")
    currency: str = Field(description="Currency of all prices (ISO 4217).")
    is_indexed: bool = Field(description="Whether search engines may list the page.")
    is_test: bool = Field(description="Whether it is a page of a test workspace.")
    services: list[PageService] = Field(description="The offered services, or only the named one.")
    resources: list[PageStaff] = Field(description="Staff of the named service; else empty.")
    has_other_services: bool = Field(description="Whether it may offer others than these.")
    serves_assistants: bool = Field(description="Whether assistants may call the page's tools.")
    is_prepared: bool = Field(description="Whether the checked link is signed and still valid.")


def _staff(
    page: open_page.OpenPage, services: Sequence[ServiceRow], resource: ResourceRow
) -> PageStaff:
    # Of a visit, the cheapest do what the resource does not.
    offers = page.offers_with(services, resource.id)
    return PageStaff.from_row(
        resource.values,
        photo_url=_photo_url(resource.images),
        price=sum(offer.price for offer in offers),
        duration_min=sum(offer.duration_min for offer in offers),
        **sum_of(page.advances_of(services, resource.id))._asdict(),
    )


def _hours_text(span: Span) -> str:
    return "\u2013".join(f"{at // 60:02}:{at % 60:02}" for at in span)


class PageTimesQuery(MonthQuery):
    """The service, staff and month of a search on a booking page."""

    workspace: Slug = Field(description="Slug of the workspace.")
    service_id: Id = Field(description="Service id.")
    and_then: AndThen = Field(
        default=[], description="Services that follow the named one in one visit."
    )
    resource_id: Id | None = optional("Only of this resource.")


class PageRepeatQuery(Wire):
    """The service, staff and start of a visit that is to be repeated."""

    workspace: Slug = Field(description="Slug of the workspace.")
    service_id: Id = Field(description="Service id.")
    and_then: AndThen = Field(default=[], description="Services that follow it in one visit.")
    resource_id: Id | None = optional("Only of this resource.")
    start_at: When = Field(description="The wished start, with an offset.")


class RepeatTimes(Wire):
    """Whether a start is free, and the free times near it."""

    is_free: bool = Field(description="Whether the wished start can be booked.")
    slots: list[SlotOut] = Field(description="Free times near it, at most 5, in their order.")


class PageBookingCreate(PublicBookingCreate):
    """A visitor's request for a booking on a booking page."""

    workspace: Slug = Field(description="Slug of the workspace.")
    language: Language | None = optional("Language of the page and of the e-mails: ru or en.")
    prepared: PreparedToken | None = optional("Token of the link that an assistant prepared.")


def _workspace(
    args: BookingPageRef | PageTimesQuery | PageRepeatQuery | PageBookingCreate,
) -> str:
    return open_page.workspace_of(args.workspace)


@operation(audience=PUBLIC, reads=True, resolve=_workspace, limit=PAGE_VIEWS)
def open_booking_page(ctx: Context, args: BookingPageRef) -> PublicBookingPage:
    """Return the services of a booking page. A page that is off does not exist for visitors."""
    page = open_page.open_page(ctx.workspace_id, args.service_id, and_then=args.and_then)
    staff: list[PageStaff] = []
    if args.service_id is not None:
        services = page.require_services(args.service_id, args.and_then)
        search = visit_search.search(ctx.workspace_id, services, None)
        staff = [
            _staff(page, services, candidate.resource) for candidate in search.candidates.active
        ]
    return PublicBookingPage(
        name=page.workspace.name,
        phone=page.settings.phone or page.workspace.phone,
        logo_url=page.workspace.logo_url,
        address=page.workspace.address,
        accent=page.workspace.accent,
        privacy_url=page.workspace.privacy_url,
        hours=[
            PageHours(first=first, last=last, intervals=list(map(_hours_text, spans)))
            for first, last, spans in page.hours
        ],
        country=page.workspace.country,
        timezone=page.workspace.timezone,
        currency=page.workspace.currency,
        is_indexed=page.settings.is_indexed
        and not is_test(ctx.workspace_id)
        and not page.workspace.awaits_review,
        is_test=is_test(ctx.workspace_id),
        services=[PageService.from_record(offered, page) for offered in page.services],
        resources=staff,
        has_other_services=len(page.settings.service_ids) > len(page.services),
        serves_assistants=page.assistants.is_on,
        is_prepared=_is_prepared(page, args),
    )


def _is_prepared(page: open_page.OpenPage, args: BookingPageRef) -> bool:
    prepared, service_id = args.prepared, args.service_id
    if prepared is None or service_id is None or not isinstance(prepared.start_at, datetime):
        return False
    subject = prepared_links.booking(service_id, prepared.resource_id, prepared.start_at)
    secret = page.assistants.link_secret
    return prepared_links.is_valid(secret, subject, prepared.token, clock.now())


def _search(workspace_id: str, args: PageTimesQuery | PageRepeatQuery) -> tuple[Search, str]:
    # The zone is that in which the times are shown.
    page = open_page.open_page(workspace_id, args.service_id, and_then=args.and_then)
    services = page.require_services(args.service_id, args.and_then)
    visit_search.require_fit(services, args.resource_id)
    search = visit_search.search(workspace_id, services, args.resource_id)
    zones = slot_search.zones(
        search.shown_resources,
        args.resource_id,
        requested=None,
        of_workspace=lambda: page.workspace.timezone,
    )
    return search, zones.effective


@operation(
    title="Find times on a booking page",
    audience=PUBLIC,
    resolve=_workspace,
    limit=PAGE_SEARCHES,
)
def find_page_times(ctx: Context, args: PageTimesQuery) -> MonthOfSlots:
    """Find the free times of a service in a month, or in the first month that has any."""
    search, zone = _search(ctx.workspace_id, args)
    return slot_months.find(search, zone, args)


@operation(
    title="Find times to repeat a visit",
    audience=PUBLIC,
    resolve=_workspace,
    limit=PAGE_SEARCHES,
)
def find_repeat_times(ctx: Context, args: PageRepeatQuery) -> RepeatTimes:
    """Find whether a start is free for a service, and the free times of that and the next days."""
    search, zone = _search(ctx.workspace_id, args)
    start = epoch_ms(clock.moment_of(args.start_at, zone))
    slots = search.find_nearest(start, now=epoch_ms(clock.now()), count=placement.ALTERNATIVES)
    return RepeatTimes(
        is_free=any(slot.start == start for slot in slots),
        slots=[SlotOut.from_slot(slot, zone) for slot in slots],
    )


@operation(
    title="Book on a booking page",
    audience=PUBLIC,
    resolve=_workspace,
    limit=BOOKING_CHANGES,
    when_limited=visitor_shares.refused_request,
    errors=(
        visitor_shares.BookingLimitError,
        ByPhoneOnlyError,
        ChangedError,
        SlotUnavailableError,
    ),
)
def book_on_page(ctx: Context, args: PageBookingCreate) -> PublicBookingMade | BookingAwaitsMail:
    """Book a free time of a service that the page offers, or mail a link that books it."""
    page = open_page.open_page(ctx.workspace_id, args.service_id, and_then=args.and_then)
    services = page.require_services(args.service_id, args.and_then)
    if sum_of(page.advances_of(services, args.resource_id)).by_phone:
        raise book_for_visitor.by_phone_only(page.workspace)
    _require_future(ctx, services, args)
    source = AGENT if _was_prepared(page, args) else PUBLIC_SOURCE
    new_booking = book_for_visitor.book(ctx, args, source, language=args.language)
    return new_booking.out(ctx.workspace_id)


def _was_prepared(page: open_page.OpenPage, args: PageBookingCreate) -> bool:
    if args.prepared is None or not isinstance(args.start_at, datetime):
        return False
    subject = prepared_links.booking(args.service_id, args.resource_id, args.start_at)
    return prepared_links.is_signed(page.assistants.link_secret, subject, args.prepared)


def _require_future(ctx: Context, services: Sequence[ServiceRow], args: PageBookingCreate) -> None:
    # The start may have passed while the visitor typed. Then free times are offered.
    start, now = args.start_at, clock.now()
    if not isinstance(start, datetime) or start.tzinfo is None or start >= now:
        return
    if args.resource_id is not None:
        RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    search = visit_search.search(ctx.workspace_id, services, args.resource_id)
    bound = search.candidates.bound
    zone = slot_search.zones(
        bound,
        args.resource_id,
        requested=None,
        of_workspace=lambda: slot_search.workspace_of(ctx.unit).timezone,
    ).effective
    alternatives = search.find_nearest(
        epoch_ms(now), now=epoch_ms(now), count=placement.ALTERNATIVES
    )
    placement.refuse(NoSlotReason.TOO_LITTLE_NOTICE, alternatives, bound, zone, search)
