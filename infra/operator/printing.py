"""Print results as a table on a terminal, and otherwise as one JSON object."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

AS_JSON = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on a terminal, too, as into a pipe."
)
"""Decorator that adds ``--json`` to a function or a command."""


def show(data: Mapping[str, Any], *, as_json: bool, table: Mapping[str, Any] | None = None) -> None:
    """Print a result, on a terminal as ``table`` if that is given."""
    if as_json or not is_terminal():
        click.echo(json.dumps(data, ensure_ascii=False))
        return
    console = Console(highlight=False)
    rows = data if table is None else table
    single = {name: value for name, value in rows.items() if not _is_records(value)}
    if single:
        console.print(_fields(single))
    for name, value in rows.items():
        if _is_records(value):
            console.print(_records(name, value))


def is_terminal() -> bool:
    """Return whether the output goes to a terminal."""
    return sys.stdout.isatty()


def one_row_an_answer(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ledger with one row for each answer of a bot, in place of reserve and settlement.

    ``amount`` and ``held`` are the sums of the answer's entries; ``kind`` is the kind of the newest
    entry.
    """
    rows: dict[str, dict[str, Any]] = {}
    for entry in data["entries"]:
        newest = rows.setdefault(
            entry["requestId"] or entry["id"], {**entry, "amount": 0, "held": 0}
        )
        newest["amount"] += entry["amount"]
        newest["held"] += entry["held"]
    columns = ("at", "kind", "amount", "held", "balanceAfter", "agentId", "requestId")
    entries = [{name: row[name] for name in columns} for row in rows.values()]
    return {**data, "entries": entries}


def _is_records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _fields(values: Mapping[str, Any]) -> Table:
    table = Table(show_header=False, box=None)
    for name, value in values.items():
        table.add_row(name, _text(value))
    return table


def _records(name: str, records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=f"{name} ({len(records)})", title_justify="left")
    columns = list(dict.fromkeys(column for record in records for column in record))
    for column in columns:
        numeric = all(isinstance(record.get(column), int | None) for record in records)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for record in records:
        table.add_row(*(_text(record.get(column)) for column in columns))
    return table


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case list():
            return ", ".join(map(_text, value))
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False)
