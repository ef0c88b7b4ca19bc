"""The orders of a person: what was ordered with forms."""

from typing import Any, Self

from pydantic import Field

from chalicelib.core.operations import operation
from chalicelib.core.schema import Id, PageNumber, Timestamp, Wire
from chalicelib.core.scopes import Scope
from chalicelib.domains.leads.records import existing_lead
from chalicelib.flows.invoke import Context
from chalicelib.rules.form_fields import CART
from chalicelib.store import leads
from chalicelib.store.leads import LEADS, LeadRow
from chalicelib.store.queries import Query


class OrderItem(Wire):
    """A line of an order."""

    product_id: Id | None = Field(description="Product id, or null.")
    service_id: Id | None = Field(description="Service id, or null.")
    name: str = Field(description="Name when it was ordered.")
    quantity: int = Field(description="How many.")
    price: int = Field(description="Price of one in kopecks when it was ordered.")


class OrderOut(Wire):
    """An order."""

    id: Id = Field(description="Id of the lead or of the booking.")
    kind: str = Field(description="order: the products of a form; booking.")
    status: str = Field(description="Status of the lead or of the booking.")
    items: list[OrderItem] = Field(description="What was ordered.")
    total: int = Field(description="In kopecks.")
    created_at: Timestamp = Field(description="When it was ordered.")

    @classmethod
    def of_lead(cls, lead: LeadRow) -> Self:
        """Return the order that a lead is."""
        lines: list[dict[str, Any]] = lead.whole_data.get(CART, [])
        items = [OrderItem.from_row(line, product_id=line["productId"]) for line in lines]
        return cls(
            id=lead.id,
            kind="order",
            status=lead.status,
            items=items,
            total=sum(item.quantity * item.price for item in items),
            created_at=lead.created_at,
        )


class OrdersQuery(Wire):
    """Whose orders."""

    id: Id = Field(description="Lead id.")
    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=20, ge=1, le=100, description="Orders a page.")


class OrderList(Wire):
    """One page of orders."""

    orders: list[OrderOut] = Field(description="The orders of this page, newest first.")
    total: int = Field(description="Orders over all pages.")


@operation(
    tool="svc_lead_orders",
    rest="GET /api/forms/collection-orders",
    scope=Scope.CRM_READ,
    title="List a lead's orders",
)
def lead_orders(ctx: Context, args: OrdersQuery) -> OrderList:
    """List the orders of a lead and of its client.

    Names and prices are as they were then.
    """
    lead = existing_lead(ctx, args.id)
    if lead.client_id is None:
        own = [lead] if lead.is_order else []
        shown = own[(args.page - 1) * args.size :][: args.size]
        return OrderList(orders=[OrderOut.of_lead(each) for each in shown], total=len(own))
    query = Query(
        page=args.page,
        size=args.size,
        sort="createdAt",
        descending=True,
        filters={"client_id": lead.client_id},
        present={"is_order": True},
    )
    found = LEADS.page(ctx.workspace_id, query)
    rows = leads.with_data(ctx.workspace_id, found.records)
    return OrderList(orders=[OrderOut.of_lead(each) for each in rows], total=found.total)
