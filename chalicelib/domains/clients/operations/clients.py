"""List, create and update clients, which leads and bookings create, too (ADR 19)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core.errors import (
    ConflictError,
    ExternalIdTakenError,
    ValidationError,
    VersionConflictError,
)
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    NewExternalId,
    merge_metadata,
)
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.core.wire.lists import (
    NO_SORT_BY_UPDATE,
    SORT_DIRECTION,
    ListQuery,
    ListResult,
    SortDirection,
)
from chalicelib.core.wire.schema import (
    SearchText,
    optional,
)
from chalicelib.domains.clients.flows.client_models import (
    ClientCreate,
    ClientOut,
    ClientPatch,
    ClientResult,
)
from chalicelib.domains.clients.flows.contacts import wrong_phone
from chalicelib.domains.clients.store import clients, contact_lookups
from chalicelib.domains.clients.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.lib import phones

SORTS = {
    "createdAtDesc": ("createdAt", True),
    "nameAsc": ("name", False),
    "lastActivityDesc": ("lastActivity", True),
    "updatedAt": (UPDATED_AT, False),
}


class DuplicateClientError(ConflictError):
    """Another client of the workspace already has this e-mail address or phone: ``clientId``."""

    code = "duplicate_client"

    def __init__(self, message: str, *, client_id: str) -> None:
        super().__init__(message, details={"clientId": client_id})
        self.holder = client_id


class ClientListQuery(ListQuery):
    """Filters, sort and page of a list of clients."""

    size: int = Field(default=20, ge=1, le=100, description="Clients per page.")
    search: SearchText | None = optional("In name, e-mail, phone (any spelling).")
    tag: Annotated[str, StringConstraints(strip_whitespace=True, max_length=50)] | None = optional(
        "Only clients with this tag."
    )
    external_id: NewExternalId = BY_EXTERNAL_ID
    sort: Annotated[
        Literal["createdAtDesc", "nameAsc", "lastActivityDesc", "updatedAt"], NO_SORT_BY_UPDATE
    ] = Field(
        default="createdAtDesc", description="lastActivityDesc: by the newest lead or booking."
    )
    sort_dir: SortDirection = optional(SORT_DIRECTION)


class ClientList(ListResult):
    """One page of clients."""

    clients: list[ClientOut] = Field(description="The clients of this page.")


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
    clients_out = list(map(ClientOut.from_record, page.records))
    return ClientList(clients=clients_out, **args.counted(page.total))


@operation(
    rest="POST /api/clients/create",
    scope=Scope.CRM_WRITE,
    example={"name": "Alan", "email": "alan@example.com", "tags": ["regular"]},
    errors=(DuplicateClientError, ExternalIdTakenError),
    role=Role.MEMBER,
)
def create_client(ctx: Context, args: ClientCreate) -> ClientResult:
    """Create a client, with at least a name, an e-mail address or a phone.

    If another client has the e-mail address or phone: 409 duplicate_client with its id. Leads and
    bookings find the client by these.
    """
    return ClientResult(client=ClientOut.from_record(new_client(ctx, args)))


def new_client(ctx: Context, args: ClientCreate) -> ClientRow:
    """Stage a new client, and return it.

    Raises:
        ValidationError: it has neither a name nor a contact, or the phone is no number.
        DuplicateClientError: another client has the e-mail address or phone.
    """
    values = {name: value for name, value in args.provided().items() if value is not None}
    if not values.keys() & {"name", EMAIL, PHONE}:
        message = "expected a name, an e-mail address or a phone, received none of them"
        raise ValidationError.of("name", message=message, key="no_contact")
    if PHONE in values:
        values |= _number(ctx, values[PHONE])
    merge_metadata(values)
    client = clients.new_client(ctx.workspace_id)
    _check_free(ctx, client, values)
    for name, value in values.items():
        setattr(client, name, value)
    ctx.unit.create(client)
    return client


@operation(
    tool=True,
    rest="POST /api/clients/update",
    scope=Scope.CRM_WRITE,
    idempotent=True,
    example={"id": "CLIENT_ID", "tags": ["regular"], "notes": "Likes rye"},
    errors=(DuplicateClientError, ExternalIdTakenError, VersionConflictError),
    role=Role.MEMBER,
)
def update_client(ctx: Context, args: ClientPatch) -> ClientResult:
    """Change a client; omitted fields stay unchanged.

    If another client has the e-mail address or phone: 409 duplicate_client with its id.
    """
    client = CLIENTS.require(ctx.workspace_id, record_id=args.id)
    client.require_version(args.if_version)
    change(ctx, client, args.changes)
    ctx.unit.save(client)
    return ClientResult(client=ClientOut.from_record(client))


def change(ctx: Context, client: ClientRow, values: Mapping[str, Any]) -> None:
    """Set attributes of a client, which the caller stages.

    Raises ValidationError or DuplicateClientError, as ``new_client``.
    """
    changes = dict(values)
    merge_metadata(changes, client.metadata)
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
