"""Define the items of an upsert, which have the values of a product with its SKU or its id."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.core.text import line_fold
from chalicelib.core.wire.batch_items import InvalidItem
from chalicelib.core.wire.external_data import (
    MAX_EXTERNAL_ID,
    METADATA,
    ExternalId,
    NewMetadata,
)
from chalicelib.core.wire.money import Amount
from chalicelib.core.wire.schema import (
    Id,
    Partial,
    Pattern,
    SortOrder,
    has_at_least_one,
    optional,
)
from chalicelib.domains.catalog.operations.products import (
    MAX_SKU,
    BarcodeText,
    Description,
    Name,
    Sku,
    Status,
    Stock,
)
from chalicelib.domains.files.flows.record_images import Images


class ProductItem(Partial):
    """Values of a product. Omitted fields stay as they are."""

    name: Name = optional("Name; a new product needs it.")
    price: Amount = optional("In minor units (kopecks); a new product needs it.")
    description: Description | None = optional("Description.")
    stock: Stock | None = optional("Pieces; empty: not tracked.")
    category_id: Id | None = optional("Product category id.")
    images: Images | None = optional("Replaces all.")
    barcode: BarcodeText | None = optional("8 or 12-14 digits.")
    status: Status = optional("inactive hides it; a new one is active if omitted.")
    sort_order: SortOrder = optional("Position in the list; a new one is last if omitted.")
    metadata: NewMetadata = METADATA


class UpsertItem(ProductItem):
    """A product by its id in the caller's system or its SKU. Omitted fields stay as they are."""

    AT_LEAST_ONE_OF = ("sku", "external_id")

    sku: Sku = optional("SKU, ignoring case; it names the product if no product has externalId.")
    external_id: ExternalId = optional("Id in your system, which names the product.")

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if not has_at_least_one(self):
            message = "is required, unless you send externalId"
            raise PydanticCustomError("required", message, {"field": "sku"})
        return self


class ItemById(ProductItem):
    """A product by its id. Omitted fields stay as they are."""

    id: Annotated[str, Pattern("[0-9A-HJKMNP-TV-Z]{26}", "the id of a product")] = Field(
        description="Id of the product; a new one gets it."
    )
    sku: Sku = optional("SKU that the product gets.")
    external_id: ExternalId = optional("Id in your system that the product gets.")


Item = UpsertItem | ItemById


def keys_of(item: Item | InvalidItem) -> list[tuple[str, str]]:
    """Return the keys that name an item's product: its id, or its externalId and normalized SKU."""
    if isinstance(item, ItemById):
        return [("id", item.id)]
    keys = [("external_id", external_id_of(item)), ("sku", line_fold(sku_of(item)))]
    return [key for key in keys if key[1]]


def sku_of(item: Item | InvalidItem) -> str:
    """Return the SKU of an item as it was sent, or an empty string."""
    return item.text(MAX_SKU, "sku") if isinstance(item, InvalidItem) else item.sku or ""


def external_id_of(item: Item | InvalidItem) -> str:
    """Return the externalId of an item as it was sent, or an empty string."""
    if isinstance(item, InvalidItem):
        return item.text(MAX_EXTERNAL_ID, "externalId")
    return item.external_id or ""
