"""Operations that list, read, create, update and delete products."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application import descriptions
from chalicelib.application.context import Context
from chalicelib.application.descriptions import MAX_FULL, Descriptions
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.errors import AppError, ConflictError, ExternalIdTakenError, call
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
from chalicelib.core.wire.lists import NO_SORT_BY_UPDATE, ListQuery, ListResult
from chalicelib.core.wire.money import Amount
from chalicelib.core.wire.schema import (
    RECEIVED,
    DeletedResult,
    Id,
    Patch,
    SearchText,
    SortOrder,
    Timestamp,
    Wire,
    optional,
    printable,
    require_ordered_bounds,
)
from chalicelib.domains.catalog.flows import stock
from chalicelib.domains.catalog.flows.stock import MAX_STOCK
from chalicelib.domains.catalog.rules.barcode_input import InvalidBarcodeError, read_barcode
from chalicelib.domains.catalog.store import categories, products
from chalicelib.domains.catalog.store.products import (
    PRODUCTS,
    InsufficientStockError,
    ProductRow,
    SkuTakenError,
)
from chalicelib.domains.files.flows import record_images
from chalicelib.domains.files.flows.record_images import ImageOut, Images
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import barcodes

KEPT_AFTER_DELETION = timedelta(days=30)
MAX_SKU = 64
FOLDER = "products"  # Folder of product images.
# Default directions of the sorts that do not ascend by default.
_DIRECTIONS = {"createdAt": "desc"}

Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=255),
    AfterValidator(printable),
]
Description = Annotated[str, StringConstraints(max_length=20_000)]
Sku = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SKU),
    AfterValidator(printable),
]
BarcodeText = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Stock = Annotated[int, Field(ge=0, le=MAX_STOCK)]
StockDelta = Annotated[int, Field(ge=-MAX_STOCK, le=MAX_STOCK)]
Status = Literal["active", "inactive"]


class ProductRef(Wire):
    """Reference to a product."""

    id: Id = Field(description="Product id.")


class ProductOut(ProductRef):
    """A product."""

    name: str = Field(description="Name of the product.")
    price: int = Field(description="Price in minor units of the workspace's currency (kopecks).")
    description: str | None = Field(description="Description, or null.")
    description_truncated: bool = Field(description=descriptions.TRUNCATED)
    sku: str | None = Field(description="Stock-keeping unit, unique in the workspace, or null.")
    barcode: str | None = Field(description="Barcode digits, or null.")
    stock: int | None = Field(description="Pieces in stock, or null if not tracked.")
    category_id: Id | None = Field(description="Category id, or null.")
    images: list[ImageOut] = Field(description="Images, the main one first.")
    status: str = Field(description="active or inactive.")
    sort_order: int = Field(description="Position among all products, ascending.")
    external_id: str | None = EXTERNAL_ID_OUT
    metadata: Metadata = METADATA_OUT
    created_at: Timestamp = Field(description="When it was created.")
    updated_at: Timestamp = Field(description="When it was last changed.")

    @classmethod
    def from_record(cls, product: ProductRow, **overrides: Any) -> Self:  # noqa: ANN401  fields of any type
        # ``overrides`` replace stored values.
        return cls.from_row(product.values, **{"description_truncated": False, **overrides})


class ProductResult(Wire):
    """One product."""

    product: ProductOut = Field(description="The product.")


class ProductListQuery(ListQuery):
    """Filters and sorting for listing products."""

    q: SearchText | None = optional("Searches name and SKU.")
    status: Literal["active", "inactive", "all"] = Field(default="all", description="Status.")
    category_id: Id | None = optional("Category id.")
    subcategories: bool = Field(default=False, description="Include subcategories.")
    sku: Sku | None = optional("Exact SKU.")
    barcode: BarcodeText | None = optional("Exact barcode.")
    min_price: Amount | None = optional("Minimum, in minor units (kopecks).")
    max_price: Amount | None = optional("Maximum, in minor units (kopecks).")
    in_stock: bool | None = optional("true: stock above 0 or not tracked; false: sold out.")
    max_stock: Stock | None = optional("Only tracked stock up to this number.")
    sort: Annotated[
        Literal["sortOrder", "createdAt", "price", "name", "updatedAt"], NO_SORT_BY_UPDATE
    ] = Field(default="sortOrder", description="Sort key; sortOrder: manual order.")
    sort_dir: Literal["asc", "desc"] | None = optional("Default: desc for createdAt, else asc.")
    external_id: NewExternalId = BY_EXTERNAL_ID
    descriptions: Descriptions | None = optional(f"full: uncut; size to {MAX_FULL}.")

    @model_validator(mode="after")
    def _check_price_range(self) -> Self:
        require_ordered_bounds(self, "min_price", upper="max_price")
        return self


class ProductList(ListResult):
    """One page of products."""

    products: list[ProductOut] = Field(description="The products of this page.")


class ProductCreate(Wire):
    """A new product."""

    name: Name = Field(description="Name.")
    price: Amount = Field(description="In minor units of the workspace's currency (kopecks).")
    description: Description | None = optional("Description.")
    sku: Sku | None = optional("Unique SKU.")
    stock: Stock | None = optional("Pieces; empty: not tracked.")
    category_id: Id | None = optional("Category id.")
    images: Images | None = optional("The main one first.")
    barcode: BarcodeText | None = optional("8 or 12-14 digits.")
    status: Status = Field(default="active", description="inactive hides it.")
    external_id: NewExternalId = EXTERNAL_ID
    metadata: NewMetadata = METADATA


class ProductPatch(Patch, ProductCreate, ProductRef):
    """Changes to a product."""

    stock_delta: StockDelta = optional("Pieces to add; negative removes.")
    category_id: Id | None = optional("Category id.")
    images: Images | None = optional("Replaces all.")
    sort_order: SortOrder = optional("Position in the list.")

    @model_validator(mode="after")
    def _check_one_stock_field(self) -> Self:
        if {"stock", "stock_delta"} <= self.model_fields_set:
            raise PydanticCustomError(
                "not_together",
                "expected stock or stockDelta, received both; send one of them",
                {RECEIVED: True},
            )
        return self


class ProductDelete(ProductRef):
    """Arguments of a product's deletion."""

    dry_run: bool = Field(default=False, description="Only report.")


def stage_deletion(unit: UnitOfWork, product: ProductRow) -> None:
    """Stage a product's deletion, which frees SKU and barcode. The row is kept for a month."""
    unit.soft_delete(product, until=clock.now() + KEPT_AFTER_DELETION)


@operation(
    tool=True,
    rest="GET /api/products/list",
    scope=Scope.PRODUCTS_READ,
    example={"q": "loa", "sort": "price", "status": "active"},
    errors=(InvalidBarcodeError,),
    role=Role.MEMBER,
)
def list_products(ctx: Context, args: ProductListQuery) -> ProductList:
    """List products. Long descriptions are cut."""
    descriptions.check_size(args.descriptions, args.size)
    query = PRODUCTS.query(
        args,
        sort=args.sort,
        descending=(args.sort_dir or _DIRECTIONS.get(args.sort, "asc")) == "desc",
        filters={"category_id": _category_filter(ctx, args)},
        lookups={"sku": args.sku, "barcode": _gtin14(args.barcode)},
        ranges={"price": (args.min_price, args.max_price), "available": _stock_range(args)},
        search=args.q,
        charge=ctx.charge,
    )
    page = PRODUCTS.page(ctx.workspace_id, query)
    if args.descriptions == "full":
        records = list(map(ProductOut.from_record, page.records))
    else:
        remedy = f"list with descriptions=full, or get the product ({call('svc_get_product')})"
        records = descriptions.shortened(
            ctx, page.records, ProductOut.from_record, noun="product", remedy=remedy
        )
    return ProductList(products=records, **args.counted(page.total))


def _stock_range(args: ProductListQuery) -> tuple[int | None, int | None]:
    minimum = 1 if args.in_stock else None
    maximum = args.max_stock if args.in_stock is not False else 0
    return minimum, maximum


def _category_filter(ctx: Context, args: ProductListQuery) -> str | list[str] | None:
    if args.category_id is None or not args.subcategories:
        if args.subcategories:
            ctx.warn(
                "subcategories was ignored, because it requires categoryId.",
                code=WarningCode.FIELD_IGNORED,
                field="subcategories",
            )
        return args.category_id
    return categories.subtree_ids(ctx.workspace_id, category_id=args.category_id, kind="product")


@operation(
    tool=True,
    rest="GET /api/products/{id}",
    scope=Scope.PRODUCTS_READ,
    example={"id": "PRODUCT_ID"},
    role=Role.MEMBER,
)
def get_product(ctx: Context, args: ProductRef) -> ProductResult:
    """Return one product, its whole description included."""
    return ProductResult(
        product=ProductOut.from_record(PRODUCTS.require(ctx.workspace_id, record_id=args.id))
    )


@operation(
    tool=True,
    rest="POST /api/products/create",
    scope=Scope.PRODUCTS_WRITE,
    open_world=True,
    limit=HEAVY.weighed(record_images.weight_of),
    example={"name": "Rye roll", "price": 4500, "categoryId": "CATEGORY_ID"},
    errors=(ExternalIdTakenError, InvalidBarcodeError, SkuTakenError),
    role=Role.MANAGER,
)
def create_product(ctx: Context, args: ProductCreate) -> ProductResult:
    """Create a product, last in the order.

    If an image cannot be imported, the result has a warning.
    """
    values = to_attributes(ctx, args.provided() | {"status": args.status})
    number = products.number_at_end(ctx.workspace_id)
    product = PRODUCTS.new(ctx.workspace_id, sort_order=number, **values)
    advice = (
        f"Change that product instead ({call('svc_update_product')}), or send another SKU, "
        "or no SKU."
    )
    ctx.unit.create(product, claim_errors=_sku_taken_error(ctx, product, advice))
    return ProductResult(product=ProductOut.from_record(product))


@operation(
    tool=True,
    rest="POST /api/products/update",
    scope=Scope.PRODUCTS_WRITE,
    open_world=True,
    limit=HEAVY.weighed(record_images.weight_of),
    example={"id": "PRODUCT_ID", "price": 10_500, "stockDelta": -2},
    errors=(
        ConflictError,
        ExternalIdTakenError,
        InsufficientStockError,
        InvalidBarcodeError,
        SkuTakenError,
    ),
    role=Role.MANAGER,
)
def update_product(ctx: Context, args: ProductPatch) -> ProductResult:
    """Change a product. stockDelta changes the stock atomically; it cannot fall below 0."""
    product = PRODUCTS.require(ctx.workspace_id, record_id=args.id)
    changes = args.changes
    delta = changes.pop("stock_delta", None)
    if delta is not None:
        stock.check_change(product, delta)
    if delta is not None and not changes:
        stock.stage_change(ctx, product, delta)
        return ProductResult(product=ProductOut.from_record(product))
    descriptions.require_whole(changes.get("description"), stored_text=product.description)
    for name, value in to_attributes(ctx, changes, product).items():
        setattr(product, name, value)
    if delta is not None:
        product.stock += delta
    advice = "Send another SKU, or null for no SKU."
    ctx.unit.save(product, claim_errors=_sku_taken_error(ctx, product, advice))
    return ProductResult(product=ProductOut.from_record(product))


@operation(
    tool=True,
    rest="POST /api/products/delete",
    scope=Scope.PRODUCTS_WRITE,
    example={"id": "PRODUCT_ID"},
    role=Role.MANAGER,
)
def delete_product(ctx: Context, args: ProductDelete) -> DeletedResult:
    """Delete a product and free its SKU. Its images are kept in the files."""
    stage_deletion(ctx.unit, PRODUCTS.require(ctx.workspace_id, record_id=args.id))
    return DeletedResult(id=args.id, deleted=not args.dry_run)


def to_attributes(
    ctx: Context, values_sent: Mapping[str, Any], product: ProductRow | None = None
) -> dict[str, Any]:
    """Return the attributes to store, after the images have been imported.

    The commit fails if the category does not exist any more. The images of an existing ``product``
    are kept if no new one can be imported.
    """
    values = dict(values_sent)
    merge_metadata(values, product.metadata if product else None)
    if values.get("barcode") is not None:
        values["barcode"] = read_barcode(values["barcode"]).digits
    if values.get("category_id") is not None:
        category_id = values["category_id"]
        if values.get("images"):  # report an unknown id before any fetch
            categories.check(ctx.workspace_id, category_id=category_id, kind="product")
        categories.require(
            ctx.unit, category_id, kind="product", on_conflict=categories.not_found("product")
        )
    if "images" in values:
        requested = values["images"] or ()
        values["images"] = record_images.import_record_images(
            ctx, requested, FOLDER, old_images=product.images if product else ()
        )
    return values


def _gtin14(text: str | None) -> str | None:
    return None if text is None else barcodes.gtin14(read_barcode(text).digits)


def _sku_taken_error(
    ctx: Context, product: ProductRow, advice: str
) -> dict[str, Callable[[str], AppError]]:
    def error(holder: str) -> AppError:
        other_product = PRODUCTS.find(ctx.workspace_id, record_id=holder)
        sku = other_product.sku if other_product else product.sku
        same = "" if sku == product.sku else f', which is the same as "{product.sku}"'
        msg = f'The product {holder} has the SKU "{sku}"{same}. {advice}'
        return SkuTakenError(msg, product_id=holder)

    return {"sku": error}
