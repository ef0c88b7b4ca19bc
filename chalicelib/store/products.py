"""Products: rows, their listing, and what is unique among them."""

from typing import Any

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute

from chalicelib.store.claims import LocalClaimRow, local_claim
from chalicelib.store.listing import Listing, Order
from chalicelib.store.tables import Record
from chalicelib.store.unit import listed


class ImageMap(MapAttribute[str, Any]):
    """A re-hosted image: its file, public address, and size in pixels."""

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
            Order("sortOrder"),
            Order("price"),
            Order("name"),
            Order("sortOrder", within="status"),
        ),
    )
)


def sku_claim(workspace_id: str, sku: str, product_id: str) -> LocalClaimRow:
    """Return the claim on an SKU, unique within the workspace."""
    return local_claim(workspace_id, "sku", sku, product_id)
