"""Converts Shopify's product export to a plain table of products.

An export has a row for each variant of a product, and further rows for its other images. The first
row of a handle has the values that all variants share. Each variant becomes a separate product.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from chalicelib.domains.files.flows.record_images import MAX_IMAGES
from chalicelib.lib.extracts import plain_text

REQUIRED = frozenset({"Handle", "Title", "Variant SKU", "Variant Price"})
HEADER = (
    *("sku", "name", "price", "description", "stock", "barcode"),
    *("category", "images", "status"),
)
"""The columns of the plain table."""
READ = frozenset(
    {
        *REQUIRED,
        *("Body (HTML)", "Type", "Published", "Status", "Image Src", "Variant Image"),
        *("Variant Inventory Qty", "Variant Barcode"),
        *(f"Option{number} {part}" for number in (1, 2, 3) for part in ("Name", "Value")),
    }
)
"""Shopify's columns that are converted."""
_NO_OPTION = "Default Title"
"""Shopify's name of the only variant of a product without options."""

Cells = Mapping[str, str]


class Line(NamedTuple):
    """A row of the plain table, with its row number in the export."""

    number: int
    cells: list[str]


def is_export(header: Sequence[str]) -> bool:
    """Return whether a table has the columns of Shopify's export."""
    return {name.strip() for name in header} >= REQUIRED


def ignored(header: Sequence[str]) -> list[str]:
    """Return the columns of an export that products have no field for."""
    return [name for name in header if name.strip() and name.strip() not in READ]


def plain(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> list[Line]:
    """Return a row for each variant, in the order of the export."""
    names = [name.strip() for name in header]
    products: dict[str, list[tuple[int, Cells]]] = {}
    for number, values in rows:
        cells = {name: value.strip() for name, value in zip(names, values, strict=False)}
        products.setdefault(cells.get("Handle", ""), []).append((number, cells))
    lines = [line for handle, group in products.items() for line in _variants(handle, group)]
    return sorted(lines)


def _variants(handle: str, rows: Sequence[tuple[int, Cells]]) -> Iterator[Line]:
    shared = next((cells for _, cells in rows if cells.get("Title")), rows[0][1])
    photos = [cells["Image Src"] for _, cells in rows if cells.get("Image Src")]
    variants = [row for row in rows if row[1].get("Variant Price") or row[1].get("Variant SKU")]
    for number, cells in variants or rows[:1]:
        options = _options(cells)
        variant_image = cells.get("Variant Image", "")
        images = dict.fromkeys(filter(None, (variant_image, *photos)))
        yield Line(
            number,
            [
                cells.get("Variant SKU") or "-".join((handle, *options)) * bool(handle),
                " / ".join((shared.get("Title", ""), *options)),
                cells.get("Variant Price", ""),
                plain_text(shared.get("Body (HTML)", "")),
                cells.get("Variant Inventory Qty", ""),
                cells.get("Variant Barcode", "").removeprefix("'"),
                shared.get("Type", ""),
                "|".join(list(images)[:MAX_IMAGES]),
                _status(shared),
            ],
        )


def _options(cells: Cells) -> list[str]:
    values = (cells.get(f"Option{number} Value", "") for number in (1, 2, 3))
    return [value for value in values if value and value != _NO_OPTION]


def _status(shared: Cells) -> str:
    if status := shared.get("Status"):
        return status
    return "inactive" if shared.get("Published", "").lower() == "false" else ""
