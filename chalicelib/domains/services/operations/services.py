"""List, read, create and update services."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application import descriptions
from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ConflictError, ExternalIdTakenError, ValidationError
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
from chalicelib.core.wire.lists import (
    NO_ARGUMENT,
    NO_SORT_BY_UPDATE,
    SORT_DIRECTION,
    ListQuery,
    ListResult,
    SortDirection,
)
from chalicelib.core.wire.money import Amount
from chalicelib.core.wire.schema import (
    Id,
    MailedTitle,
    Patch,
    SearchText,
    SortOrder,
    Timestamp,
    Wire,
    optional,
    require_ordered_bounds,
)
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.files.flows import record_images
from chalicelib.domains.files.flows.record_images import ImageOut, Images
from chalicelib.domains.identity.store import directory
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.store import dated_starts, services
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.domains.services.store.services import REMINDERS, SERVICES, ServiceRow
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED, SiteRow
from chalicelib.engine.reading import Key
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.contact_fields import Tags

FOLDER = "services"  # of images


def _unique(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(ids))


def _descending(minutes: list[int]) -> list[int]:
    return sorted(set(minutes), reverse=True)


Description = Annotated[str, StringConstraints(max_length=20_000)]
Duration = Annotated[int, Field(ge=5, le=1440)]
Buffer = Annotated[int, Field(ge=0, le=480)]
Notice = Annotated[int, Field(ge=0, le=43_200)]
Horizon = Annotated[int, Field(ge=1, le=365)]
Unverified = Annotated[int, Field(ge=1, le=1000)]
Reminders = Annotated[
    list[Annotated[int, Field(ge=10, le=43_200)]], Field(max_length=5), AfterValidator(_descending)
]
BookAgain = Annotated[int, Field(ge=7, le=365)]
ResourceIds = Annotated[list[Id], Field(max_length=binding.MAX_RESOURCES), AfterValidator(_unique)]
Status = Literal["active", "inactive"]


class ResourceOverrideInput(Wire):
    """A service with one of its resources, where the price or the length differs."""

    AT_LEAST_ONE_OF = ("price", "duration_min")

    resource_id: Id = Field(description="One of resourceIds.")
    price: Amount | None = optional("Price with it (kopecks); default: the service's.")
    duration_min: Duration | None = optional("Minutes with it; default: the service's.")

    @model_validator(mode="after")
    def _require_difference(self) -> Self:
        if self.price is None and self.duration_min is None:
            raise PydanticCustomError("no_changes", "expected price, durationMin or both")
        return self


def _each_once(overrides: list[ResourceOverrideInput]) -> list[ResourceOverrideInput]:
    if len({override.resource_id for override in overrides}) < len(overrides):
        raise PydanticCustomError("not_unique", "expected each resourceId once")
    return overrides


ResourceOverrides = Annotated[
    list[ResourceOverrideInput], Field(max_length=binding.MAX_RESOURCES), AfterValidator(_each_once)
]


class ResourceOverrideOut(Wire):
    """A service with one of its resources, where the price or the length differs."""

    resource_id: Id = Field(description="Resource id.")
    price: int | None = Field(description="Price with it, or null: the service's.")
    duration_min: int | None = Field(description="Minutes with it, or null: the service's.")


class ServiceRef(Wire):
    """Id of a service."""

    id: Id = Field(description="Service id.")


class ServiceOut(ServiceRef):
    """A service that clients can book."""

    name: str = Field(description="Name of the service.")
    duration_min: int = Field(description="Length in minutes.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")
    description: str | None = Field(description="Description, or null.")
    description_truncated: bool = Field(description=descriptions.TRUNCATED)
    category_id: Id | None = Field(description="Category id, or null.")
    site_id: Id | None = Field(description="Site id, or null.")
    agent_id: Id | None = Field(description="Bot id, or null.")
    resource_ids: list[Id] = Field(
        description="Alternative resources; a booking takes one of them."
    )
    resource_overrides: list[ResourceOverrideOut] = Field(
        description="Resources with another price or length than the service's."
    )
    images: list[ImageOut] = Field(description="Images, the main one first.")
    tags: list[str] = Field(description="Tags.")
    status: str = Field(description="active or inactive.")
    slot_step_min: int | None = Field(
        description="Minutes between the starts of two slots; null: the duration."
    )
    buffer_before_min: int = Field(description="Minutes kept free before a booking.")
    buffer_after_min: int = Field(description="Minutes kept free after a booking.")
    min_notice_min: int = Field(description="Minimum minutes between booking and start.")
    horizon_days: int = Field(description="Days ahead that can be booked.")
    require_payment: bool = Field(description="Whether a booking is held until it is paid.")
    unverified_per_hour: int = Field(
        description="Maximum number of bookings by visitors per hour, all visitors together."
    )
    visitor_mails: bool = Field(
        description="Whether clients get mails about their bookings, reminders included."
    )
    reminders: list[int] = Field(
        description="Minutes before the start at which clients are reminded by mail."
    )
    book_again_days: int | None = Field(
        description="Days after a visit after which clients who agreed to advertising are asked to "
        "book again; null: never."
    )
    sort_order: int = Field(description="Position among all services, ascending.")
    fixed_starts: bool = Field(
        description="Whether it is offered on its dates only (GET /api/services/starts)."
    )
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, service: ServiceRow, **fields: Any) -> Self:  # noqa: ANN401  fields of any type
        overrides = [
            ResourceOverrideOut(
                resource_id=resource_id, price=own.get("price"), duration_min=own.get("durationMin")
            )
            for resource_id, own in (service.overrides or {}).items()
        ]
        computed = {"description_truncated": False, "resource_overrides": overrides, **fields}
        return cls.from_row(service.values, **computed)


class ServiceResult(Wire):
    """One service."""

    service: ServiceOut = Field(description="The service.")


class ServiceListQuery(ListQuery):
    """Filters, sort and page of a list of services."""

    size: int = Field(default=20, ge=1, le=100, description="Services per page.")
    q: SearchText | None = optional("Part of the name.")
    status: Literal["active", "inactive", "all"] = Field(default="all", description="Status.")
    category_id: Id | None = optional("Category id.")
    site_id: Id | None = optional("Site id.")
    agent_id: Id | None = optional("Bot id.")
    min_price: Amount | None = optional("Minimum, in minor units (kopecks).")
    max_price: Amount | None = optional("Maximum, in minor units (kopecks).")
    sort: Annotated[
        Literal["sortOrder", "createdAt", "price", "name", "updatedAt"], NO_SORT_BY_UPDATE
    ] = Field(default="sortOrder", description="createdAt: newest first.")
    sort_dir: SortDirection = optional(SORT_DIRECTION)
    external_id: NewExternalId = BY_EXTERNAL_ID
    id: Id | None = optional("Only this one, not shortened.")

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        require_ordered_bounds(self, "min_price", upper="max_price")
        return self


class ServiceList(ListResult):
    """One page of services."""

    services: list[ServiceOut] = Field(description="The services of this page.")


class ServiceCreate(Wire):
    """A new service."""

    name: MailedTitle = Field(description="Name.")
    duration_min: Duration = Field(description="In minutes.")
    price: Amount = Field(
        default=0, description="In minor units of the workspace's currency (kopecks)."
    )
    description: Description | None = optional("Description.")
    category_id: Id | None = optional("Category id.")
    site_id: Id | None = optional("Site id.")
    agent_id: Id | None = optional("Bot id.")
    resource_ids: ResourceIds | None = optional("Alternatives; a booking takes one.")
    resource_overrides: Annotated[ResourceOverrides | None, NO_ARGUMENT] = optional(
        "Other prices or lengths by resource."
    )
    images: Images | None = optional("The main one first.")
    tags: Tags | None = optional("Tags.")
    status: Status = Field(default="active", description="inactive: no slots.")
    slot_step_min: Duration | None = optional("Minutes between slots; default: durationMin.")
    buffer_before_min: Buffer = Field(default=0, description="Minutes free before it.")
    buffer_after_min: Buffer = Field(default=0, description="Minutes free after it.")
    min_notice_min: Notice = Field(default=0, description="Minimum notice in minutes.")
    horizon_days: Horizon = Field(default=60, description="Bookable days ahead.")
    require_payment: bool = Field(default=False, description="Hold a booking until it is paid.")
    unverified_per_hour: Unverified = Field(default=60, description="Maximum bookings of visitors.")
    visitor_mails: bool = Field(default=True, description="E-mail clients, with reminders.")
    reminders: Reminders = Field(
        default_factory=lambda: [*REMINDERS],
        description="Minutes before start; default 1440, 120.",
    )
    book_again_days: Annotated[BookAgain | None, NO_ARGUMENT] = optional(
        "Days after a visit after which clients who agreed to advertising are asked to book again."
    )
    fixed_starts: Annotated[bool, NO_ARGUMENT] = Field(
        default=False, description="Offer it on its dates only, with places for several clients."
    )
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class ServicePatch(Patch, ServiceCreate, ServiceRef):
    """Changes to a service."""

    resource_ids: ResourceIds = optional("Alternatives; replaces all.")
    resource_overrides: Annotated[ResourceOverrides, NO_ARGUMENT] = optional(
        "Other prices or lengths; replaces all."
    )
    images: Images | None = optional("Replaces all.")
    tags: Tags = optional("Replaces all.")
    slot_step_min: Duration | None = optional("Minutes between slots; empty: durationMin.")
    reminders: Reminders = optional("Minutes before start; replaces all.")
    sort_order: SortOrder = optional("Position in the list.")


@operation(
    tool=True,
    rest="GET /api/services/list",
    scope=Scope.SERVICES_READ,
    example={"q": "tas", "sort": "price", "maxPrice": 10_000},
    role=Role.MEMBER,
)
def list_services(ctx: Context, args: ServiceListQuery) -> ServiceList:
    """List services. Long descriptions are cut, except with id."""
    query = SERVICES.query(
        args,
        sort=args.sort,
        descending=args.sort == "createdAt",
        ranges={"price": (args.min_price, args.max_price)},
        search=args.q,
        ids=None if args.id is None else [args.id],
        charge=ctx.charge,
    )
    page = SERVICES.page(ctx.workspace_id, query)
    if args.id is not None:
        records = list(map(ServiceOut.from_record, page.records))
    else:
        remedy = "list the service by id"
        records = descriptions.shortened(
            ctx, page.records, ServiceOut.from_record, noun="service", remedy=remedy
        )
    return ServiceList(services=records, **args.counted(page.total))


@operation(
    rest="GET /api/services/{id}",
    scope=Scope.SERVICES_READ,
    example={"id": "SERVICE_ID"},
    role=Role.MEMBER,
)
def get_service(ctx: Context, args: ServiceRef) -> ServiceResult:
    """Return one service with its full description."""
    return ServiceResult(
        service=ServiceOut.from_record(SERVICES.require(ctx.workspace_id, record_id=args.id))
    )


@operation(
    tool=True,
    rest="POST /api/services/create",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    limit=HEAVY.weighed(record_images.weight_of),
    example={
        "name": "Master class",
        "durationMin": 120,
        "price": 350_000,
        "siteId": "SITE_ID",
        "agentId": "AGENT_ID",
        "resourceIds": ["RESOURCE_ID"],
        "tags": ["children"],
    },
    errors=(ConflictError, ExternalIdTakenError),
    role=Role.MANAGER,
)
def create_service(ctx: Context, args: ServiceCreate) -> ServiceResult:
    """Create a service. It has slots once bound to a resource with opening hours."""
    return ServiceResult(service=ServiceOut.from_record(new_service(ctx, args)))


def new_service(ctx: Context, args: ServiceCreate) -> ServiceRow:
    """Stage a new service, last in the order, and return it."""
    fields = {name: getattr(args, name) for name in ServiceCreate.model_fields}
    lists = {name: fields[name] or [] for name in ("resource_ids", "images", "tags")}
    with deadline.side_by_side() as start:
        number = start(lambda: services.number_at_end(ctx.workspace_id))
        values = _to_attributes(ctx, fields | lists)
    overrides = values.pop("resource_overrides") or ()
    service = SERVICES.new(ctx.workspace_id, sort_order=number.result(), **values)
    _override(service, overrides)
    ctx.unit.create(service)
    _warn_of_payment(ctx, service)
    return service


@operation(
    tool=True,
    rest="POST /api/services/update",
    scope=Scope.SERVICES_WRITE,
    open_world=True,
    idempotent=True,
    limit=HEAVY.weighed(record_images.weight_of),
    example={"id": "SERVICE_ID", "bufferAfterMin": 10, "slotStepMin": None},
    errors=(ConflictError, ExternalIdTakenError),
    role=Role.MANAGER,
)
def update_service(ctx: Context, args: ServicePatch) -> ServiceResult:
    """Change a service, or bind it to resources. Bookings keep their duration and price."""
    service = SERVICES.require(ctx.workspace_id, record_id=args.id)
    change(ctx, service, args.changes)
    ctx.unit.save(service)
    return ServiceResult(service=ServiceOut.from_record(service))


_FOUND_BY = ("name", "status")  # what assistants find a business by, if it is listed


def change(ctx: Context, service: ServiceRow, changes: Mapping[str, Any]) -> None:
    """Set attributes of a service, which the caller stages, and stage what they require."""
    if changes.get("site_id", service.site_id) != service.site_id:
        _check_leaving(ctx, service.site_id)
    if service.fixed_starts and changes.get("fixed_starts") is False:
        _require_no_starts(ctx.unit, service)
    descriptions.require_whole(changes.get("description"), stored_text=service.description)
    values = _to_attributes(ctx, changes, service)
    if "resource_ids" in values:
        service.bind(values.pop("resource_ids"))
    if "resource_overrides" in values:
        _override(service, values.pop("resource_overrides"))
    if any(name in values and values[name] != getattr(service, name) for name in _FOUND_BY):
        directory.follow_service(ctx.unit)
    for name, value in values.items():
        setattr(service, name, value)
    if {"require_payment", "price", "resource_overrides"} & changes.keys():
        _warn_of_payment(ctx, service)


def _require_no_starts(unit: UnitOfWork, service: ServiceRow) -> None:
    # The dates would keep their resources from all other services, unseen.
    dated_starts.require_none_added(unit)
    now = epoch_ms(clock.now())
    rows = dated_starts.between(unit.workspace_id, service_id=service.id, first_ms=now)
    if rows:
        msg = (
            f"fixedStarts: the service has {len(rows)} date(s) to come. Remove them first "
            "(POST /api/services/remove-starts)."
        )
        raise ConflictError(msg, key="has_starts")


def _override(service: ServiceRow, overrides: Sequence[ResourceOverrideInput]) -> None:
    for override in overrides:
        if override.resource_id not in service.resource_ids:
            message = (
                f"expected ids of resourceIds, received {override.resource_id}, to which the "
                "service is not bound. Bind it, or leave it out"
            )
            raise ValidationError.of("resourceOverrides", message=message)
    names = {"price": "price", "duration_min": "durationMin"}
    service.override(
        {
            override.resource_id: {
                wire: value
                for name, wire in names.items()
                if (value := getattr(override, name)) is not None
            }
            for override in overrides
        }
    )


def _warn_of_payment(ctx: Context, service: ServiceRow) -> None:
    if service.is_prepaid and merchants.find_current(ctx.workspace_id) is None:
        ctx.warn(
            "requirePayment: no payment provider is set up, so visitors cannot book this service "
            "online and see the phone instead. Set up payments in the console.",
            code=WarningCode.PAYMENTS_NOT_SET_UP,
            field="requirePayment",
        )


def _to_attributes(
    ctx: Context, fields: Mapping[str, Any], service: ServiceRow | None = None
) -> dict[str, Any]:
    # Unknown ids raise an error before images are fetched. The images of an existing service are
    # kept if no new image can be imported.
    values, rows = dict(fields), ctx.unit.rows
    merge_metadata(values, service.metadata if service else None)
    rows.read(_reference_keys(ctx.workspace_id, values))
    if values.get("category_id") is not None:
        kind, category_id = "service", values["category_id"]
        categories.check(ctx.workspace_id, category_id=category_id, kind=kind)
        categories.require(ctx.unit, category_id, kind=kind, on_conflict=categories.not_found(kind))
    if values.get("site_id") is not None:
        key = SITES.key(ctx.workspace_id, record_id=values["site_id"])
        site = SITES.found(rows.find(SiteRow, key))
        ctx.unit.require(site, on_conflict=SITES.not_found())
    if values.get("agent_id") is not None:
        key = AGENTS.key(ctx.workspace_id, record_id=values["agent_id"])
        agent = AGENTS.found(rows.find(AgentRow, key))
        ctx.unit.require(agent, on_conflict=AGENTS.not_found())
    if "resource_ids" in values:
        binding.require_resources(ctx, values["resource_ids"])
    if "images" in values:
        new_images = values["images"] or ()
        values["images"] = record_images.import_record_images(
            ctx, new_images, FOLDER, old_images=service.images if service else ()
        )
    return values


def _reference_keys(workspace_id: str, values: Mapping[str, Any]) -> list[Key]:
    nouns = ((SITES, values.get("site_id")), (AGENTS, values.get("agent_id")))
    keys = [
        listing.key(workspace_id, record_id=record_id)
        for listing, record_id in nouns
        if record_id is not None
    ]
    return keys + [
        RESOURCES.key(workspace_id, record_id=resource_id)
        for resource_id in values.get("resource_ids", ())
    ]


def _check_leaving(ctx: Context, site_id: str | None) -> None:
    # Visitors cannot book services of a suspended site.
    site = binding.site_of_service(ctx.workspace_id, site_id)
    if site is None:
        return
    if site.status == SUSPENDED:
        msg = (
            f"siteId: the service cannot leave its site ({site.id}), because the site is "
            "suspended. Omit siteId to change other fields."
        )
        raise ConflictError(msg, key="site_suspended")
    ctx.unit.require(site, SiteRow.pk.exists() & (SiteRow.status != SUSPENDED))
