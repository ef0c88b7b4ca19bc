"""List a client's orders and bookings."""

from collections.abc import Sequence
from typing import Any, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, PageQuery
from chalicelib.core.wire.schema import Id, PageNumber, Timestamp, Wire
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LEADS, LeadRow


class OrderItem(Wire):
    """A line of an order."""

    product_id: Id | None = Field(description="Product id, or null.")
    service_id: Id | None = Field(description="Service id, or null.")
    name: str = Field(description="Name at the time of the order.")
    quantity: int = Field(description="Number of pieces.")
    price: int = Field(description="Unit price at the time of the order, in minor units (kopecks).")


class OrderOut(Wire):
    """An order."""

    id: Id = Field(description="Id of the lead or of the booking.")
    kind: str = Field(description="order: the products of a form; booking.")
    status: str = Field(description="Status of the lead or of the booking.")
    items: list[OrderItem] = Field(description="Lines of the order.")
    total: int = Field(description="Total in minor units (kopecks).")
    created_at: Timestamp = Field(description="Time of the order.")

    @classmethod
    def from_lead(cls, lead: LeadRow) -> Self:
        lines: list[dict[str, Any]] = lead.whole_data.get(CART, [])
        items = [OrderItem.from_row(line, product_id=line["productId"]) for line in lines]
        total = sum(item.quantity * item.price for item in items)
        return cls.from_row(lead.values, kind="order", items=items, total=total)

    @classmethod
    def from_booking(cls, booking: BookingRow) -> Self:
        item = OrderItem(
            product_id=None,
            service_id=booking.service_id,
            name=booking.service_name,
            quantity=1,
            price=int(booking.price),
        )
        return cls.from_row(booking.values, kind="booking", items=[item], total=item.price)


class OrdersQuery(PageQuery):
    """Lead whose orders to list."""

    id: Id = Field(description="Lead id.")
    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=20, ge=1, le=100, description="Orders per page.")


class OrderList(ListResult):
    """One page of orders."""

    orders: list[OrderOut] = Field(description="The orders of this page, newest first.")


@operation(
    tool=True,
    rest="GET /api/forms/collection-orders",
    scope=Scope.CRM_READ,
    title="List a lead's orders",
    example={"id": "LEAD_ID"},
    role=Role.MEMBER,
)
def lead_orders(ctx: Context, args: OrdersQuery) -> OrderList:
    """List the orders of a lead and of its client, including bookings.

    Names and prices are those at the time of the order.
    """
    lead = LEADS.found(leads.find(ctx.workspace_id, lead_id=args.id))
    ids = _ids(ctx, lead)
    return OrderList(orders=_read(ctx, ids[args.rows]), **args.counted(len(ids)))


def _ids(ctx: Context, lead: LeadRow) -> list[tuple[str, str]]:
    # The newest come first: ids begin with the time. They are read from the index entries of the
    # client's leads and bookings, at about one read unit per thirty entries.
    if lead.client_id is None:
        return [(lead.id, LEADS.noun)] if lead.is_order else []
    client_id = lead.client_id
    with deadline.side_by_side() as start:
        booked = start(lambda: BOOKINGS.entries(ctx.workspace_id, client_id=client_id))
        leads_found = LEADS.entries(ctx.workspace_id, present="is_order", client_id=client_id)
    return sorted(
        [
            *((entry.id, LEADS.noun) for entry in leads_found),
            *((entry.id, BOOKINGS.noun) for entry in booked.result()),
        ],
        reverse=True,
    )


def _read(ctx: Context, ids: Sequence[tuple[str, str]]) -> list[OrderOut]:
    by_noun = {
        noun: [order_id for order_id, of in ids if of == noun] for noun in {n for _, n in ids}
    }
    orders_by_id = {
        row.id: OrderOut.from_lead(row)
        for row in leads.read_whole(ctx.workspace_id, by_noun.get(LEADS.noun, ()))
    }
    for row in BOOKINGS.fetch(ctx.workspace_id, by_noun.get(BOOKINGS.noun, ())):
        orders_by_id[row.id] = OrderOut.from_booking(row)
    return [orders_by_id[order_id] for order_id, _ in ids if order_id in orders_by_id]
