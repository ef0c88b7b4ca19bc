"""Write a workspace's products to a table that can be imported again."""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from chalicelib.core.unit import AuditEvent
from chalicelib.domains.catalog.operations.products import ProductOut
from chalicelib.domains.catalog.rules.category_path import path_text
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.imports.flows.category_names import Call, category_paths
from chalicelib.domains.imports.rules.tables.product_table import export_fields
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import ESCAPE, escaped, is_value
from chalicelib.engine import audit
from chalicelib.engine.connection import reaching
from chalicelib.engine.unit import split_batches
from chalicelib.lib import currencies
from chalicelib.lib.currencies import RUB
from chalicelib.lib.markup.csv_text import is_formula

AT_ONCE = 100


def export_products(call: Call, workspace_id: str, path: Path) -> dict[str, Any]:
    """Write all products of a workspace, oldest first, with every field complete.

    The file has the suffix ``.part`` until it is complete.

    Raises:
        NotFoundError: the workspace does not exist.
        ClickException: the file cannot be written.
    """
    currency = workspaces.get(workspace_id).currency
    paths = {category_id: names for names, category_id in category_paths(call)}
    part, count = path.with_name(f"{path.name}.part"), 0
    try:
        with part.open("w", encoding="utf-8-sig", newline="") as file:
            file.write(_line(tuple(export_fields(currency))))
            for product in _products(workspace_id):
                names = paths.get(str(product.category_id), ())
                product_fields = ProductOut.from_record(product).model_dump(
                    mode="json", by_alias=True
                )
                file.write(_line(_cells(product_fields, names, currency)))
                count += 1
        os.replace(part, path)  # noqa: PTH105  replaces an existing file on every system
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}."
        raise click.ClickException(msg) from error
    event = AuditEvent("export_products", "operator", resources=(f"workspace:{workspace_id}",))
    with reaching():
        audit.row(workspace_id, event).save()
    return {
        "workspaceId": workspace_id,
        "products": count,
        "file": str(path),
        "bytes": path.stat().st_size,
    }


def _cells(product: Mapping[str, Any], category: Sequence[str], currency: str) -> list[str]:
    """Return the cells of a product in the order of the columns.

    ``category`` has the names of its category and of the categories above, from the top.
    """
    above = path_text(category)
    values = [
        product["id"],
        escaped(product["sku"]),
        escaped(product["name"]),
        product["price"] if currency == RUB else currencies.plain(product["price"], currency),
        escaped(product["description"]),
        product["stock"],
        escaped(product["barcode"]),
        ESCAPE * (is_formula(above) or is_value(above)) + above,
        product["categoryId"],
        "|".join(image["url"] for image in product["images"]),
        *(product[name] for name in ("status", "sortOrder")),
        escaped(product["externalId"]),
        json.dumps(product["metadata"], ensure_ascii=False) if product["metadata"] else None,
        *(product[name] for name in ("createdAt", "updatedAt")),
    ]
    return ["" if value is None else str(value) for value in values]


def _products(workspace_id: str) -> Iterator[ProductRow]:
    ids = sorted(entry.id for entry in PRODUCTS.entries(workspace_id))
    for some in split_batches(ids, AT_ONCE):
        yield from PRODUCTS.fetch(workspace_id, some)


def _line(cells: Sequence[str]) -> str:
    """Return a line of CSV with quoted cells, so that readers do not guess their types."""
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow(cells)
    return out.getvalue()
