"""List, read, create and update resources."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from chalicelib.application import descriptions
from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, ExternalIdTakenError
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.external_data import (
    BY_EXTERNAL_ID,
    EXTERNAL_ID,
    EXTERNAL_ID_OUT,
    METADATA,
    METADATA_OUT,
    Metadata,
    NewExternalId,
    NewMetadata,
    merge_metadata,
)
from chalicelib.core.wire.lists import ListResult, SortedListQuery
from chalicelib.core.wire.schema import (
    Id,
    MailedTitle,
    Patch,
    SearchText,
    SortOrder,
    Timestamp,
    Wire,
    optional,
)
from chalicelib.domains.files.flows import record_images
from chalicelib.domains.files.flows.record_images import ImageIn, ImageOut
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.flows.zones import warn_of_zone
from chalicelib.domains.services.store import resources, services
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES

FOLDER = "services"  # of photos, and of images of services
Description = Annotated[str, StringConstraints(max_length=20_000)]
Type = Literal["master", "room", "equipment"]
Status = Literal["active", "inactive"]
Capacity = Annotated[int, Field(ge=1, le=100)]
ServiceIds = Annotated[list[Id], Field(max_length=binding.MAX_SERVICES)]


class ResourceRef(Wire):
    """Id of a resource."""

    id: Id = Field(description="Resource id.")


class ResourceOut(ResourceRef):
    """A resource that services are booked with: a person, a room or equipment."""

    name: str = Field(description="Name of the resource.")
    type: str = Field(description="master, room or equipment.")
    description: str | None = Field(description="Description, or null.")
    description_truncated: bool = Field(description=descriptions.TRUNCATED)
    photo: ImageOut | None = Field(description="Photo, or null.")
    timezone: str = Field(description="IANA zone of its opening hours.")
    capacity: int = Field(description="Maximum number of bookings at the same time.")
    status: str = Field(description="active or inactive.")
    service_ids: list[Id] = Field(description="Services that can be booked with it.")
    sort_order: int = Field(description="Position among all resources, ascending.")
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When the resource itself was last changed.")

    @classmethod
    def from_record(cls, resource: ResourceRow, service_ids: Sequence[str], **fields: Any) -> Self:  # noqa: ANN401  fields of any type
        photo = next(iter(resource.images), None)
        fields = {
            "description_truncated": False,
            "photo": photo,
            "service_ids": service_ids,
            **fields,
        }
        return cls.from_row(resource.values, **fields)


class ResourceResult(Wire):
    """One resource."""

    resource: ResourceOut = Field(description="The resource.")


class ResourceListQuery(SortedListQuery):
    """Filters and page of a list of resources."""

    size: int = Field(default=20, ge=1, le=100, description="Resources per page.")
    q: SearchText | None = optional("Part of the name.")
    status: Literal["active", "inactive", "all"] = Field(default="all", description="Status.")
    service_id: Id | None = optional("Only those of this service.")
    external_id: NewExternalId = BY_EXTERNAL_ID
    id: Id | None = optional("Only this one, not shortened.")


class ResourceList(ListResult):
    """One page of resources."""

    resources: list[ResourceOut] = Field(description="The resources of this page.")


class ResourceCreate(Wire):
    """A new resource."""

    name: MailedTitle = Field(description="Name.")
    type: Type = Field(default="master", description="master: a member of staff.")
    timezone: Timezone | None = optional("IANA zone; default: the workspace's.")
    capacity: Capacity = Field(default=1, description="Maximum bookings at the same time.")
    description: Description | None = optional("Description.")
    photo: ImageIn | None = optional("Photo.")
    service_ids: ServiceIds | None = optional("Services booked with it.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class ResourcePatch(Patch, ResourceCreate, ResourceRef):
    """Changes to a resource."""

    timezone: Timezone = optional("IANA zone; moves hours, not bookings.")
    service_ids: ServiceIds = optional("Services booked with it; replaces all.")
    status: Status = optional("inactive: no slots.")
    sort_order: SortOrder = optional("Position in the list.")


def weight(args: Wire) -> int:
    """Return the weight of a call for the rate limit, which is 1 if its photo must be fetched."""
    photo = args.provided().get("photo")
    return record_images.weight([photo] if photo else ())


@operation(
    tool=True,
    rest="GET /api/resources/list",
    scope=Scope.SERVICES_READ,
    example={"q": "ann", "status": "active"},
    role=Role.MEMBER,
)
def list_resources(ctx: Context, args: ResourceListQuery) -> ResourceList:
    """List resources. Long descriptions are cut, except with id."""
    ids = _filter_ids(ctx, args)
    query = RESOURCES.query(args, sort="sortOrder", search=args.q, ids=ids, charge=ctx.charge)
    with deadline.side_by_side() as start:
        bindings = start(lambda: services.Bindings(ctx.workspace_id, args.id))
        page = RESOURCES.page(ctx.workspace_id, query)

    def to_wire(row: ResourceRow, **fields: Any) -> ResourceOut:  # noqa: ANN401  fields of any type
        return ResourceOut.from_record(row, bindings.result().get_service_ids(row.id), **fields)

    if args.id is not None:
        records = list(map(to_wire, page.records))
    else:
        remedy = "list the resource by id"
        records = descriptions.shortened(ctx, page.records, to_wire, noun="resource", remedy=remedy)
    return ResourceList(resources=records, **args.counted(page.total))


def _filter_ids(ctx: Context, args: ResourceListQuery) -> set[str] | None:
    if args.service_id is None:
        return None if args.id is None else {args.id}
    service = SERVICES.find(ctx.workspace_id, record_id=args.service_id)
    bound = set(service.resource_ids) if service else set()
    return bound if args.id is None else bound & {args.id}


@operation(
    rest="GET /api/resources/{id}",
    scope=Scope.SERVICES_READ,
    example={"id": "RESOURCE_ID"},
    role=Role.MEMBER,
)
def get_resource(ctx: Context, args: ResourceRef) -> ResourceResult:
    """Return one resource with its full description."""
    with deadline.side_by_side() as start:
        bound = start(lambda: services.bound_to(ctx.workspace_id, resource_id=args.id))
        resource = RESOURCES.require(ctx.workspace_id, record_id=args.id)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound.result()))


@operation(
    tool=True,
    rest="POST /api/resources/create",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    limit=HEAVY.weighed(weight),
    example={"name": "Boris", "serviceIds": ["SERVICE_ID"]},
    errors=(ConflictError, ExternalIdTakenError),
    role=Role.MANAGER,
)
def create_resource(ctx: Context, args: ResourceCreate) -> ResourceResult:
    """Create a resource. It has slots only in its opening hours (svc_set_availability)."""
    resource, bound = new_resource(ctx, args)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound))


def new_resource(
    ctx: Context, args: ResourceCreate, *, status: str = "active"
) -> tuple[ResourceRow, list[str]]:
    """Stage a new resource, last in the order. Return it and the ids of its services."""
    service_ids = args.service_ids or ()
    external_data: dict[str, Any] = {"external_id": args.external_id, "metadata": args.metadata}
    merge_metadata(external_data)
    with deadline.side_by_side() as start:
        timezone = start(lambda: args.timezone or periods.zone_of_workspace(ctx))
        number = start(lambda: resources.number_at_end(ctx.workspace_id))
        ctx.unit.rows.read(
            SERVICES.key(ctx.workspace_id, record_id=service_id) for service_id in service_ids
        )
    resource = RESOURCES.new(
        ctx.workspace_id,
        name=args.name,
        type=args.type,
        timezone=timezone.result(),
        capacity=args.capacity,
        description=args.description,
        status=status,
        sort_order=number.result(),
        **external_data,
    )
    bound = binding.bind(ctx, resource, service_ids, previous_ids=())
    resource.images = _photo(ctx, args.photo, ())
    ctx.unit.create(resource)
    return resource, bound


@operation(
    tool=True,
    rest="POST /api/resources/update",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    idempotent=True,
    limit=HEAVY.weighed(weight),
    example={"id": "RESOURCE_ID", "capacity": 2},
    errors=(ConflictError, ExternalIdTakenError),
    role=Role.MANAGER,
)
def update_resource(ctx: Context, args: ResourcePatch) -> ResourceResult:
    """Change a resource, or which services are booked with it."""
    with deadline.side_by_side() as start:
        bound_task = start(lambda: services.bound_to(ctx.workspace_id, resource_id=args.id))
        resource = RESOURCES.require(ctx.workspace_id, record_id=args.id)
        bound = bound_task.result()
    bound = change(ctx, resource, args.changes, previous_ids=bound)
    ctx.unit.save(resource)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound))


def change(
    ctx: Context, resource: ResourceRow, values: Mapping[str, Any], *, previous_ids: list[str]
) -> list[str]:
    """Set attributes of a resource, which the caller stages. Return the ids of its services.

    The services that change are staged. ``previous_ids`` has the ids of its services now.
    """
    changes, bound = dict(values), previous_ids
    merge_metadata(changes, resource.metadata)
    descriptions.require_whole(changes.get("description"), stored_text=resource.description)
    warn_of_zone(ctx, resource, changes.get("timezone", resource.timezone))
    service_ids = changes.pop("service_ids", None)
    has_photo, photo = "photo" in changes, changes.pop("photo", None)
    for name, value in changes.items():
        setattr(resource, name, value)
    if service_ids is not None:
        bound = binding.bind(ctx, resource, service_ids, previous_ids=bound)
    if has_photo:
        resource.images = _photo(ctx, photo, resource.images)
    return bound


def _photo(ctx: Context, photo: ImageIn | None, old_images: Sequence[ImageMap]) -> list[ImageMap]:
    photos = [photo] if photo else []
    return record_images.import_record_images(
        ctx, photos, FOLDER, old_images=old_images, field="photo"
    )
