"""Let pages of any origin read the business, its services and its products, without a key."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.lists import ListResult, PageQuery
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.booking_page.flows import open_page
from chalicelib.domains.booking_page.flows.open_page import OpenPage, Slug
from chalicelib.domains.booking_page.rules import advertising_texts
from chalicelib.domains.bookings.flows.advance import OfferOut
from chalicelib.domains.catalog.store import categories
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.files.store.files import ImageMap
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.domains.sites.store import sites
from chalicelib.engine import workspace_currency
from chalicelib.engine.listing.query import Query
from chalicelib.lib import extracts, shortening
from chalicelib.lib.localized import LANGUAGES, Language
from chalicelib.lib.zoned_times import WEEKDAYS

READS = Limit(
    "public-reads", "reads of public records per minute", 120, timedelta(minutes=1), fails_open=True
)
MAX_DESCRIPTION = 600  # characters


class PublicRef(Wire):
    """A workspace whose booking page or site is on."""

    workspace: Slug = Field(description="Slug of the workspace.")


class PublicListQuery(PublicRef, PageQuery):
    """A page of a list of a workspace."""


class PublicImage(Wire):
    """An image."""

    url: str = Field(description="URL of the image.")
    width: int = Field(description="Width in pixels.")
    height: int = Field(description="Height in pixels.")

    @classmethod
    def several(cls, images: Sequence[ImageMap]) -> list[Self]:
        return [cls.from_row(image.attribute_values) for image in images]


class PublicHours(Wire):
    """Opening hours of consecutive weekdays."""

    weekdays: list[str] = Field(description="mon to sun.")
    start: str = Field(description="HH:MM.")
    end: str = Field(description="HH:MM, on the next day if at or before start.")


class AdvertisingTextOut(Wire):
    """A text by which a visitor agrees to e-mail that advertises."""

    language: Language = Field(description="ru or en.")
    text: str = Field(description="The text.")
    version: str = Field(
        description="Send it as advertisingVersion of a booking if the visitor has ticked the box."
    )


class PublicBusiness(Wire):
    """A business, as visitors see it."""

    name: str = Field(description="Name of the workspace.")
    phone: str | None = Field(description="Phone of the booking page, or null.")
    address: str | None = Field(description="Address of the booking page, or null.")
    logo_url: str | None = Field(description="URL of the logo, or null.")
    accent: str | None = Field(description="Name of the colour of the booking page, or null.")
    timezone: str = Field(description="IANA zone of the hours.")
    currency: str = Field(description="Currency of all prices (ISO 4217).")
    languages: list[Language] = Field(description="Languages of the booking page.")
    hours: list[PublicHours] = Field(description="Weekly hours in which any of the staff works.")
    booking_url: str | None = Field(description="URL of the booking page, or null if it is off.")
    advertising_texts: list[AdvertisingTextOut] = Field(
        description="What visitors may agree to when they book, for services with "
        "asksForAdvertising. Show one beside a box that is not ticked."
    )

    @classmethod
    def from_record(cls, page: OpenPage) -> Self:
        workspace, is_on = page.workspace, page.settings.is_on
        return cls(
            name=workspace.name,
            # Only the booking page shows these.
            phone=page.settings.phone or workspace.phone if is_on else None,
            address=workspace.address if is_on else None,
            accent=workspace.accent if is_on else None,
            logo_url=workspace.logo_url,
            timezone=workspace.timezone,
            currency=workspace.currency,
            languages=list(LANGUAGES),
            hours=[
                PublicHours(weekdays=list(WEEKDAYS[first : last + 1]), start=start, end=end)
                for first, last, spans in page.hours
                for start, end in open_windows.intervals(spans)
            ],
            booking_url=page.url,
            advertising_texts=[
                AdvertisingTextOut(**advertising_texts.text(language, workspace.name)._asdict())
                for language in LANGUAGES
            ],
        )


class PublicBusinessResult(Wire):
    """The business of a workspace."""

    business: PublicBusiness = Field(description="The business.")


class PublicService(OfferOut):
    """A service, as visitors see it."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name of the service.")
    description: str | None = Field(description="Its beginning as plain text, or null.")
    images: list[PublicImage] = Field(description="Images, the main one first.")
    booking_url: str | None = Field(description="URL of its booking page, or null.")
    asks_for_advertising: bool = Field(
        description="Whether a booking may say that the visitor agrees to advertising."
    )
    fixed_starts: bool = Field(
        description="Whether it is offered on dates only, whose slots say how many places are left."
    )

    @classmethod
    def from_record(cls, service: ServiceRow, page: OpenPage) -> Self:
        computed = {
            "description": _describe(service.description),
            "images": PublicImage.several(service.images),
            "booking_url": page.url and f"{page.url}/{service.id}",
            "asks_for_advertising": bool(service.book_again_days),
            "fixed_starts": bool(service.fixed_starts),
        }
        return cls.from_row(service.values, **computed, **page.terms_of(service))


class PublicServiceList(ListResult):
    """One page of services."""

    services: list[PublicService] = Field(description="The services of this page, in their order.")
    currency: str = Field(description="Currency of the prices (ISO 4217).")
    timezone: str = Field(description="IANA zone of the workspace.")


class PublicProduct(Wire):
    """A product, as visitors see it."""

    id: Id = Field(description="Product id.")
    name: str = Field(description="Name of the product.")
    description: str | None = Field(description="Its beginning as plain text, or null.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")
    category_id: Id | None = Field(description="Category id, or null.")
    category: str | None = Field(description="Name of the category, or null.")
    images: list[PublicImage] = Field(description="Images, the main one first.")
    in_stock: bool = Field(description="Whether it is in stock. The number is not public.")
    url: str | None = Field(description="URL of its page, or null if no site shows products.")

    @classmethod
    def from_record(
        cls, product: ProductRow, category: str | None, *, products_url: str | None
    ) -> Self:
        return cls.from_row(
            product.values,
            description=_describe(product.description),
            category_id=product.category_id if category else None,
            category=category,
            images=PublicImage.several(product.images),
            in_stock=product.available > 0,
            url=products_url and f"{products_url}/{product.id}",
        )


class PublicProductList(ListResult):
    """One page of products."""

    products: list[PublicProduct] = Field(description="The products of this page, in their order.")
    currency: str = Field(description="Currency of the prices (ISO 4217).")


def _workspace(args: PublicRef) -> str:
    return open_page.workspace_of(args.workspace)


@operation(
    rest="GET /api/public/business",
    title="Read a business",
    audience=PUBLIC,
    resolve=_workspace,
    limit=READS,
    is_cached=True,
    example={"workspace": "WORKSPACE_SLUG"},
)
def get_public_business(ctx: Context, args: PublicRef) -> PublicBusinessResult:
    """Return the name, contacts and weekly hours of a business whose booking page or site is on."""
    page = open_page.open_page_or_site(ctx.workspace_id)
    return PublicBusinessResult(business=PublicBusiness.from_record(page))


@operation(
    rest="GET /api/public/services",
    title="List public services",
    audience=PUBLIC,
    resolve=_workspace,
    limit=READS,
    is_cached=True,
    example={"workspace": "WORKSPACE_SLUG", "size": 10},
)
def list_public_services(ctx: Context, args: PublicListQuery) -> PublicServiceList:
    """List the services that the booking page offers, in their order.

    If the page is off, but a site is on, these are the active services.
    """
    page = open_page.open_page_or_site(ctx.workspace_id, with_hours=False, span=args.rows)
    return PublicServiceList(
        services=[PublicService.from_record(service, page) for service in page.services],
        currency=page.workspace.currency,
        timezone=page.workspace.timezone,
        **args.counted(page.total),
    )


@operation(
    rest="GET /api/public/products",
    title="List public products",
    audience=PUBLIC,
    resolve=_workspace,
    limit=READS,
    is_cached=True,
    example={"workspace": "WORKSPACE_SLUG", "size": 10},
)
def list_public_products(ctx: Context, args: PublicListQuery) -> PublicProductList:
    """List the active products of a workspace whose booking page or site is on, in their order."""
    open_page.require_page_or_site(ctx.workspace_id)
    with deadline.side_by_side() as start:
        names = start(partial(_category_names, ctx.workspace_id))
        reading_url = start(partial(sites.find_products_url, ctx.workspace_id))
        query = Query(
            page=args.page, size=args.size, sort="sortOrder", filters={"status": "active"}
        )
        page = PRODUCTS.page(ctx.workspace_id, query)
    return PublicProductList(
        products=[
            PublicProduct.from_record(
                product,
                names.result().get(product.category_id or ""),
                products_url=reading_url.result(),
            )
            for product in page.records
        ],
        currency=workspace_currency.currency_of(ctx.workspace_id),
        **args.counted(page.total),
    )


def _category_names(workspace_id: str) -> dict[str, str]:
    return {row.id: row.name for row in categories.read_all(workspace_id)}


def _describe(html: str | None) -> str | None:
    return shortening.truncate(extracts.plain_text(html or "").strip(), MAX_DESCRIPTION) or None
