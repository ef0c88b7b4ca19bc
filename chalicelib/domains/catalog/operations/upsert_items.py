"""Define the items of an upsert, which have the values of a product with its SKU or its id."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from chalicelib.core.text import line_fold
from chalicelib.core.wire.batch_items import InvalidItem
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.schema import Id, Partial, Pattern, SortOrder, optional
from chalicelib.domains.catalog.operations.products import (
    MAX_SKU,
    BarcodeText,
    Description,
    Name,
    Sku,
    Status,
    Stock,
)
from chalicelib.domains.catalog.store.products import SkuTakenError
from chalicelib.domains.files.flows.record_images import Images


class ProductItem(Partial):
    """Values of a product. Omitted fields stay as they are."""

    name: Name = optional("Name; a new product needs it.")
    price: Kopecks = optional("In kopecks; a new product needs it.")
    description: Description | None = optional("Description.")
    stock: Stock | None = optional("Pieces; empty: not tracked.")
    category_id: Id | None = optional("Product category id.")
    images: Images | None = optional("Replaces all.")
    barcode: BarcodeText | None = optional("8 or 12-14 digits.")
    status: Status = optional("inactive hides it; a new one is active if omitted.")
    sort_order: SortOrder = optional("Position in the list; a new one is last if omitted.")


class UpsertItem(ProductItem):
    """A product by its SKU. Omitted fields stay as they are."""

    sku: Sku = Field(description="SKU of the product, ignoring case; a new one gets it.")


class ItemById(ProductItem):
    """A product by its id. Omitted fields stay as they are."""

    id: Annotated[str, Pattern("[0-9A-HJKMNP-TV-Z]{26}", "the id of a product")] = Field(
        description="Id of the product; a new one gets it."
    )
    sku: Sku = optional("SKU that the product gets.")


Item = UpsertItem | ItemById


def key_of(item: Item | InvalidItem) -> str:
    """Return the key that identifies an item in a call, which is its id or normalized SKU."""
    return item.id if isinstance(item, ItemById) else line_fold(sku_of(item))


def sku_of(item: Item | InvalidItem) -> str:
    """Return the SKU of an item as it was sent, or an empty string."""
    match item:
        case UpsertItem() | ItemById():
            return item.sku or ""
        case InvalidItem():
            return item.text(MAX_SKU, "sku")
        case _:
            return ""


def new_sku(item: Item, holders: Mapping[str, str]) -> dict[str, str]:
    """Return the SKU that an item gives to the product with its id, or nothing.

    ``holders`` has the ids of products by SKU. Raises SkuTakenError if another product has it.
    """
    if not isinstance(item, ItemById) or item.sku is None:
        return {}
    if (holder := holders.get(item.sku, item.id)) != item.id:
        msg = "Another product has this SKU, ignoring case. Send another SKU."
        raise SkuTakenError(msg, product_id=holder)
    return {"sku": item.sku}
