"""Create or update services and resources by their ids in the caller's system."""

from typing import Annotated, ClassVar

from pydantic import Field

from chalicelib.application.batches import MAX_ITEMS
from chalicelib.application.context import Context
from chalicelib.application.upserts import ItemByExternalId, Upsert, UpsertedRecords, new_record
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.batch_items import FailsAlone, InvalidItem
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.services.operations import resources, services
from chalicelib.domains.services.operations.resources import ResourceCreate, ServiceIds
from chalicelib.domains.services.operations.services import (
    Duration,
    Reminders,
    ResourceIds,
    ResourceOverrides,
    ServiceCreate,
    Status,
)
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow, bound_to
from chalicelib.lib.contact_fields import Tags


class ServiceItem(ItemByExternalId, ServiceCreate):  # type: ignore[misc]  # externalId is required
    """A service by its id in the caller's system. Omitted fields stay as they are."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"images"})

    duration_min: Duration = optional("In minutes; a new service needs it.")
    resource_ids: ResourceIds = optional("Alternatives; replaces all.")
    resource_overrides: ResourceOverrides = optional("Other prices or lengths; replaces all.")
    tags: Tags = optional("Replaces all.")
    reminders: Reminders = optional("Minutes before start; replaces all.")


class ServiceUpsert(Wire):
    """Services to create or update."""

    items: Annotated[
        list[Annotated[ServiceItem | InvalidItem, FailsAlone(ServiceItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Services; each externalId once. An invalid item does not fail others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


class ResourceItem(ItemByExternalId, ResourceCreate):  # type: ignore[misc]  # externalId is required
    """A resource by its id in the caller's system. Omitted fields stay as they are."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"photo"})

    timezone: Timezone = optional("IANA zone; a new one has the workspace's if omitted.")
    service_ids: ServiceIds = optional("Services booked with it; replaces all.")
    status: Status = optional("inactive: no slots; a new one is active if omitted.")


class ResourceUpsert(Wire):
    """Resources to create or update."""

    items: Annotated[
        list[Annotated[ResourceItem | InvalidItem, FailsAlone(ResourceItem)]],
        Field(min_length=1, max_length=MAX_ITEMS),
    ] = Field(description="Resources; each externalId once. An invalid item does not fail others.")
    dry_run: bool = Field(default=False, description="Only report what would happen.")


@operation(
    rest="POST /api/services/upsert",
    title="Create or update services",
    scope=Scope.SERVICES_WRITE,
    idempotent=True,
    accepts_idempotency_key=True,
    example={
        "items": [
            {
                "externalId": "treatment-7",
                "name": "Tooth cleaning",
                "durationMin": 60,
                "price": 450_000,
                "resourceIds": ["RESOURCE_ID"],
            }
        ]
    },
)
def upsert_services(ctx: Context, args: ServiceUpsert) -> UpsertedRecords:
    """Create or update up to 100 services by their externalId, each with its own outcome.

    A new service needs a name and a duration. An item whose values are stored already writes
    nothing. Set images with POST /api/services/update.
    """
    return _SERVICES.run(ctx, args.items, dry_run=args.dry_run)


@operation(
    rest="POST /api/resources/upsert",
    title="Create or update resources",
    scope=Scope.SERVICES_WRITE,
    idempotent=True,
    accepts_idempotency_key=True,
    example={"items": [{"externalId": "doctor-3", "name": "Grace", "serviceIds": ["SERVICE_ID"]}]},
)
def upsert_resources(ctx: Context, args: ResourceUpsert) -> UpsertedRecords:
    """Create or update up to 100 staff, rooms and equipment by their externalId.

    Each item has its own outcome. A new resource needs a name. An item whose values are stored
    already writes nothing. Set the photo with POST /api/resources/update.
    """
    return _RESOURCES.run(ctx, args.items, dry_run=args.dry_run)


def _create_service(ctx: Context, item: ServiceItem) -> ServiceRow:
    return services.new_service(ctx, new_record(ServiceCreate, item))


def _change_service(ctx: Context, service: ServiceRow, item: ServiceItem) -> bool:
    services.change(ctx, service, item.changes)
    return bool(service.changes())


def _create_resource(ctx: Context, item: ResourceItem) -> ResourceRow:
    status = item.status or "active"
    resource, _ = resources.new_resource(
        ctx, new_record(ResourceCreate, item, "status"), status=status
    )
    return resource


def _change_resource(ctx: Context, resource: ResourceRow, item: ResourceItem) -> bool:
    changes = item.changes
    previous_ids: list[str] = []
    if "service_ids" in changes:
        previous_ids = bound_to(ctx.workspace_id, resource_id=resource.id)
    bound = resources.change(ctx, resource, changes, previous_ids=previous_ids)
    return bool(resource.changes()) or set(bound) != set(previous_ids)


_SERVICES = Upsert(SERVICES, _create_service, _change_service)
_RESOURCES = Upsert(RESOURCES, _create_resource, _change_resource)
