"""Let the owner switch the public booking page, and choose the services that it offers."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field

from chalicelib.application.context import Context
from chalicelib.core.errors import ConflictError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings as core_settings
from chalicelib.core.wire.lists import Pagination
from chalicelib.core.wire.schema import (
    Id,
    PageNumber,
    Patch,
    SearchText,
    Wire,
    optional,
)
from chalicelib.domains.booking_page.flows import directory_listing, open_page
from chalicelib.domains.booking_page.store.page_settings import BookingPageRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.payments.store import merchants
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Rows
from chalicelib.lib.contact_fields import PhoneText

MAX_OFFERED = 100  # on a booking page
SIZE = 50  # on a page of the list from which the owner chooses


def _unique(ids: list[str]) -> list[str]:
    return list(dict.fromkeys(ids))


ServiceIds = Annotated[list[Id], Field(max_length=MAX_OFFERED), AfterValidator(_unique)]


class BookingPageService(Wire):
    """A service, and whether the booking page offers it."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name of the service.")
    duration_min: int = Field(description="Length in minutes.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")
    status: str = Field(description="active or inactive. An inactive service is not shown.")
    by_phone: bool = Field(description="Whether visitors see the phone instead of times.")
    is_offered: bool = Field(description="Whether the page offers it.")

    @classmethod
    def from_record(
        cls, service: ServiceRow, settings: BookingPageRow, *, takes_payments: bool
    ) -> Self:
        return cls.from_row(
            service.values,
            by_phone=service.is_prepaid and not takes_payments,
            is_offered=service.id in settings.service_ids,
        )


class BookingPageQuery(Wire):
    """Search and page of the list of services."""

    q: SearchText | None = optional("Part of a service's name.")
    page: PageNumber = Field(default=1, description="Page, from 1.")


class BookingPageSettings(Wire):
    """The switches of the booking page."""

    slug: str = Field(description="The workspace's slug, which the address contains.")
    url: str = Field(description="URL of the page.")
    is_on: bool = Field(description="Whether visitors can open the page.")
    is_indexed: bool = Field(description="Whether search engines may list it.")
    phone: str | None = Field(description="Phone that it shows, or null.")
    offered: int = Field(description="Number of services that it offers.")

    @classmethod
    def from_record(cls, workspace_id: str, settings: BookingPageRow) -> Self:
        # Deleted services do not count.
        slug = workspaces.get(workspace_id).slug
        return cls(
            slug=slug,
            url=f"{core_settings().public_url}{open_page.PATH}/{slug}",
            is_on=settings.is_on,
            is_indexed=settings.is_indexed,
            phone=settings.phone,
            offered=len(SERVICES.fetch(workspace_id, settings.service_ids)),
        )


class BookingPageResult(Wire):
    """The switches of the booking page."""

    booking_page: BookingPageSettings = Field(description="The booking page.")


class BookingPageDetails(BookingPageResult):
    """The switches of the booking page, and the services to choose from."""

    services: list[BookingPageService] = Field(description="Services, in their order.")
    pagination: Pagination = Field(description="Which page of how many services.")


class BookingPagePatch(Patch):
    """Changes to the booking page."""

    is_on: bool = optional("Whether visitors can open the page.")
    is_indexed: bool = optional("Whether search engines may list it.")
    phone: PhoneText | None = optional("Phone that it shows; null: none.")
    offer: ServiceIds = optional("Services to offer, besides those that it offers.")
    withdraw: ServiceIds = optional("Services not to offer any more.")


@operation(
    title="Get the booking page",
    rest="GET /api/booking-page",
    scope=Scope.SETTINGS_READ,
    role=Role.MEMBER,
    example={},
)
def get_booking_page(ctx: Context, args: BookingPageQuery) -> BookingPageDetails:
    """Return the switches of the booking page, and the services from which to choose."""
    settings = BookingPageRow.read(ctx.workspace_id)
    query = Query(
        page=args.page,
        size=SIZE,
        sort="sortOrder",
        descending=False,
        search=args.q,
        charge=ctx.charge,
    )
    page = SERVICES.page(ctx.workspace_id, query)
    takes_payments = any(service.is_prepaid for service in page.records) and (
        merchants.find_current(ctx.workspace_id) is not None
    )
    return BookingPageDetails(
        booking_page=BookingPageSettings.from_record(ctx.workspace_id, settings),
        services=[
            BookingPageService.from_record(service, settings, takes_payments=takes_payments)
            for service in page.records
        ],
        pagination=Pagination(total=page.total, page=args.page, size=SIZE, limit=SIZE),
    )


@operation(
    title="Set up the booking page",
    rest="POST /api/booking-page/update",
    scope=Scope.SETTINGS_WRITE,
    role=Role.MANAGER,
    idempotent=True,
    example={"isOn": True, "offer": ["SERVICE_ID"]},
    errors=(ConflictError,),
)
def set_booking_page(ctx: Context, args: BookingPagePatch) -> BookingPageResult:
    """Switch the booking page on or off, and choose what it offers. Omitted fields stay."""
    rows = Rows()
    rows.read(directory_listing.keys(ctx.workspace_id))
    settings = BookingPageRow.read(ctx.workspace_id, rows)
    changes = args.changes
    for name in ("is_on", "is_indexed", "phone"):
        if name in changes:
            setattr(settings, name, changes[name])
    settings.service_ids = _offer_services(ctx, settings, args)
    ctx.unit.save(settings)
    directory_listing.stage(ctx.unit, rows, page=settings)
    ctx.unit.mention(f"workspace:{ctx.workspace_id}")
    changed = BookingPageSettings.from_record(ctx.workspace_id, settings)
    return BookingPageResult(booking_page=changed)


def _offer_services(ctx: Context, settings: BookingPageRow, args: BookingPagePatch) -> list[str]:
    # If the page is full, ids of deleted services are dropped.
    withdrawn = set(args.changes.get("withdraw", ()))
    added_ids = [
        service_id
        for service_id in args.changes.get("offer", ())
        if service_id not in settings.service_ids
    ]
    kept_ids = [service_id for service_id in settings.service_ids if service_id not in withdrawn]
    if len(SERVICES.fetch(ctx.workspace_id, added_ids)) < len(added_ids):
        raise SERVICES.not_found()
    offered_ids = [
        *kept_ids,
        *(service_id for service_id in added_ids if service_id not in withdrawn),
    ]
    if len(offered_ids) > MAX_OFFERED:
        offered_ids = [service.id for service in SERVICES.fetch(ctx.workspace_id, offered_ids)]
    if len(offered_ids) > MAX_OFFERED:
        msg = (
            f"The booking page already offers the maximum of {MAX_OFFERED} services. Remove "
            "another service from the page first."
        )
        raise ConflictError(msg, key="too_many_services", details={"maximum": MAX_OFFERED})
    return offered_ids
