"""Duplicate products and change their sort order."""

from functools import partial
from typing import Annotated

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.errors import ConflictError, NotFoundError
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Unique, Wire, optional
from chalicelib.domains.catalog.operations.products import (
    Name,
    ProductOut,
    ProductRef,
    ProductResult,
)
from chalicelib.domains.catalog.store import categories, products
from chalicelib.domains.catalog.store.categories import CATEGORIES, CategoryRow
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.files.flows.record_images import existing_images
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.ordering import SortPosition
from chalicelib.engine.locks import LockRow, lock_key
from chalicelib.engine.reading import fetch

# Maximum number of products in one reorder. One transaction of 100 writes contains them and all
# dependent rows.
MAX_REORDERED = 90
# Largest absolute sort order. Larger numbers are not exact in ``engine.listing.index_entries``.
MAX_SORT_ORDER = 2**52
MAX_NAME = 255
COPY_SUFFIX = " (копия)"
NOT_COPIED = ("sku", "barcode")  # Attributes that a copy does not take over.
UNIQUE_IDS = Unique("every id once")


class ProductDuplicate(ProductRef):
    """Arguments of a product's duplication."""

    name: Name | None = optional("By default the original's with (копия).")


class ProductReorder(Wire):
    """Arguments of a reorder: the products to put first."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_REORDERED), UNIQUE_IDS] = Field(
        description="Products to move, in their new order."
    )
    category_id: Id | None = optional("Put them first within this category.")


class ProductPlace(Wire):
    """Sort order of a product."""

    id: Id = Field(description="Product id.")
    sort_order: int = Field(description="Position among all products, ascending.")


class ProductOrder(Wire):
    """New sort orders of the products."""

    products: list[ProductPlace] = Field(description="The moved products, in their new order.")


@operation(
    tool=True,
    rest="POST /api/products/duplicate",
    scope=Scope.PRODUCTS_WRITE,
    example={"id": "PRODUCT_ID"},
)
def duplicate_product(ctx: Context, args: ProductDuplicate) -> ProductResult:
    """Copy a product. The copy comes next, inactive, without SKU and barcode."""
    source = PRODUCTS.require(ctx.workspace_id, record_id=args.id)
    with deadline.side_by_side() as start:
        numbering = start(partial(products.number_after, ctx.workspace_id, source))
        overrides = {
            "name": args.name or source.name[: MAX_NAME - len(COPY_SUFFIX)] + COPY_SUFFIX,
            "category_id": _require_category(ctx, source),
            "images": existing_images(ctx, source.images),
            "status": "inactive",
            "sort_order": numbering.result(),
        }
    copy = PRODUCTS.new(ctx.workspace_id, **source.copied_values(*NOT_COPIED) | overrides)
    ctx.unit.create(copy)
    return ProductResult(product=ProductOut.from_record(copy))


def _require_category(ctx: Context, source: ProductRow) -> str | None:
    category = source.category_id and CATEGORIES.find(
        ctx.workspace_id, record_id=source.category_id
    )
    if not category:
        return None
    categories.require(ctx.unit, category.id, kind="product")
    return category.id


@operation(
    tool=True,
    rest="POST /api/products/reorder",
    scope=Scope.PRODUCTS_WRITE,
    idempotent=True,
    example={"ids": ["PRODUCT_ID"], "categoryId": "CATEGORY_ID"},
    errors=(ConflictError,),
)
def reorder_products(ctx: Context, args: ProductReorder) -> ProductOrder:
    """Move products to the front, in the given order. All move, or none."""
    products_by_id, lock = _read_products(ctx, args)
    first_other = products.first_position_except(ctx.workspace_id, args.ids, args.category_id)
    positions = [SortPosition(int(products_by_id[i].sort_order), i) for i in args.ids]
    numbers = ordering.first_in_order(positions, first_other)
    if any(abs(number) > MAX_SORT_ORDER for number in numbers.values()):
        raise ConflictError(
            "The first product has the lowest possible sortOrder, so no product can be moved "
            "before it. Raise its sortOrder first.",
            key="lowest_sort_order",
        )
    if numbers:
        ctx.unit.save(lock)
        if args.category_id is not None:
            categories.require(ctx.unit, args.category_id, kind="product")
        for product in products_by_id.values():
            if product.id in numbers:
                product.sort_order = numbers[product.id]
                ctx.unit.save(product)
            else:
                products.require_unchanged(ctx.unit, product)
    moved_products = [
        ProductPlace(id=position.id, sort_order=numbers.get(position.id, position.number))
        for position in positions
    ]
    return ProductOrder(products=moved_products)


def _read_products(ctx: Context, args: ProductReorder) -> tuple[dict[str, ProductRow], LockRow]:
    key = lock_key(ctx.workspace_id, what=products.ORDER_LOCK)
    keys = [key, *(PRODUCTS.key(ctx.workspace_id, record_id=product_id) for product_id in args.ids)]
    if args.category_id is not None:
        keys.append(CATEGORIES.key(ctx.workspace_id, record_id=args.category_id))
    rows = fetch(keys)
    kinds = [row.kind for row in rows if isinstance(row, CategoryRow)]
    if args.category_id is not None and kinds != ["product"]:
        raise categories.not_found("product")
    products_by_id = {
        row.id: row
        for row in rows
        if isinstance(row, ProductRow) and args.category_id in {None, row.category_id}
    }
    if missing := [i for i in args.ids if i not in products_by_id]:
        scope = "workspace" if args.category_id is None else "category"
        msg = f"Nothing was moved: no product of the {scope} has the id {', '.join(missing)}."
        raise NotFoundError(msg, key="product")
    locked = [row for row in rows if isinstance(row, LockRow)]
    return products_by_id, locked[0] if locked else LockRow(key.pk, key.sk)
