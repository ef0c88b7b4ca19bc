"""List, read, create, update and delete resources."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from chalicelib.application import descriptions
from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, call
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.limits import HEAVY
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import (
    DeletedResult,
    Id,
    ListQuery,
    MailedTitle,
    Patch,
    SearchText,
    SortOrder,
    Timestamp,
    Wire,
    optional,
)
from chalicelib.domains.bookings.flows import binding
from chalicelib.domains.bookings.store import bookings, resources, services, time_off
from chalicelib.domains.bookings.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.bookings.store.services import SERVICES
from chalicelib.domains.files.flows import images
from chalicelib.domains.files.flows.images import ImageIn, ImageOut
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.engine import jobs
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, cascade_over

KEPT_AFTER_DELETION = timedelta(days=30)
FOLDER = "services"
"""Folder of photos. Images of services are stored there, too."""
CASCADE = "resource-cascade"
"""The scheduled job that unbinds a deleted resource and removes its time off."""
BATCH_SIZE = 20
"""Maximum number of services, or of time off, that one transaction of the job changes."""

Description = Annotated[str, StringConstraints(max_length=20_000)]
Type = Literal["master", "room", "equipment"]
Status = Literal["active", "inactive"]
Capacity = Annotated[int, Field(ge=1, le=100)]
ServiceIds = Annotated[list[Id], Field(max_length=binding.MAX_SERVICES)]


class HasFutureBookingsError(ConflictError):
    """The resource has upcoming bookings and cannot be deleted: ``futureBookings``."""

    code = "has_future_bookings"

    def __init__(self, message: str, *, future_bookings: int) -> None:
        super().__init__(message, details={"futureBookings": future_bookings})


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
    created_at: Timestamp = Field(description="When it was created.")

    @classmethod
    def from_record(cls, resource: ResourceRow, service_ids: Sequence[str], **fields: Any) -> Self:  # noqa: ANN401  fields of any type
        """Return the wire form of a stored resource."""
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


class ResourceListQuery(ListQuery):
    """Filters and page of a list of resources."""

    size: int = Field(default=20, ge=1, le=100, description="Resources per page.")
    q: SearchText | None = optional("Part of the name.")
    status: Literal["active", "inactive", "all"] = Field(default="all", description="Status.")
    service_id: Id | None = optional("Only those of this service.")
    id: Id | None = optional("Only this one, not shortened.")


class ResourceList(Wire):
    """One page of resources."""

    resources: list[ResourceOut] = Field(description="The resources of this page.")
    total: int = Field(description="Resources that match, over all pages.")


class ResourceCreate(Wire):
    """A new resource."""

    name: MailedTitle = Field(description="Name.")
    type: Type = Field(default="master", description="master: a member of staff.")
    timezone: Timezone | None = optional("IANA zone; default: the workspace's.")
    capacity: Capacity = Field(default=1, description="Maximum bookings at the same time.")
    description: Description | None = optional("Description.")
    photo: ImageIn | None = optional("Photo.")
    service_ids: ServiceIds | None = optional("Services booked with it.")


class ResourcePatch(Patch, ResourceCreate, ResourceRef):
    """Changes to a resource."""

    timezone: Timezone = optional("IANA zone; moves hours, not bookings.")
    service_ids: ServiceIds = optional("Services booked with it; replaces all.")
    status: Status = optional("inactive: no slots.")
    sort_order: SortOrder = optional("Position in the list.")


class ResourceDelete(ResourceRef):
    """Id of a resource to delete."""

    force: bool = Field(default=False, description="Delete despite upcoming bookings.")
    dry_run: bool = Field(default=False, description="Only report.")


class ResourceDeleted(DeletedResult):
    """Result of a deletion, with the number of remaining bookings."""

    future_bookings: int = Field(description="Upcoming bookings, which stay.")


def warn_of_zone(ctx: Context, resource: ResourceRow, timezone: str) -> None:
    """Warn that a change of zone moves a resource's opening hours, but not its bookings."""
    if timezone != resource.timezone:
        ctx.warn(
            f"The time zone of the opening hours has changed from {resource.timezone} to "
            f"{timezone}. Existing bookings are not moved."
        )


def weight(args: Wire) -> int:
    """Return the weight of a call for the rate limit, which is 1 if its photo must be fetched."""
    photo = args.provided().get("photo")
    return images.weight([photo] if photo else ())


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
    return ResourceList(resources=records, total=page.total)


def _filter_ids(ctx: Context, args: ResourceListQuery) -> set[str] | None:
    """Return the ids that pass the filters, or None without such filters."""
    if args.service_id is None:
        return None if args.id is None else {args.id}
    service = SERVICES.find(ctx.workspace_id, args.service_id)
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
        bound = start(lambda: services.bound_to(ctx.workspace_id, args.id))
        resource = RESOURCES.require(ctx.workspace_id, args.id)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound.result()))


@operation(
    tool=True,
    rest="POST /api/resources/create",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    limit=HEAVY.weighed(weight),
    example={"name": "Boris", "serviceIds": ["SERVICE_ID"]},
    errors=(ConflictError,),
    role=Role.MANAGER,
)
def create_resource(ctx: Context, args: ResourceCreate) -> ResourceResult:
    """Create a resource. It has slots only in its opening hours (svc_set_availability)."""
    service_ids, rows = args.service_ids or (), Rows()
    with deadline.side_by_side() as start:
        timezone = start(lambda: args.timezone or periods.zone_of_workspace(ctx))
        number = start(lambda: resources.number_at_end(ctx.workspace_id))
        rows.read(SERVICES.key(ctx.workspace_id, service_id) for service_id in service_ids)
    resource = RESOURCES.new(
        ctx.workspace_id,
        name=args.name,
        type=args.type,
        timezone=timezone.result(),
        capacity=args.capacity,
        description=args.description,
        status="active",
        sort_order=number.result(),
    )
    bound = binding.bind(ctx, resource, service_ids, previous_ids=(), rows=rows)
    resource.images = _photo(ctx, args.photo, ())
    ctx.unit.create(resource)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound))


@operation(
    tool=True,
    rest="POST /api/resources/update",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    idempotent=True,
    limit=HEAVY.weighed(weight),
    example={"id": "RESOURCE_ID", "capacity": 2},
    errors=(ConflictError,),
    role=Role.MANAGER,
)
def update_resource(ctx: Context, args: ResourcePatch) -> ResourceResult:
    """Change a resource, or which services are booked with it."""
    with deadline.side_by_side() as start:
        bound_task = start(lambda: services.bound_to(ctx.workspace_id, args.id))
        resource = RESOURCES.require(ctx.workspace_id, args.id)
        bound = bound_task.result()
    changes = args.changes
    descriptions.require_whole(changes.get("description"), resource.description)
    warn_of_zone(ctx, resource, changes.get("timezone", resource.timezone))
    service_ids = changes.pop("service_ids", None)
    has_photo, photo = "photo" in changes, changes.pop("photo", None)
    for name, value in changes.items():
        setattr(resource, name, value)
    if service_ids is not None:
        bound = binding.bind(ctx, resource, service_ids, previous_ids=bound)
    if has_photo:
        resource.images = _photo(ctx, photo, resource.images)
    ctx.unit.save(resource)
    return ResourceResult(resource=ResourceOut.from_record(resource, bound))


@operation(
    tool=True,
    rest="POST /api/resources/delete",
    scope=Scope.SERVICES_WRITE,
    example={"id": "RESOURCE_ID", "force": True},
    errors=(HasFutureBookingsError,),
    role=Role.MANAGER,
)
def delete_resource(ctx: Context, args: ResourceDelete) -> ResourceDeleted:
    """Delete a resource. It has no more slots and is unbound from services; its bookings are kept.

    A resource with upcoming bookings requires force (else 409 has_future_bookings).
    """
    with deadline.side_by_side() as start:
        count_task = start(lambda: bookings.future_count(ctx.workspace_id, resource_id=args.id))
        resource, schedule = resources.require_with_schedule(ctx.workspace_id, args.id)
        upcoming = count_task.result()
    if upcoming and not args.force:
        msg = (
            f"The resource has {upcoming} upcoming booking(s). Move or cancel them "
            f"({call('svc_set_booking_status')}), or send force: true to delete the resource and "
            "keep its bookings."
        )
        if not args.dry_run:
            raise HasFutureBookingsError(msg, future_bookings=upcoming)
        ctx.warn(f"Without force, this call would be refused: {msg}")
    resources.stage_deletion(ctx.unit, resource, schedule, retention=KEPT_AFTER_DELETION)
    ctx.unit.create_job(jobs.row(CASCADE, ctx.workspace_id, {"resourceId": resource.id}))
    return ResourceDeleted(id=resource.id, deleted=not args.dry_run, future_bookings=upcoming)


@job_handler(CASCADE)
def release(job: Job) -> None:
    """Unbind services from a deleted resource, and remove its time off.

    This runs right after the deletion. If it fails, the job runner repeats it. In the meantime, no
    service can be bound to the deleted resource.
    """
    workspace_id, resource_id = job.workspace_id, job.payload["resourceId"]
    with deadline.side_by_side() as start:
        own_time_off = start(lambda: time_off.all_of(workspace_id, resource_id))
        bound = services.bound_to(workspace_id, resource_id)
    cascade_over(job, bound, BATCH_SIZE, partial(_unbind, resource_id))
    cascade_over(job, [absence.id for absence in own_time_off.result()], BATCH_SIZE, _remove)


def _unbind(resource_id: str, unit: UnitOfWork, service_ids: Sequence[str]) -> None:
    for service in SERVICES.fetch(unit.workspace_id, service_ids):
        if resource_id in service.resource_ids:
            service.resource_ids = [
                bound_id for bound_id in service.resource_ids if bound_id != resource_id
            ]
            unit.save(service)


def _remove(unit: UnitOfWork, time_off_ids: Sequence[str]) -> None:
    for row in time_off.find_all(unit.workspace_id, time_off_ids):
        time_off.stage_deletion(unit, row, None)


def _photo(ctx: Context, photo: ImageIn | None, old_images: Sequence[ImageMap]) -> list[ImageMap]:
    photos = [photo] if photo else []
    return images.import_record_images(ctx, photos, FOLDER, old_images=old_images, field="photo")
