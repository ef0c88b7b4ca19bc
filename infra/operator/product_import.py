"""Upsert the products of a table, 100 in a call (``infra admin import-products``)."""

import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from chalicelib.application.batches import MAX_ITEMS
from chalicelib.core.errors import AppError
from chalicelib.domains.catalog.store.products import PRODUCTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.imports.flows.category_names import Call, Categories
from chalicelib.domains.imports.flows.reading import open_table
from chalicelib.domains.imports.flows.sending import REFUSED, Outcome, ProductSender
from chalicelib.domains.imports.rules.tables import product_table
from chalicelib.domains.imports.rules.tables.amounts import Unit
from chalicelib.domains.imports.rules.tables.rows import Table
from chalicelib.domains.imports.rules.tables.table_errors import TableError, UnitError
from chalicelib.engine.unit import split_batches
from chalicelib.lib.currencies import RUB


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
    table = _read(path, options, workspaces.get(workspace_id).currency)
    _show_what_is_not_read(table)
    creates, dry_run = options.create_categories, options.dry_run
    remedy = "create it, or use --create-categories"
    categories = Categories(call, "product", creates=creates, dry_run=dry_run, remedy=remedy)
    sender = ProductSender(call, workspace_id, categories, dry_run=dry_run)
    has_ids = any("id" in row.item for row in table.rows)
    live = {entry.id for entry in PRODUCTS.entries(workspace_id)} if has_ids else set()
    rows, stopped = product_table.refuse_repeated(table.rows, live), None
    outcomes: list[Outcome] = []
    with click.progressbar(length=len(rows), label=path.name, file=sys.stderr) as bar:
        for batch in split_batches(rows, MAX_ITEMS):
            try:
                outcomes += sender.send(batch)
            except AppError as error:
                stopped = f"Stopped after {len(outcomes)} of {len(rows)} rows: {error.message}"
                break
            bar.update(len(batch))
    for outcome in outcomes:
        if outcome.code != REFUSED or outcome.warnings != outcome.row.notes:
            for note in outcome.warnings:
                click.echo(
                    f"Row {outcome.row.number} ({outcome.row.sku}): {note.sentence}", err=True
                )
    refusals = [(each.row, each.reason.sentence) for each in outcomes if each.reason is not None]
    if refusals:
        options.report.write_bytes(product_table.report(table, refusals))
    if stopped:
        msg = f"{stopped} Run it again: what is done stays as it is."
        raise click.ClickException(msg)
    counts = Counter(outcome.code for outcome in outcomes)
    names = ("wouldCreate", "wouldUpdate") if dry_run else ("created", "updated")
    return {
        names[0]: counts["created"],
        names[1]: counts["updated"],
        "unchanged": counts["unchanged"],
        "failed": len(refusals),
        "categoriesCreated": categories.created,
        "calls": sender.calls,
        "seconds": round(time.monotonic() - started, 1),
        "report": str(options.report) if refusals else None,
    }


def _read(path: Path, options: Options, currency: str) -> Table:
    try:
        text_table, notes = open_table(path.read_bytes())
        table = product_table.read_table(
            text_table, options.prices, currency=currency, needs_sku=True
        )
        if table.fault:
            raise TableError(table.fault)  # noqa: TRY301  as what the reader raises
    except UnitError as error:
        units = "rubles or --prices kopecks" if currency == RUB else "major or --prices minor"
        msg = f"{error} Use --prices {units}."
        raise click.ClickException(msg) from None
    except TableError as error:
        raise click.ClickException(str(error)) from None
    return replace(table, notes=[*notes, *table.notes])


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
        click.echo(note.sentence, err=True)
