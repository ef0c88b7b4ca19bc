"""Let visitors find a slot and book it."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Id
from chalicelib.domains.booking_page.flows import book_for_visitor, visitor_shares
from chalicelib.domains.booking_page.flows.book_for_visitor import ByPhoneOnlyError, ChangedError
from chalicelib.domains.booking_page.flows.public_booking import (
    BookingAwaitsMail,
    PublicBookingCreate,
    PublicBookingMade,
)
from chalicelib.domains.booking_page.flows.visitor_shares import BookingLimitError
from chalicelib.domains.booking_page.operations.cancel_and_move import BOOKING_CHANGES
from chalicelib.domains.bookings.flows import visit_search
from chalicelib.domains.bookings.flows.advance import OfferOut, read_advances
from chalicelib.domains.bookings.flows.placement import SlotUnavailableError
from chalicelib.domains.bookings.flows.slot_list import MAX_SLOTS, SlotList, SlotsRange, slot_list
from chalicelib.domains.bookings.flows.visit_search import AndThen
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.rules.offers import sum_of_summaries, summary_of
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.reading import Rows

SLOT_SEARCHES = Limit("public-slots", "searches for slots a minute", 60, timedelta(minutes=1))


class PublicSlotsQuery(SlotsRange):
    """Service and range of a visitor's slot search."""

    id: Id = Field(description="Service id.")
    and_then: AndThen = Field(
        default=[], description="Ids of services that follow at once in one visit."
    )
    limit: int = Field(default=2000, ge=1, le=MAX_SLOTS, description="Slots at most.")


class PublicSlotList(OfferOut, SlotList):
    """Slots in a range, with the price and the terms of payment.

    With resourceId, they are those with this resource.
    """


@operation(
    rest="GET /api/public/services/{id}/slots",
    title="Find free slots",
    audience=PUBLIC,
    resolve=lambda args: SERVICES.found_for_visitor(SERVICES.workspace_of(args.id)),
    limit=SLOT_SEARCHES,
    example={"id": "SERVICE_ID", "from": "2027-03-01", "limit": 2},
)
def get_public_slots(ctx: Context, args: PublicSlotsQuery) -> PublicSlotList:
    """Find free slots of a service. Book one by its startAt.

    Show the price and the terms of payment before booking, and send them with the booking.
    """
    rows = Rows()
    services = visit_search.services_of(ctx.workspace_id, args.id, args.and_then, rows)
    visit_search.require_fit(services, args.resource_id)
    ids = {resource_id for service in services for resource_id in service.resource_ids}
    is_prepaid = any(service.is_prepaid for service in services)
    rows.read(
        [
            *(
                key
                for service in services
                for key in binding.site_keys(ctx.workspace_id, service.site_id)
            ),
            *opening_hours.keys_with_schedules(ctx.workspace_id, ids),
            *([merchants.key(ctx.workspace_id)] if is_prepaid else []),
        ]
    )
    for service in services:
        book_for_visitor.require_open_site(ctx.workspace_id, service, rows)
    search = visit_search.search(ctx.workspace_id, services, args.resource_id, rows)
    slots = slot_list(ctx, search, args, args.limit)
    offers = visit_search.offers_of(search)
    advance = read_advances(ctx.workspace_id, services, [min(each) for each in offers], rows)
    summary = sum_of_summaries([summary_of(each) for each in offers])
    return PublicSlotList.from_row({**vars(slots), **summary._asdict(), **advance._asdict()})


@operation(
    rest="POST /api/public/bookings",
    title="Book a service",
    audience=PUBLIC,
    resolve=lambda args: SERVICES.found_for_visitor(SERVICES.workspace_of(args.service_id)),
    limit=BOOKING_CHANGES,
    when_limited=visitor_shares.refused_request,
    example={
        "serviceId": "SERVICE_ID",
        "startAt": "2027-03-02T12:00:00+03:00",
        "client": {"name": "Grace", "email": "grace@example.com"},
        "idempotencyKey": "visit-1-booking-1",
    },
    errors=(BookingLimitError, ByPhoneOnlyError, ChangedError, SlotUnavailableError),
)
def create_public_booking(
    ctx: Context, args: PublicBookingCreate
) -> PublicBookingMade | BookingAwaitsMail:
    """Book a free slot. If it is no longer free: 409 slot_unavailable with up to 5 alternatives.

    After 3 bookings for one contact or 20 of a visitor in an hour, or as many as the service takes
    from all visitors, the answer is 202 with confirmByMail. The link in an e-mail to client.email
    then books. Without an address, or if the service sends no mail: 429 with the phone to call. A
    server that books for visitors uses bookings/create with its key, without these limits.
    """
    return book_for_visitor.book(ctx, args).out(ctx.workspace_id)
