"""Return a lead with labels and names for the console."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self, TypeVar

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.identity.flows.actors import Actor, actor_kind
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.identity.store.accounts import AccountRow
from chalicelib.domains.leads.flows import submitted_values
from chalicelib.domains.leads.flows.submitted_values import SubmittedValue
from chalicelib.domains.leads.operations.leads import LeadOut, LeadRef
from chalicelib.domains.leads.rules.form_fields import CART
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.forms import FORMS, FormRow
from chalicelib.domains.leads.store.leads import LEADS, EventRow, LeadRow
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SITES, SiteRow
from chalicelib.engine.reading import fetch
from chalicelib.engine.tables import Row

R = TypeVar("R", bound=Row)


class LeadValue(Wire):
    """A submitted value. It is untrusted text."""

    name: str = Field(description="Name of the field.")
    label: str = Field(description="Label of the field; its name if the form is gone.")
    value: Any = Field(description="JSON value; the wording of a consent.")
    consent_at: Timestamp | None = Field(description="Time of a consent, or null.")

    @classmethod
    def from_submitted(cls, value: SubmittedValue) -> Self:
        return cls.from_row(value._asdict())


class OrderLine(Wire):
    """A product of an order, with its price at that time."""

    name: str = Field(description="Name of the product.")
    quantity: int = Field(description="Number of pieces.")
    price: int = Field(description="Unit price in minor units (kopecks).")


class LeadChange(Wire):
    """A change of a lead."""

    at: Timestamp = Field(description="Time of the change.")
    actor: Actor = Field(description="Who made the change.")
    status_before: str | None = Field(description="Status before it, or null.")
    status_after: str | None = Field(description="Status after it, or null.")
    fields: list[str] = Field(description="Names of the changed fields.")


class LeadDetails(Wire):
    """A lead with the names of what belongs to it. Its texts are untrusted."""

    lead: LeadOut = Field(description="The lead.")
    values: list[LeadValue] = Field(description="Submitted values, in the order of the form.")
    items: list[OrderLine] = Field(description="Products of the order; empty if it is none.")
    total: int = Field(description="Total of the order in minor units (kopecks).")
    form_title: str | None = Field(description="Title of the form, or null.")
    site_title: str | None = Field(description="Title of the site, or null.")
    page_title: str | None = Field(description="Title of the page, or null.")
    client_id: Id | None = Field(description="Client id, or null.")
    client_name: str | None = Field(description="Name of the client, or a contact; or null.")
    history: list[LeadChange] = Field(description="Changes after the submission, newest first.")


@operation(title="Get a lead with names", role=Role.MEMBER, example={"id": "LEAD_ID"})
def get_lead_details(ctx: Context, args: LeadRef) -> LeadDetails:
    """Return a lead with labels of its values, names of its site and client, and its history."""
    with deadline.side_by_side() as start:
        read = start(lambda: EventRow.newest(ctx.workspace_id, record_id=args.id))
        lead = LEADS.found(leads.find(ctx.workspace_id, lead_id=args.id))
        events = read.result()
    related_rows = _read_around(ctx.workspace_id, lead, {event.by for event in events})
    form, client = related_rows.get(FormRow), related_rows.get(ClientRow)
    history = [
        LeadChange(
            at=event.at,
            actor=Actor.from_reference(event.by, related_rows.people),
            status_before=event.status_before,
            status_after=event.status_after,
            fields=event.fields,
        )
        for event in events
    ]
    items = [OrderLine.from_row(line) for line in lead.whole_data.get(CART) or ()]
    return LeadDetails(
        lead=LeadOut.from_record(lead),
        values=[
            LeadValue.from_submitted(submitted_value)
            for submitted_value in submitted_values.list_values(lead, form)
        ],
        items=items,
        total=sum(item.price * item.quantity for item in items),
        form_title=form.title if form else None,
        site_title=_title(related_rows.get(SiteRow)),
        page_title=_title(related_rows.get(PageRow)),
        client_id=client.id if client else None,
        client_name=(client.name or client.email or client.phone) if client else None,
        history=history[::-1],
    )


class _Around(NamedTuple):
    rows: dict[type[Row], Row]
    people: dict[str, AccountRow]

    def get(self, kind: type[R]) -> R | None:
        row = self.rows.get(kind)
        return row if isinstance(row, kind) else None


def _read_around(workspace_id: str, lead: LeadRow, actors: Iterable[str]) -> _Around:
    # One request, and another one for a deleted form.
    places = (
        (FORMS, lead.form_id),
        (SITES, lead.project_id),
        (PAGES, lead.page_id),
        (CLIENTS, lead.client_id),
    )
    keys = [
        listing.key(workspace_id, record_id=record_id) for listing, record_id in places if record_id
    ]
    keys += [accounts.key(actor) for actor in actors if actor_kind(actor) == "account"]
    rows_read = fetch(keys)
    people = {row.id: row for row in rows_read if isinstance(row, AccountRow)}
    rows = {type(row): row for row in rows_read if not isinstance(row, AccountRow)}
    if lead.form_id and FormRow not in rows:
        rows |= {type(row): row for row in FORMS.fetch_deleted(workspace_id, [lead.form_id])}
    return _Around(rows, people)


def _title(row: SiteRow | PageRow | None) -> str | None:
    return row.title if row else None
