"""Create or update clients by their contacts, for imports of tables and contacts."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import Field

from chalicelib.application.batches import (
    MAX_ITEMS,
    BatchSummary,
    commit_outcomes,
    sort_by_item,
)
from chalicelib.application.context import Context
from chalicelib.application.upserts import (
    CREATED,
    UNCHANGED,
    UPDATED,
    UpsertedRecord,
    UpsertedRecords,
)
from chalicelib.core.errors import AppError, ValidationError
from chalicelib.core.operations import OPERATOR, operation
from chalicelib.core.wire import batch_items
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.external_data import ExternalId
from chalicelib.core.wire.schema import Partial, Wire, optional
from chalicelib.domains.clients.flows.contacts import wrong_phone
from chalicelib.domains.clients.operations.clients import DuplicateClientError
from chalicelib.domains.clients.store import clients
from chalicelib.domains.clients.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.listing.lookups import EXTERNAL_ID, LookupRow
from chalicelib.engine.reading import fetch
from chalicelib.engine.unit import UnitOfWork, split_batches
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import Birthday, Email, Notes, PersonName, PhoneText, Tags

# A client writes at most 9 rows, and a transaction of DynamoDB may have 100.
CLIENTS_PER_TRANSACTION = 10
MAX_NOTES = 5000  # characters
MAX_TAGS = 20
"""Tags of a client. Those that the client has stay, and the last new ones are left out."""


class ContactItem(Partial):
    """A client by its externalId, e-mail address or phone."""

    name: PersonName | None = optional("Name.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("In any format.")
    birthday: Birthday | None = optional("Date of birth, such as 1985-12-24.")
    tags: Tags = optional("Added to those that the client has.")
    notes: Notes | None = optional("Added to those that the client has.")
    external_id: ExternalId = optional("Id in another system.")


class ContactUpsert(Wire):
    """Clients to create or update."""

    items: Annotated[
        list[Annotated[ContactItem | InvalidItem, FailsAlone(ContactItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Clients. An invalid item does not fail the others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


@operation(
    title="Create or update clients by contacts",
    audience=OPERATOR,
    idempotent=True,
    example={"workspaceId": "WORKSPACE_ID", "items": [{"name": "Ada", "email": "ada@example.org"}]},
)
def upsert_clients_by_contact(ctx: Context, args: ContactUpsert) -> UpsertedRecords:
    """Create up to 100 clients, or add to those that exist, each with its own outcome.

    A client is found by externalId, then by e-mail address, then by phone. What a found client has
    stays, empty fields are filled, tags and notes are added.
    """
    results: dict[int, UpsertedRecord] = {}
    for number, item in enumerate(args.items):
        if isinstance(item, InvalidItem):
            results[number] = _failed(item, item.error)
    numbers = [number for number in range(len(args.items)) if number not in results]
    country = cache(lambda: workspaces.get(ctx.workspace_id).country)
    for batch in split_batches(numbers, CLIENTS_PER_TRANSACTION):
        items = batch_items.valid([args.items[number] for number in batch])
        outcomes = (
            [outcome.expected() for outcome in _stage(ctx, items, country)]
            if args.dry_run
            else _commit(ctx, f"clients from {batch[0]}", items, country)
        )
        results.update(zip(batch, outcomes, strict=True))
    ordered = sort_by_item(results, ctx.naming)
    return UpsertedRecords(results=ordered, summary=BatchSummary.from_outcomes(ordered))


def _commit(
    ctx: Context, name: str, items: Sequence[ContactItem], country: Callable[[], str]
) -> list[UpsertedRecord]:
    def stage(part: UnitOfWork) -> list[UpsertedRecord]:
        return _stage(Context(ctx.principal, part, ctx.request_id, [], ctx.naming), items, country)

    def failed(error: AppError) -> list[UpsertedRecord]:
        return [_failed(item, error) for item in items]

    return commit_outcomes(ctx.unit, name, UpsertedRecord, stage, failed)


def _stage(
    ctx: Context, items: Sequence[ContactItem], country: Callable[[], str]
) -> list[UpsertedRecord]:
    found = _Found(ctx.workspace_id, items, country())
    outcomes = []
    for item in items:
        try:
            outcomes.append(_stage_one(ctx, item, found))
        except AppError as error:
            outcomes.append(_failed(item, error))
    return outcomes


class _Found:
    """The clients that items name, and those that are staged."""

    def __init__(self, workspace_id: str, items: Sequence[ContactItem], country: str) -> None:
        self._country = country
        self._numbers = {
            item.phone: phones.find_phone(item.phone, country=country)
            for item in items
            if item.phone
        }
        wanted = {
            EXTERNAL_ID.name: {item.external_id for item in items if item.external_id},
            EMAIL: {item.email for item in items if item.email},
            PHONE: {number for number in self._numbers.values() if number},
        }
        # One request for all look-ups.
        keys = {
            (name, _key(name, value)): CLIENTS.value_key(workspace_id, lookup=name, value=value)
            for name, values in wanted.items()
            for value in values
        }
        holders = {row.pk: row.target for row in fetch(keys.values()) if isinstance(row, LookupRow)}
        self._ids = {name: holders[key.pk] for name, key in keys.items() if key.pk in holders}
        ids = list(dict.fromkeys(self._ids.values()))
        self._clients = {client.id: client for client in CLIENTS.fetch(workspace_id, ids)}
        self.staged: set[str] = set()

    def contacts_of(self, item: ContactItem) -> dict[str, str]:
        """Return the contacts of an item by the names of their look-ups, in order of preference.

        Raises ValidationError if it has none, or only a phone that is no number.
        """
        number = self._numbers.get(item.phone) if item.phone else None
        contacts = {EXTERNAL_ID.name: item.external_id, EMAIL: item.email, PHONE: number}
        known = {name: value for name, value in contacts.items() if value}
        if known:
            return known
        if item.phone:
            raise wrong_phone(PHONE, item.phone, country=self._country)
        msg = "expected an e-mail address, a phone or an id, received none of them"
        raise ValidationError.of(EMAIL, message=msg, key="no_contact")

    def client_of(self, contacts: dict[str, str]) -> ClientRow | None:
        """Return the client that the contacts name, the externalId first.

        Raises DuplicateClientError if another client has one of the others.
        """
        holders = {
            name: self._ids[key]
            for name, value in contacts.items()
            if (key := (name, _key(name, value))) in self._ids
        }
        client_id = next(iter(holders.values()), "")
        for name, holder in holders.items():
            if holder != client_id:
                msg = f"Another client, {holder}, has this {name}. Clients cannot be merged."
                raise DuplicateClientError(msg, client_id=holder)
        return self._clients.get(client_id)

    def add(self, contacts: dict[str, str], client: ClientRow) -> None:
        self._clients[client.id] = client
        self._ids |= {(name, _key(name, value)): client.id for name, value in contacts.items()}


def _key(name: str, value: str) -> str:
    return emails.key(value) if name == EMAIL else value


def _stage_one(ctx: Context, item: ContactItem, found: _Found) -> UpsertedRecord:
    contacts = found.contacts_of(item)
    client = found.client_of(contacts)
    if client is not None and client.id in found.staged:
        msg = "Several items name this client. Send only one of these items."
        raise ValidationError(msg, key="repeated_item")
    code = CREATED if client is None else UNCHANGED
    if client is None:
        client = clients.new_client(ctx.workspace_id)
    _fill(client, item, contacts)
    if code == CREATED:
        ctx.unit.create(client)
    elif client.changes():
        code = UPDATED
        ctx.unit.save(client)
    found.staged.add(client.id)
    found.add(contacts, client)
    return UpsertedRecord.done(ctx, client.id, code, external_id=item.external_id or "")


def _fill(client: ClientRow, item: ContactItem, contacts: dict[str, str]) -> None:
    values: dict[str, Any] = {**contacts, "name": item.name, "birthday": item.birthday}
    for name, value in values.items():
        if value and not getattr(client, name):
            setattr(client, name, value)
    if item.phone and not client.phone_entered and client.phone in {None, contacts.get(PHONE)}:
        client.phone_entered = item.phone
    tags = list(dict.fromkeys([*client.tags, *(item.tags or ())]))[:MAX_TAGS]
    if tags != list(client.tags):
        client.tags = tags
    if item.notes and item.notes not in (client.notes or ""):
        client.notes = "\n".join(filter(None, (client.notes, item.notes)))[:MAX_NOTES]


def _failed(item: ContactItem | InvalidItem, error: AppError) -> UpsertedRecord:
    external_id = "" if isinstance(item, InvalidItem) else item.external_id or ""
    return UpsertedRecord.failed(error, external_id=external_id)
