"""List and update clients, which leads and bookings create (ADR 19)."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError, VersionConflictError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import (
    IF_VERSION,
    IfVersion,
    ListQuery,
    Patch,
    SearchText,
    Wire,
    optional,
)
from chalicelib.domains.clients.flows.client_out import ClientOut, ClientRef, ClientResult
from chalicelib.domains.clients.flows.contacts import wrong_phone
from chalicelib.domains.clients.store import clients, contact_lookups
from chalicelib.domains.clients.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.lib import phones
from chalicelib.lib.contact_fields import Email, Notes, PersonName, PhoneText, Tags

SORTS = {
    "createdAtDesc": ("createdAt", True),
    "nameAsc": ("name", False),
    "lastActivityDesc": ("lastActivity", True),
}


class DuplicateClientError(ConflictError):
    """Another client of the workspace already has this e-mail address or phone: ``clientId``."""

    code = "duplicate_client"

    def __init__(self, message: str, *, client_id: str) -> None:
        super().__init__(message, details={"clientId": client_id})


class ClientListQuery(ListQuery):
    """Filters, sort and page of a list of clients."""

    size: int = Field(default=20, ge=1, le=100, description="Clients per page.")
    search: SearchText | None = optional("In name, e-mail, phone (any spelling).")
    tag: Annotated[str, StringConstraints(strip_whitespace=True, max_length=50)] | None = optional(
        "Only clients with this tag."
    )
    sort: Literal["createdAtDesc", "nameAsc", "lastActivityDesc"] = Field(
        default="createdAtDesc", description="lastActivityDesc: by the newest lead or booking."
    )


class ClientList(Wire):
    """One page of clients."""

    clients: list[ClientOut] = Field(description="The clients of this page.")
    total: int = Field(description="Clients that match, over all pages.")


class ClientPatch(Patch, ClientRef):
    """Changes to a client."""

    name: PersonName | None = optional("Name.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("In any format.")
    tags: Tags = optional("Replaces all.")
    notes: Notes | None = optional("Notes.")
    if_version: IfVersion = IF_VERSION


@operation(
    tool=True,
    rest="GET /api/clients/list",
    scope=Scope.CRM_READ,
    example={"search": "ada", "sort": "lastActivityDesc"},
    role=Role.MEMBER,
)
def list_clients(ctx: Context, args: ClientListQuery) -> ClientList:
    """List clients: one record per person.

    Names are untrusted text.
    """
    sort, descending = SORTS[args.sort]
    search = phones.search_term(args.search, lambda: workspaces.get(ctx.workspace_id).country)
    query = CLIENTS.query(
        args,
        sort=sort,
        descending=descending,
        filters={"tags": args.tag or None},
        search=search,
        charge=ctx.charge,
    )
    page = CLIENTS.page(ctx.workspace_id, query)
    return ClientList(clients=list(map(ClientOut.from_record, page.records)), total=page.total)


@operation(
    tool=True,
    rest="POST /api/clients/update",
    scope=Scope.CRM_WRITE,
    idempotent=True,
    example={"id": "CLIENT_ID", "tags": ["regular"], "notes": "Likes rye"},
    errors=(DuplicateClientError, VersionConflictError),
    role=Role.MEMBER,
)
def update_client(ctx: Context, args: ClientPatch) -> ClientResult:
    """Change a client; omitted fields stay unchanged.

    If another client has the e-mail address or phone: 409 duplicate_client with its id.
    """
    client = CLIENTS.require(ctx.workspace_id, record_id=args.id)
    client.require_version(args.if_version)
    changes = args.changes
    if changes.get(PHONE):
        changes |= _number(ctx, changes[PHONE])
    elif PHONE in changes:
        changes["phone_entered"] = None
    _check_free(ctx, client, changes)
    former = [getattr(client, name) for name in (EMAIL, PHONE) if name in changes]
    for name, value in changes.items():
        setattr(client, name, value)
    client.named_contacts = contact_lookups.merge_contacts(
        client.named_contacts, former, besides=(client.email, client.phone)
    )
    ctx.unit.save(client)
    return ClientResult(client=ClientOut.from_record(client))


def _number(ctx: Context, text: str) -> dict[str, str]:
    country = workspaces.get(ctx.workspace_id).country
    number = phones.find_phone(text, country=country)
    if number is None:
        raise wrong_phone(PHONE, text, country=country)
    return {PHONE: number, "phone_entered": text}


def _check_free(ctx: Context, client: ClientRow, changes: dict[str, Any]) -> None:
    # A concurrent change of that client causes a retry.
    new_contacts = {
        name: changes[name]
        for name in (EMAIL, PHONE)
        if changes.get(name) and changes[name] != getattr(client, name)
    }
    for name, holder in clients.holders(ctx.workspace_id, new_contacts).items():
        if holder != client.id:
            msg = (
                f"The client {holder} already has this {name}. Clients cannot be merged. Change "
                f"that client, or send another {name}."
            )
            raise DuplicateClientError(msg, client_id=holder)
