"""Create or update services by their names, for imports of tables."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from chalicelib.core.text import fold
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.external_data import ExternalId
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.schema import Id, MailedTitle, Partial, Wire, optional
from chalicelib.domains.services.operations import services
from chalicelib.domains.services.operations.services import (
    Description,
    Duration,
    ServiceCreate,
    Status,
)
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.unit import UnitOfWork

SERVICES_AT_ONCE = 100  # read to find services by name


class NamedServiceItem(Partial):
    """A service by its externalId or its name. Omitted fields stay as they are."""

    name: MailedTitle = Field(description="Name, which finds the service unless externalId does.")
    duration_min: Duration = optional("In minutes; a new service needs it.")
    price: Kopecks = optional("In minor units (kopecks).")
    description: Description | None = optional("Description.")
    category_id: Id | None = optional("Category id.")
    status: Status = optional("inactive: no slots.")
    external_id: ExternalId = optional("Id in another system.")


class NamedServiceUpsert(Wire):
    """Services to create or update."""

    items: Annotated[
        list[Annotated[NamedServiceItem | InvalidItem, FailsAlone(NamedServiceItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Services; each name once. An invalid item does not fail the others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


@operation(
    title="Create or update services by name",
    audience=OPERATOR,
    idempotent=True,
    example={
        "workspaceId": "WORKSPACE_ID",
        "items": [{"name": "Tooth cleaning", "durationMin": 60, "price": 450_000}],
    },
)
def upsert_services_by_name(ctx: Context, args: NamedServiceUpsert) -> UpsertedRecords:
    """Create or update up to 100 services, each with its own outcome.

    externalId names a service, else its name does, ignoring case.
    """
    known_ids = _ids_by_key(ctx.workspace_id, args.items)
    results: dict[int, UpsertedRecord] = {}
    for number, item in enumerate(args.items):
        if isinstance(item, InvalidItem):
            results[number] = _failed(item, item.error)
            continue
        service_id = next((known_ids[key] for key in _keys(item) if key in known_ids), None)
        if args.dry_run:
            unit = UnitOfWork(ctx.workspace_id)
            outcome = _outcome(replace(ctx, unit=unit, warnings=[]), item, service_id).expected()
        else:
            outcome = _commit(ctx, number, item, service_id)
        results[number] = outcome
        if outcome.id is not None:
            known_ids |= dict.fromkeys(_keys(item), outcome.id)
    ordered = sort_by_item(results, ctx.naming)
    return UpsertedRecords(results=ordered, summary=BatchSummary.from_outcomes(ordered))


def _ids_by_key(
    workspace_id: str, items: list[NamedServiceItem | InvalidItem]
) -> dict[tuple[str, str], str]:
    external_ids = [
        item.external_id
        for item in items
        if isinstance(item, NamedServiceItem) and item.external_id
    ]
    holders = SERVICES.find_unique(workspace_id, lookup=EXTERNAL_ID.name, values=external_ids)
    ids = {(EXTERNAL_ID.name, value): service_id for value, service_id in holders.items()}
    for service in _every_service(workspace_id):
        ids.setdefault(("name", fold(service.name)), service.id)
    return ids


def _every_service(workspace_id: str) -> Iterator[ServiceRow]:
    last_id = ""
    while batch := SERVICES.read_after(workspace_id, record_id=last_id, limit=SERVICES_AT_ONCE):
        yield from batch
        last_id = batch[-1].id


def _keys(item: NamedServiceItem) -> list[tuple[str, str]]:
    keys = [("name", fold(item.name))]
    return [(EXTERNAL_ID.name, item.external_id), *keys] if item.external_id else keys


def _commit(
    ctx: Context, number: int, item: NamedServiceItem, service_id: str | None
) -> UpsertedRecord:
    def stage(part: UnitOfWork) -> list[UpsertedRecord]:
        return [_outcome(replace(ctx, unit=part, warnings=[]), item, service_id)]

    def failed(error: AppError) -> list[UpsertedRecord]:
        return [_failed(item, error)]

    return commit_outcomes(ctx.unit, f"service {number}", UpsertedRecord, stage, failed)[0]


def _outcome(ctx: Context, item: NamedServiceItem, service_id: str | None) -> UpsertedRecord:
    try:
        return _stage(ctx, item, service_id)
    except AppError as error:
        return _failed(item, error)


def _stage(ctx: Context, item: NamedServiceItem, service_id: str | None) -> UpsertedRecord:
    values = item.provided()
    found = SERVICES.find(ctx.workspace_id, record_id=service_id) if service_id else None
    if found is None:
        if values.get("duration_min") is None:
            msg = "durationMin: is required for a new service"
            raise ValidationError(msg, key="incomplete_item")
        service = services.new_service(ctx, ServiceCreate.model_validate(values, by_name=True))
        return _done(ctx, item, service, CREATED)
    return _done(ctx, item, found, _change(ctx, found, values))


def _change(ctx: Context, service: ServiceRow, values: Mapping[str, Any]) -> str:
    services.change(ctx, service, values)
    if not service.changes():
        return UNCHANGED
    ctx.unit.save(service)
    return UPDATED


def _done(ctx: Context, item: NamedServiceItem, service: ServiceRow, code: str) -> UpsertedRecord:
    return UpsertedRecord.done(ctx, service.id, code, external_id=item.external_id or "")


def _failed(item: NamedServiceItem | InvalidItem, error: AppError) -> UpsertedRecord:
    external_id = "" if isinstance(item, InvalidItem) else item.external_id or ""
    return UpsertedRecord.failed(error, external_id=external_id)
