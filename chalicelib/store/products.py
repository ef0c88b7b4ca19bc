"""Products: rows, their listing, what is unique among them, and the look-up by barcode."""

from collections.abc import Collection
from typing import Any

from pynamodb.attributes import (
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.core.unit import Unit
from chalicelib.rules import barcodes, ordering
from chalicelib.rules.ordering import Place
from chalicelib.store.claims import LocalClaimRow, local_claim, name_hash
from chalicelib.store.listing import Listing, SortIndex
from chalicelib.store.tables import ContentRow, Record
from chalicelib.store.unit import listed

IN_ORDER = SortIndex("sortOrder")
ORDER_LOCK = "product-order"
"""The lock row of putting products in an order (``store.locks``)."""


class ImageMap(MapAttribute[str, Any]):
    """A re-hosted image: its file, public URL, and size in pixels."""

    file_id = UnicodeAttribute()
    url = UnicodeAttribute()
    width = NumberAttribute()
    height = NumberAttribute()


class ProductRow(Record):
    """A product.

    ``price`` is in kopecks; ``stock`` is None if it is not tracked; ``sort_order`` is sparse, so
    that a product moves without its neighbours being rewritten.
    """

    name = UnicodeAttribute()
    price = NumberAttribute()
    description = UnicodeAttribute(null=True)
    sku = UnicodeAttribute(null=True)
    barcode = UnicodeAttribute(null=True)
    stock = NumberAttribute(null=True)
    category_id = UnicodeAttribute(null=True)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)
    status = UnicodeAttribute()
    sort_order = NumberAttribute()


PRODUCTS = listed(
    Listing(
        ProductRow,
        "PRODUCT",
        text=lambda product: (product.name, product.sku or ""),
        status="status",
        facets=("category_id",),
        counted=("category_id",),
        numbers=("price", "sort_order"),
        sorts={"sortOrder": "n2", "createdAt": "id", "price": "n1", "name": "t"},
        orders=(
            IN_ORDER,
            SortIndex("price"),
            SortIndex("name"),
            SortIndex("sortOrder", partition_by="status"),
        ),
    )
)


def sku_claim(workspace_id: str, sku: str, product_id: str) -> LocalClaimRow:
    """Return the claim on an SKU, unique within the workspace, compared as all texts are."""
    return local_claim(workspace_id, "sku", name_hash(sku), product_id)


class BarcodeRow(ContentRow):
    """Leads from a barcode, as GTIN-14, to a product that has it; several may."""


def _barcode_row(workspace_id: str, gtin14: str, product_id: str) -> BarcodeRow:
    return BarcodeRow(f"W#{workspace_id}#BARCODE", f"{gtin14}#{product_id}")


def with_barcode(workspace_id: str, gtin14: str) -> ProductRow | None:
    """Return the oldest product with a barcode, whichever of its forms it was given in, or None."""
    key = _barcode_row(workspace_id, gtin14, "")
    found = BarcodeRow.partition(
        key.pk, range_key_condition=BarcodeRow.sk.startswith(key.sk), limit=1
    )
    return PRODUCTS.find(workspace_id, found[0].sk.removeprefix(key.sk)) if found else None


Names = dict[str, ContentRow]
"""The rows that lead to a product by what it is called: its SKU's claim, its barcode's row."""


def names(workspace_id: str, product: ProductRow) -> Names:
    """Return the rows that a product's SKU and barcode ask for."""
    rows: list[ContentRow] = []
    if product.sku:
        rows.append(sku_claim(workspace_id, product.sku, product.id))
    if product.barcode:
        gtin14 = barcodes.gtin14(product.barcode)
        rows.append(_barcode_row(workspace_id, gtin14, product.id))
    return {row.sk: row for row in rows}


def rename(unit: Unit, before: Names, after: Names, *, sku_taken: AppError) -> None:
    """Stage the change from one set of names to another."""
    for key in before.keys() - after.keys():
        unit.delete(before[key])
    for key in after.keys() - before.keys():
        row = after[key]
        unit.create(row, on_conflict=sku_taken if isinstance(row, LocalClaimRow) else None)


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new product last."""
    last = PRODUCTS.along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0


def number_after(workspace_id: str, product: ProductRow) -> int:
    """Return the sort order that puts a new product behind another.

    Right behind it, as long as there is room; else its own, so that the newer id comes later.
    """
    after = PRODUCTS.along(workspace_id, IN_ORDER, 1, after=product)
    number = int(product.sort_order)
    room = ordering.between(number, after[0].number if after else None, 1)
    return room[0] if room else number


def first_besides(workspace_id: str, ids: Collection[str], category_id: str | None) -> Place | None:
    """Return the first place of another product than these, in a category or in all."""
    if category_id is None:
        places = PRODUCTS.along(workspace_id, IN_ORDER, len(ids) + 1)
    else:
        rows = PRODUCTS.compact(workspace_id, category_id=category_id)
        places = [Place(row.numbers[1], row.id) for row in rows]
    return min((place for place in places if place.id not in ids), default=None)


def require_unchanged(unit: Unit, product: ProductRow) -> None:
    """Demand that a product is at commit as it was read."""
    unit.require(product, ProductRow.version == product.version)


class StockRow(ContentRow):
    """A product as a change of its stock alone writes it, whoever else changes it meanwhile."""

    stock = NumberAttribute(null=True)
    version = NumberAttribute()
    updated_at = UTCDateTimeAttribute()


def add_stock(unit: Unit, product: ProductRow, delta: int, *, least: int, most: int) -> None:
    """Stage an addition to a product's stock, if by then it lies within bounds.

    If it does not, or is not tracked any more, the operation begins again, and so do other writers
    that read the product before.
    """
    unit.update(
        StockRow(product.pk, product.sk),
        [
            StockRow.stock.add(delta),
            StockRow.version.add(1),
            StockRow.updated_at.set(clock.now()),
        ],
        StockRow.stock.between(least, most),
    )
