"""Create or update clients by their ids in the caller's system."""

from typing import Annotated

from pydantic import Field

from chalicelib.application.batches import MAX_ITEMS
from chalicelib.application.context import Context
from chalicelib.application.upserts import ItemByExternalId, Upsert, UpsertedRecords, new_record
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.clients.flows.client_models import ClientCreate
from chalicelib.domains.clients.operations import clients
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.lib.contact_fields import Tags


class ClientItem(ItemByExternalId, ClientCreate):  # type: ignore[misc]  # externalId is required
    """A client by its id in the caller's system. Omitted fields stay as they are."""

    tags: Tags = optional("Replaces all.")


class ClientUpsert(Wire):
    """Clients to create or update."""

    items: Annotated[
        list[Annotated[ClientItem | InvalidItem, FailsAlone(ClientItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Clients; each externalId once. An invalid item does not fail others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


@operation(
    rest="POST /api/clients/upsert",
    title="Create or update clients",
    scope=Scope.CRM_WRITE,
    idempotent=True,
    accepts_idempotency_key=True,
    example={"items": [{"externalId": "crm-1815", "name": "Ada", "email": "ada@example.org"}]},
)
def upsert_clients(ctx: Context, args: ClientUpsert) -> UpsertedRecords:
    """Create or update up to 100 clients by their externalId, each with its own outcome.

    A new client needs a name, an e-mail address or a phone. An item whose values are stored
    already writes nothing. If another client has the e-mail address or phone, the item fails with
    duplicate_client, and conflictId is the id of that client: give it the externalId with
    POST /api/clients/update.
    """
    return _UPSERT.run(ctx, args.items, dry_run=args.dry_run)


def _create(ctx: Context, item: ClientItem) -> ClientRow:
    return clients.new_client(ctx, new_record(ClientCreate, item))


def _change(ctx: Context, client: ClientRow, item: ClientItem) -> bool:
    clients.change(ctx, client, item.changes)
    return bool(client.changes())


_UPSERT = Upsert(CLIENTS, _create, _change)
