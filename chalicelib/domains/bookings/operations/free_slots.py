"""List the free slots of a service."""

from typing import Annotated

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, optional
from chalicelib.domains.bookings.flows import visit_search
from chalicelib.domains.bookings.flows.booking_out import resource_of
from chalicelib.domains.bookings.flows.slot_list import (
    DEFAULT_MAX_SLOTS,
    MAX_SLOTS,
    SlotList,
    SlotsRange,
    slot_list,
)
from chalicelib.domains.bookings.flows.slot_search import Search
from chalicelib.domains.bookings.flows.visit_search import AndThen
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.reading import Rows


class SlotsQuery(SlotsRange):
    """Service and range of a slot search."""

    service_id: Id = Field(description="Service id.")
    and_then: AndThen = Field(
        default=[], description="Ids of services that follow at once in one visit."
    )
    booking_id: Id | None = optional("Find slots for moving this booking, with its visit.")
    limit: Annotated[int, Field(ge=1, le=MAX_SLOTS)] | None = optional(
        f"Slots at most; default: {DEFAULT_MAX_SLOTS}, or the whole first day."
    )


@operation(
    tool=True,
    rest="GET /api/bookings/slots",
    scope=Scope.BOOKINGS_READ,
    title="Find free slots",
    example={"serviceId": "SERVICE_ID", "timezone": "Asia/Kolkata", "limit": 2},
    role=Role.MEMBER,
    own=OwnPart(
        resource="resource_id",
        is_set=True,
        fixed={"and_then": []},
        record=lambda unit, args: resource_of(unit, args.booking_id),
        not_found=BOOKINGS.not_found,
    ),
)
def get_available_slots(ctx: Context, args: SlotsQuery) -> SlotList:
    """Find free slots of a service. Book one by its startAt with svc_create_booking."""
    service = SERVICES.require(ctx.workspace_id, record_id=args.service_id)
    moving = _booking_to_move(ctx, args, service)
    if args.and_then or (moving is not None and moving.visit):
        search = _visit_search(ctx, args, moving)
    else:
        search = Search.create(ctx.workspace_id, service, args.resource_id, moving)
    return slot_list(ctx, search, args, args.limit)


def _visit_search(ctx: Context, args: SlotsQuery, moving: BookingRow | None) -> Search:
    rows = Rows()
    if moving is not None:
        if args.and_then:
            message = "expected no further services with bookingId, whose visit is moved as it is"
            raise ValidationError.of("andThen", message=message)
        return visit_search.find_move(ctx.workspace_id, moving, args.resource_id)
    services = visit_search.services_of(ctx.workspace_id, args.service_id, args.and_then, rows)
    visit_search.require_fit(services, args.resource_id)
    return visit_search.create(ctx.workspace_id, services, args.resource_id, rows)


def _booking_to_move(ctx: Context, args: SlotsQuery, service: ServiceRow) -> BookingRow | None:
    if args.booking_id is None:
        return None
    booking = BOOKINGS.require(ctx.workspace_id, record_id=args.booking_id)
    if booking.service_id != service.id:
        message = (
            "expected a booking of this service, received a booking of the service "
            f"{booking.service_id}"
        )
        raise ValidationError.of("bookingId", message=message)
    return booking
