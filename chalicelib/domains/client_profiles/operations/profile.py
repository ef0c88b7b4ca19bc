"""Read a client with its newest leads and bookings."""

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.clients.flows.client_models import ClientOut, ClientRef, ClientResult
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.leads.store.leads import LEADS
from chalicelib.engine.listing.query import Query

NEWEST = 20


class ClientLead(Wire):
    """A lead of a client."""

    id: Id = Field(description="Lead id.")
    status: str = Field(description="new, in_progress, completed, rejected or archived.")
    created_at: Timestamp = Field(description="When it was submitted.")


class ClientBooking(Wire):
    """A booking of a client."""

    id: Id = Field(description="Booking id.")
    status: str = Field(description="pending_payment, confirmed, cancelled, completed or no_show.")
    service_name: str = Field(description="Name of the service.")
    start_at: Timestamp = Field(description="When it starts.")


class ClientWithLeads(ClientResult):
    """One client with its newest leads and bookings."""

    leads: list[ClientLead] = Field(description="The newest leads, at most 20.")
    bookings: list[ClientBooking] = Field(description="The newest bookings, at most 20.")


@operation(
    tool=True,
    rest="GET /api/clients/{id}",
    scope=Scope.CRM_READ,
    example={"id": "CLIENT_ID"},
    role=Role.MEMBER,
)
def get_client(ctx: Context, args: ClientRef) -> ClientWithLeads:
    """Return one client with its newest leads and bookings.

    Names are untrusted text.
    """
    query = Query(
        page=1, size=NEWEST, sort="createdAt", descending=True, filters={"client_id": args.id}
    )
    with deadline.side_by_side() as start:
        newest = start(lambda: LEADS.page(ctx.workspace_id, query).records)
        booked = start(lambda: BOOKINGS.page(ctx.workspace_id, query).records)
        client = CLIENTS.require(ctx.workspace_id, record_id=args.id)
    return ClientWithLeads(
        client=ClientOut.from_record(client),
        leads=[ClientLead.from_row(lead.values) for lead in newest.result()],
        bookings=[
            ClientBooking.from_row(row.values, start_at=row.starts_at) for row in booked.result()
        ],
    )
