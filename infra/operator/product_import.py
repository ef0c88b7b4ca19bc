"""Upsert the products of a table, 100 in a call (``infra admin import-products``)."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from chalicelib.core.errors import AppError
from chalicelib.core.text import fold
from chalicelib.core.wire import parsing
from chalicelib.domains.catalog.operations.batches import MAX_BATCH_PRODUCTS, OK
from chalicelib.domains.catalog.operations.upsert_items import ItemById, UpsertItem
from chalicelib.domains.catalog.rules.category_path import path_names
from chalicelib.domains.catalog.rules.tables import product_table, spreadsheet_cells
from chalicelib.domains.catalog.rules.tables.amounts import Unit
from chalicelib.domains.catalog.rules.tables.product_table import Row, Table
from chalicelib.domains.catalog.rules.tables.table_errors import CellError, TableError, UnitError
from chalicelib.domains.catalog.store.products import PRODUCTS, ProductRow

Call = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Runs an operation in the workspace and returns ``data`` of its envelope."""

PRINTED = {
    "created": "created",
    "updated": "updated",
    "unchanged": "unchanged",
    "would create": "wouldCreate",
    "would update": "wouldUpdate",
}
"""Counter in the printed result, by the message of an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an import.

    ``report`` is the path for refused rows, if there are any.
    """

    prices: Unit | None
    report: Path
    dry_run: bool = False
    create_categories: bool = False


def import_products(call: Call, workspace_id: str, path: Path, options: Options) -> dict[str, Any]:
    """Import a table and return the counts of outcomes. Safe to repeat.

    Raises:
        click.ClickException: the table cannot be read, or the run was interrupted.
    """
    started = time.monotonic()
    try:
        table = product_table.read(path.read_bytes(), options.prices)
    except UnitError as error:
        msg = f"{error} Use --prices rubles or --prices kopecks."
        raise click.ClickException(msg) from None
    except TableError as error:
        raise click.ClickException(str(error)) from None
    _show_what_is_not_read(table)
    run = _Run(call, workspace_id, _Categories(call, options), options.dry_run)
    has_ids = any("id" in row.item for row in table.rows)
    live = {entry.id for entry in PRODUCTS.entries(workspace_id)} if has_ids else set()
    rows, stopped = product_table.refuse_repeated(table.rows, live), None
    with click.progressbar(length=len(rows), label=path.name, file=sys.stderr) as bar:
        for start in range(0, len(rows), MAX_BATCH_PRODUCTS):
            batch = rows[start : start + MAX_BATCH_PRODUCTS]
            try:
                run.send(batch)
            except AppError as error:
                stopped = f"Stopped after {start} of {len(rows)} rows: {error.message}"
                break
            bar.update(len(batch))
    for warning in run.warnings:
        click.echo(warning, err=True)
    if run.refusals:
        options.report.write_bytes(product_table.report(table, run.refusals))
    if stopped:
        msg = f"{stopped} Run it again: what is done stays as it is."
        raise click.ClickException(msg)
    names = ("wouldCreate", "wouldUpdate") if options.dry_run else ("created", "updated")
    return {
        **{name: run.counts[name] for name in (*names, "unchanged")},
        "failed": len(run.refusals),
        "categoriesCreated": run.categories.created,
        "calls": run.calls,
        "seconds": round(time.monotonic() - started, 1),
        "report": str(options.report) if run.refusals else None,
    }


def _show_what_is_not_read(table: Table) -> None:
    """Name, before anything is written, the columns whose values do not arrive."""
    if table.shop:
        click.echo(f"This is a table of {table.shop}.", err=True)
    if table.ignored:
        click.echo(f"Columns that mean nothing here: {', '.join(table.ignored)}.", err=True)
    if table.partly_read:
        counts = ", ".join(f"{name} ({count})" for name, count in table.partly_read.items())
        click.echo(f"Columns that are not read in some rows: {counts}.", err=True)
    for note in table.notes:
        click.echo(note, err=True)


@dataclass
class _Run:
    """State of an import."""

    call: Call
    workspace_id: str
    categories: "_Categories"
    dry_run: bool
    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[tuple[Row, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    calls: int = 0

    def send(self, batch: Sequence[Row]) -> None:
        """Upsert the valid rows of a batch and refuse the invalid ones."""
        refusals: dict[int, tuple[Row, str]] = {}
        sent_rows: list[tuple[Row, dict[str, Any]]] = []
        ids = [row.item["id"] for row in batch if "id" in row.item]
        products = {product.id: product for product in PRODUCTS.fetch(self.workspace_id, ids)}
        for row in batch:
            try:
                sent_rows.append((row, self._item(row, products)))
            except (AppError, CellError) as error:
                refusals[row.number] = row, str(error)
        by_sku = [(row, item) for row, item in sent_rows if "id" not in item]
        by_id = [(row, item) for row, item in sent_rows if "id" in item]
        refusals |= self._upsert("upsert_products", by_sku)
        refusals |= self._upsert("upsert_products_by_id", by_id)
        self.refusals += [refusals[number] for number in sorted(refusals)]

    def _upsert(
        self, operation: str, rows: Sequence[tuple[Row, dict[str, Any]]]
    ) -> dict[int, tuple[Row, str]]:
        """Upsert rows in one call, and return the refused rows by number, with the reason."""
        if not rows:
            return {}
        items = [item for _, item in rows]
        answer = self.call(operation, {"items": items, "dryRun": self.dry_run})
        self.calls += 1
        refusals = {}
        for (row, _), result in zip(rows, answer["results"], strict=True):
            if result["status"] == OK:
                self.counts[PRINTED[result["message"]]] += 1
            else:
                refusals[row.number] = row, result["message"]
            self.warnings += [
                f"Row {row.number} ({row.sku}): {note}"
                for note in (*row.notes, *result["warnings"])
            ]
        return refusals

    def _item(self, row: Row, products: Mapping[str, ProductRow]) -> dict[str, Any]:
        """Return the upsert's input for a row.

        The id of a row names a product of the workspace. Without such a product, as in another
        workspace, the SKU names the product, and the id is for a product without an SKU.

        Raises:
            CellError: the row or its category is invalid.
            ValidationError: a value is out of bounds; no category is created for such a row.
        """
        if row.fault:
            raise CellError(row.fault)
        item = dict(row.item)
        if product := products.get(item.get("id", "")):
            texts = {name: getattr(product, name) for name in ("sku", "barcode", "description")}
            item = spreadsheet_cells.restore(item, texts)
        elif "sku" in item:
            item.pop("id", None)
        category, exported_id = item.pop("category", None), item.pop("categoryId", None)
        parsing.parse(ItemById if "id" in item else UpsertItem, item)
        if exported_id is not None:
            category_id = self.categories.find_exported(exported_id, path=category or "")
        elif category is not None:
            category_id = self.categories.find(category)
        else:
            category_id = None
        if category_id:
            item["categoryId"] = category_id
        return item


def category_paths(call: Call) -> list[tuple[tuple[str, ...], str]]:
    """Return the ids of a workspace's product categories, each with the names from the top."""
    rows = call("list_categories", {"kind": "product"})["categories"]
    by_id = {row["id"]: row for row in rows}
    paths = []
    for row in rows:
        way = [row]
        while (above := by_id.get(way[0]["parentId"])) is not None:
            way.insert(0, above)
        paths.append((tuple(category["name"] for category in way), row["id"]))
    return paths


class _Categories:
    """The workspace's product categories by name and path, created if allowed."""

    def __init__(self, call: Call, options: Options) -> None:
        self._call, self._options = call, options
        self._paths: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self._exact: dict[tuple[str, ...], str] = {}
        self.created = 0
        paths = category_paths(call)
        self._ids = frozenset(category_id for _, category_id in paths)
        for names, category_id in paths:
            self._add(list(names), category_id)

    def find(self, text: str) -> str | None:
        """Return the id of a category; None if a run that is not dry would create it.

        Raises:
            CellError: the category does not exist and may not be created, or the name is ambiguous.
        """
        way = list(path_names(text))
        name = _normalised(" / ".join(way))
        ids = self._paths.get(name) or self._names.get(name) or []
        if len(ids) > 1:
            msg = f'category: several are named "{text}"; write the path, such as "Above / {text}"'
            raise CellError(msg)
        if not ids and not self._options.create_categories:
            msg = f'category: there is no "{text}"; create it, or use --create-categories'
            raise CellError(msg)
        if ids:
            return ids[0]
        return self._find_or_create(
            way, lambda names: self._paths.get(_normalised(" / ".join(names)), [None])[0]
        )

    def find_exported(self, category_id: str, *, path: str) -> str | None:
        """Return the id of an exported category: its own id, or else the category with its path.

        Raises:
            CellError: the category does not exist and may not be created.
        """
        if category_id in self._ids:
            return category_id
        way = list(path_names(path))
        if (exact_id := self._exact.get(tuple(way))) is not None:
            return exact_id
        if not way or not self._options.create_categories:
            msg = f'category: there is no "{path}"; create it, or use --create-categories'
            raise CellError(msg)
        return self._find_or_create(way, lambda names: self._exact.get(tuple(names)))

    def _find_or_create(
        self, way: list[str], find: Callable[[list[str]], str | None]
    ) -> str | None:
        """Create a category, and its parents that ``find`` does not find."""
        parent: str | None = None
        for depth in range(1, len(way) + 1):
            category_id = find(way[:depth])
            if category_id is not None:
                parent = category_id or None
                continue
            fields = {"name": way[depth - 1], "kind": "product"}
            if parent is not None:
                fields["parentId"] = parent
            parent = "" if self._options.dry_run else self._create(fields)
            self.created += 1
            self._add(way[:depth], parent)
            parent = parent or None
        return parent

    def _create(self, fields: dict[str, str]) -> str:
        category: str = self._call("create_category", fields)["category"]["id"]
        return category

    def _add(self, way: list[str], category_id: str) -> None:
        self._exact.setdefault(tuple(way), category_id)
        self._paths.setdefault(_normalised(" / ".join(way)), []).append(category_id)
        self._names.setdefault(_normalised(way[-1]), []).append(category_id)


def _normalised(path: str) -> str:
    """Normalise a name or path for comparison, without the spaces around slashes."""
    return "/".join(" ".join(part.split()) for part in fold(path).split("/"))
