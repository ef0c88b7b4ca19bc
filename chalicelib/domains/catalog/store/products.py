"""Store products with unique SKUs, and look them up by barcode."""

from collections.abc import Collection

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
)

from chalicelib.core.errors import ConflictError
from chalicelib.core.text import line_fold
from chalicelib.domains.files.store.files import SHOWN_IMAGES, ImageMap
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.declaration import INDEX_SLOTS, SortIndex
from chalicelib.engine.listing.event_rules import changes_others, is_new
from chalicelib.engine.listing.index_entries import EntryRow, group, partition_of
from chalicelib.engine.listing.index_ranges import IndexRange
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.ordering import SortPosition
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ContentRow, ProgramRecord, changed_now
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import barcodes

IN_ORDER = SortIndex("sortOrder")
IN_ORDER_BY_STATUS = SortIndex("sortOrder", partition_by="status")
# Lock row that serialises changes of the products' sort order (``engine.locks``).
ORDER_LOCK = "product-order"


MAX_SHOWN = 10_000
"""Products of which a site has pages, entries in its sitemap and in its feed: the first ones."""
# Sort value of a product whose stock is not tracked. It is above any real stock.
UNTRACKED = 10**12


class SkuTakenError(ConflictError):
    """Another product of the workspace already has this SKU. ``productId`` is its id."""

    code = "sku_taken"

    def __init__(self, message: str, *, product_id: str) -> None:
        super().__init__(message, details={"productId": product_id})
        self.holder = product_id


class InsufficientStockError(ConflictError):
    """The product's stock would fall below 0. ``stock`` is the current stock."""

    code = "insufficient_stock"

    def __init__(self, message: str, *, stock: float) -> None:
        super().__init__(message, details={"stock": stock})


class ProductRow(ProgramRecord):
    name = UnicodeAttribute()
    price = NumberAttribute()  # in minor units
    description = UnicodeAttribute(null=True)
    sku = UnicodeAttribute(null=True)
    barcode = UnicodeAttribute(null=True)
    stock = NumberAttribute(null=True)  # None if it is not tracked
    category_id = UnicodeAttribute(null=True)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)
    status = UnicodeAttribute()
    # with gaps, so that a product can move without rewriting its neighbours
    sort_order = NumberAttribute()

    @property
    def available(self) -> int:
        """Pieces for sale, or ``UNTRACKED`` if the stock is not tracked, to sort and filter by."""
        return UNTRACKED if self.stock is None else int(self.stock)


# Pieces. An event is emitted when the stock of a product falls to this number or below.
LOW_STOCK = 5
LOW_STOCK_EVENT = "product.low_stock"


def runs_low(stock_before: int | None, *, stock_after: int | None) -> bool:
    """Whether a change of the stock makes it low."""
    return (
        stock_before is not None
        and stock_after is not None
        and stock_after <= LOW_STOCK < stock_before
    )


PRODUCTS = register_listing(
    Listing(
        row=ProductRow,
        noun="PRODUCT",
        listed_by="svc_list_products",
        text=lambda product: (product.name, product.sku or ""),
        status="status",
        facets=("category_id",),
        counted=("category_id",),
        partitioned=("category_id",),
        numbers=("price", "sort_order", "available"),
        price="price",
        events={
            "product.created": is_new,
            "product.updated": changes_others(),
            LOW_STOCK_EVENT: lambda old_row, new_row: (
                old_row is not None and runs_low(old_row.stock, stock_after=new_row.stock)
            ),
        },
        deletion_event="product.deleted",
        sorts={"sortOrder": "n2", "createdAt": "id", "price": "n1", "name": "t"},
        indexes=(
            IN_ORDER,
            SortIndex("price"),
            SortIndex("name"),
            IN_ORDER_BY_STATUS,
        ),
        lookups=(
            Lookup("sku", lambda product: product.sku, unique=True, key=line_fold),
            Lookup("barcode", lambda p: p.barcode and barcodes.gtin14(p.barcode)),
        ),
        files=SHOWN_IMAGES,
        inline_bytes=1400,  # a name and an SKU of any script
    )
)


def find_by_barcode(workspace_id: str, *, gtin14: str) -> ProductRow | None:
    """Return the oldest product with a barcode, stored in any of its forms, or None."""
    product_ids = PRODUCTS.find_by(workspace_id, lookup="barcode", value=gtin14)
    return PRODUCTS.find(workspace_id, record_id=product_ids[0]) if product_ids else None


def drop_deleted(unit: UnitOfWork, product_id: str) -> None:
    """Stage the removal of the stored remains of a deleted product whose id is used again."""
    unit.delete(ContentRow(PRODUCTS.trash(unit.workspace_id), product_id))


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new product last."""
    last = PRODUCTS.read_along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0


def active_ids(workspace_id: str, limit: int, *, skipped: int = 0) -> list[str]:
    """Return ids of active products in their order, without reading the products."""
    index = f"by_{INDEX_SLOTS[PRODUCTS.indexes.index(IN_ORDER_BY_STATUS)]}"
    options = IndexRange(index, group("active")).options(descending=False)
    partition = Partition(PRODUCTS.partition(workspace_id), Cost())
    start = partition.skip(skipped, **options)
    if skipped and start is None:
        return []
    items = partition.items(limit, exclusive_start_key=start, **options)
    return [item["sk"]["S"] for item in items]


def number_after(workspace_id: str, product: ProductRow) -> int:
    """Return the sort order that puts a new product right behind another."""
    next_products = PRODUCTS.read_along(workspace_id, IN_ORDER, 1, last_record=product)
    number = int(product.sort_order)
    free_numbers = ordering.between(
        number, high=next_products[0].number if next_products else None, count=1
    )
    # Without a gap, two products have the same sort order, and the newer id sorts later.
    return free_numbers[0] if free_numbers else number


def first_position_except(
    workspace_id: str, ids: Collection[str], category_id: str | None
) -> SortPosition | None:
    """Return the first position of another product than these, in a category or in all."""
    if category_id is None:
        positions = PRODUCTS.read_along(workspace_id, IN_ORDER, len(ids) + 1)
    else:
        rows = PRODUCTS.entries(workspace_id, category_id=category_id)
        positions = [SortPosition(row.numbers[1], row.id) for row in rows]
    return min((position for position in positions if position.id not in ids), default=None)


def require_unchanged(unit: UnitOfWork, product: ProductRow) -> None:
    """Require that a product does not change before the unit commits."""
    unit.require(product, ProductRow.version == product.version)


class StockRow(ContentRow):
    # A row for a change of a product's stock only. Other attributes may change at the same time.
    stock = NumberAttribute(null=True)
    version = NumberAttribute()


def add_stock(
    unit: UnitOfWork, product: ProductRow, delta: int, *, min_stock: int, max_stock: int
) -> None:
    """Stage an addition to a product's stock, if the stock lies within bounds at commit.

    Otherwise, or if the stock is no longer tracked, the operation is retried. The change raises
    ``version``, so other writers that read the product before are retried, too.
    """
    unit.update(
        StockRow(product.pk, product.sk),
        [
            StockRow.stock.add(delta),
            # The list engine sorts by the copy in ``y1``, which must change with the stock.
            StockRow.y1.set(StockRow.stock + delta),
            StockRow.version.add(1),
            *changed_now(),
        ],
        StockRow.stock.between(min_stock, max_stock),
    )
    # The entry in the partition of the product's category is updated as well.
    if product.category_id is not None:
        noun, category = PRODUCTS.noun, product.category_id
        partition = partition_of(unit.tenant, noun=noun, facet="category_id", value=category)
        unit.update(
            EntryRow(partition, product.id),
            [EntryRow.y1.set((EntryRow.y1 | product.available) + delta)],
            EntryRow.r.exists(),
        )
