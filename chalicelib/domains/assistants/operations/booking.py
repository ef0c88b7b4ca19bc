"""Tools about the business and its times, and the tool that prepares a booking."""

from datetime import datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ConflictError, NotFoundError, ValidationError
from chalicelib.core.wire.schema import Id, Timestamp, Wire, only_if_set, optional
from chalicelib.core.wire.times import Day, When
from chalicelib.domains.assistants.flows import visits
from chalicelib.domains.assistants.flows.visits import FindVisit, PageRef, visitor_tool
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.flows.public_booking import ShownTerms
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.advance import AdvanceOut
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.rules.slots import Query, Slot
from chalicelib.domains.services.rules.offers import summary_of
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine.reading import Rows
from chalicelib.lib import zoned_times
from chalicelib.lib.localized import LANGUAGES

MAX_TIMES = 40  # Maximum number of free times that one call returns.
MAX_DAYS = 31
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class WeekHours(Wire):
    """Opening hours of consecutive weekdays."""

    days: str = Field(description="Weekdays, such as Mon-Fri.")
    hours: list[str] = Field(description="Hours as HH:MM-HH:MM.")


class Business(Wire):
    """The business behind a booking page."""

    name: str = Field(description="Name of the business.")
    address: str | None = Field(description="Address, or null.")
    phone: str | None = Field(description="Phone, or null.")
    hours: list[WeekHours] = Field(description="Weekly hours in which any of the staff works.")
    timezone: str = Field(description="IANA zone.")
    currency: str = Field(description="Currency of all prices, which are in minor units.")
    languages: list[str] = Field(description="Languages of the booking page.")
    booking_url: str = Field(description="Page on which visitors book.")
    takes_orders: bool = Field(description="Whether prepare_order can be used.")


@visitor_tool("Get the business")
def get_business(ctx: Context, args: PageRef, find_visit: FindVisit) -> Business:
    """Get the name, address, phone, weekly opening hours, time zone and links of the business."""
    page = open_page.open_page(ctx.workspace_id, rows=find_visit().rows)
    return Business(
        name=page.workspace.name,
        address=page.workspace.address,
        phone=page.settings.phone or page.workspace.phone,
        hours=[
            WeekHours(
                days=WEEKDAYS[first] if first == last else f"{WEEKDAYS[first]}-{WEEKDAYS[last]}",
                hours=["-".join(f"{at // 60:02}:{at % 60:02}" for at in span) for span in spans],
            )
            for first, last, spans in page.hours
        ],
        timezone=page.workspace.timezone,
        currency=page.workspace.currency,
        languages=list(LANGUAGES),
        booking_url=visits.url_of(page.workspace),
        takes_orders=page.assistants.order_form_id is not None,
    )


class ServiceOffer(AdvanceOut):
    """A service that visitors can book."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name of the service.")
    description: str = Field(description="Its beginning, as plain text.")
    minutes: int = Field(description="Length in minutes, with the cheapest of the staff.")
    price: int = Field(
        description="Price in minor units of the currency; the lowest, if it depends on the staff."
    )
    price_from: int | None = Field(
        description="Lowest price, if it depends on the staff. Say from; else null."
    )
    minutes_from: int | None = Field(
        description="Shortest length, if it depends on the staff; else null."
    )
    prepaid: bool = Field(description="Whether the visitor pays when the visitor books.")
    url: str = Field(description="Page on which visitors book it.")

    @classmethod
    def from_record(cls, service: ServiceRow, page: open_page.OpenPage) -> Self:
        advance, summary = page.advance_of(service), summary_of(page.offers[service.id])
        return cls(
            id=service.id,
            name=service.name,
            description=visits.describe(service.description),
            minutes=summary.duration_min,
            price=summary.price,
            price_from=summary.price_from,
            minutes_from=summary.duration_from_min,
            prepaid=advance.amount_due > 0,
            url=f"{visits.url_of(page.workspace)}/{service.id}",
            **advance._asdict(),
        )


class ServiceOffers(Wire):
    """The services of a booking page."""

    services: list[ServiceOffer] = Field(description="Services, in the business's order.")


@visitor_tool("List the services")
def list_services(ctx: Context, args: PageRef, find_visit: FindVisit) -> ServiceOffers:
    """List the services that can be booked, with ids for find_free_times, lengths and prices."""
    page = open_page.open_page(ctx.workspace_id, rows=find_visit().rows, with_hours=False)
    return ServiceOffers(
        services=[ServiceOffer.from_record(service, page) for service in page.services]
    )


class FreeTimesQuery(PageRef):
    """A search for free times."""

    service_id: Id = Field(description="Service id, from list_services.")
    staff_id: Id | None = optional("Only of this person or room, from an earlier result.")
    first_day: Day | None = optional("First local date; default: today.")
    last_day: Day | None = optional("Last local date; default: six days after the first.")


class StaffName(Wire):
    """A member of the staff, or a room."""

    id: Id = Field(description="Id, for staffId.")
    name: str = Field(description="Name.")


class StaffTerms(StaffName):
    """What the service costs, and how long it takes, with a member of the staff or a room."""

    price: int = Field(description="Price in minor units of the currency.")
    minutes: int = Field(description="Length in minutes.")


class FreeTime(Wire):
    """A free time."""

    start_at: str = Field(description="Start, with the offset of the zone, for prepare_booking.")
    weekday: str = Field(description="Weekday.")
    staff: list[StaffName] = Field(description="Who is free then.")
    places_left: int | None = only_if_set("Free places, if it is a date for several visitors.")
    places: int | None = only_if_set("All places of the date.")


class FreeTimes(Wire):
    """Free times of a service."""

    service: str = Field(description="Name of the service.")
    timezone: str = Field(description="IANA zone of the dates.")
    terms_by_staff: list[StaffTerms] = Field(
        description="Price and length with each, if they depend on the staff; else empty."
    )
    times: list[FreeTime] = Field(description="Free times, the earliest first.")
    more: bool = Field(description="Whether the range has more times.")
    next: FreeTime | None = Field(description="First time after a range without any, or null.")


def _open_page(
    workspace_id: str, *, service_id: str, rows: Rows
) -> tuple[open_page.OpenPage, ServiceRow]:
    try:
        page = open_page.open_page(workspace_id, service_id, rows)
        return page, page.require_service(service_id)
    except NotFoundError:
        # The page exists, because the visit is open.
        raise NotFoundError(
            "There is no such service. list_services returns ids.", key="service"
        ) from None


@visitor_tool("Find free times")
def find_free_times(ctx: Context, args: FreeTimesQuery, find_visit: FindVisit) -> FreeTimes:
    """Find free times of a service in up to 31 days.

    Name the times to the visitor as they are in the result.
    """
    rows = find_visit().rows
    page, service = _open_page(ctx.workspace_id, service_id=args.service_id, rows=rows)
    search = Search.create(ctx.workspace_id, service, args.staff_id, rows=rows)
    zone = slot_search.zones(
        search.shown_resources,
        args.staff_id,
        requested=None,
        of_workspace=lambda: page.workspace.timezone,
    ).effective
    now = clock.now()
    first = args.first_day or clock.local_day(now, zone)
    last = args.last_day or first + timedelta(days=6)
    if not 0 <= (last - first).days < MAX_DAYS:
        message = f"expected a day 0 to {MAX_DAYS - 1} days after firstDay, received {last}"
        raise ValidationError.of("lastDay", message=message)
    span = zoned_times.span_of_days(first, last=last, timezone=zone)
    query = Query(span.start, span.end - 1, epoch_ms(now))
    slots = search.slots(query).slots
    following = None if slots else search.next(query)
    return FreeTimes(
        service=search.service.name,
        timezone=zone,
        terms_by_staff=_terms_by_staff(search),
        times=[_free_time(search, slot, zone) for slot in slots[:MAX_TIMES]],
        more=len(slots) > MAX_TIMES,
        next=following and _free_time(search, following, zone),
    )


def _terms_by_staff(search: Search) -> list[StaffTerms]:
    service = search.service
    staff = search.shown_resources if service.overrides else []
    offers = [(resource, service.offer(resource.id)) for resource in staff]
    return [
        StaffTerms(
            id=resource.id, name=resource.name, price=offer.price, minutes=offer.duration_min
        )
        for resource, offer in offers
    ]


def _free_time(search: Search, slot: Slot, zone: str) -> FreeTime:
    names = {free.resource.id: free.resource.name for free in search.candidates.active}
    local = zoned_times.local_time(clock.moment_at(slot.start), zone)
    staff = [StaffName(id=seat, name=names[seat]) for seat in slot.seats]
    return FreeTime(
        start_at=local.text,
        weekday=local.weekday,
        staff=staff,
        places_left=None if slot.places is None else sum(slot.seats.values()),
        places=slot.places,
    )


class BookingToPrepare(PageRef):
    """A booking for the visitor to confirm."""

    service_id: Id = Field(description="Service id.")
    start_at: When = Field(description="startAt of a free time, with its offset.")
    staff_id: Id | None = optional("Id of a person or room free then; default: the cheapest.")


class PreparedBooking(AdvanceOut):
    """A booking that only the visitor can make."""

    url: str = Field(description="Page with the booking filled in, for the visitor to open.")
    expires_at: Timestamp = Field(description="When the link ends.")
    service: str = Field(description="Name of the service.")
    staff: str = Field(description="Name of the person or room.")
    start_at: str = Field(description="Start, with the offset of the zone.")
    minutes: int = Field(description="Length in minutes.")
    price: int = Field(description="Price in minor units of the currency.")
    what_next: str = Field(description="What to tell the visitor.")


def _by_phone_only() -> ConflictError:
    message = "This service is booked by phone only. Tell the visitor the phone."
    return ConflictError(message, key="by_phone_only")


@visitor_tool("Prepare a booking")
def prepare_booking(ctx: Context, args: BookingToPrepare, find_visit: FindVisit) -> PreparedBooking:
    """Check a free time, and return a link to the booking page, where it is filled in.

    Nothing is booked: only the visitor can confirm, on that page. Pass no names and no contacts.
    """
    if not isinstance(args.start_at, datetime) or args.start_at.tzinfo is None:
        message = "expected a time with an offset, received none. Copy startAt of a free time"
        raise ValidationError.of("startAt", message=message)
    rows = find_visit().rows
    page, service = _open_page(ctx.workspace_id, service_id=args.service_id, rows=rows)
    # Nobody offers less than the cheapest, so all are by phone if this is.
    if page.advance_of(service).by_phone:
        raise _by_phone_only()
    search = Search.create(ctx.workspace_id, service, args.staff_id, rows=rows)
    start, now = epoch_ms(args.start_at), epoch_ms(clock.now())
    seats = [seat for slot in search.slots(Query(start, start, now)).slots for seat in slot.seats]
    if not seats:
        raise ConflictError(
            "This time is not free. Call find_free_times, and take another one.", key="slot_taken"
        )
    chosen = service.cheapest(seats)
    (staff,) = (free.resource for free in search.candidates.active if free.resource.id == chosen)
    offer = service.offer(staff.id)
    advance = page.advance_of(service, offer)
    if advance.by_phone:
        raise _by_phone_only()
    moment = clock.moment_at(start)
    subject = prepared_links.booking(service.id, staff.id, moment)
    token, ends_at = visits.sign(page.assistants, subject)
    terms = ShownTerms.now([offer], advance).model_dump(by_alias=True, exclude_none=True)
    query = {"staff": staff.id, "at": clock.iso(moment), **terms, prepared_links.PARAMETER: token}
    return PreparedBooking(
        url=f"{visits.url_of(page.workspace)}/{service.id}?{urlencode(query)}",
        expires_at=ends_at,
        service=service.name,
        staff=staff.name,
        start_at=zoned_times.local_time(moment, staff.timezone).text,
        minutes=offer.duration_min,
        price=offer.price,
        what_next=visits.NOTHING_DONE,
        **advance._asdict(),
    )
