"""Store the rows of an import, and those that were refused, as objects."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.imports.rules.tables.rows import Row, Table, report_line, report_text
from chalicelib.domains.imports.store.imports import ImportRow
from chalicelib.engine.unit import split_batches
from chalicelib.gateways.object_store import object_store

ROWS_PER_OBJECT = 500
_JSON = "application/json"


def store_rows(record: ImportRow, table: Table, *, has_sku: bool) -> None:
    """Store the rows of a table before the import starts."""
    about = {
        "header": list(table.header),
        "delimiter": table.delimiter,
        "codes": sorted(table.codes),
        "hasSku": has_sku,
    }
    _put(f"{record.folder}rows/about.json", about)
    for number, rows in enumerate(split_batches(table.rows, ROWS_PER_OBJECT)):
        _put(f"{record.folder}rows/{number}.json", [asdict(row) for row in rows])


def read_rows(record: ImportRow, start: int) -> Iterator[Row]:
    """Yield the rows from a position on."""
    number, skipped = divmod(start, ROWS_PER_OBJECT)
    while number * ROWS_PER_OBJECT < record.rows:
        rows = _get(f"{record.folder}rows/{number}.json")
        yield from (Row(**row) for row in rows[skipped:])
        number, skipped = number + 1, 0


def store_refused(record: ImportRow, start: int, refused: Sequence[tuple[Row, str]]) -> None:
    """Store the lines of the rows from a position on that were refused."""
    about = _get(f"{record.folder}rows/about.json")
    codes, has_sku = frozenset(about["codes"]), about["hasSku"]
    lines = [report_line(row, reason, codes=codes, has_sku=has_sku) for row, reason in refused]
    # A run that is repeated replaces the object.
    _put(f"{record.folder}refused/{start}.json", lines)


def store_report(record: ImportRow, starts: Iterable[int]) -> None:
    """Make the table of all refused rows, from those at the positions."""
    about = _get(f"{record.folder}rows/about.json")
    added = ("row", "sku", "reason") if about["hasSku"] else ("row", "reason")
    lines = [line for start in starts for line in _get(f"{record.folder}refused/{start}.json")]
    text = report_text((*added, *about["header"]), lines, delimiter=about["delimiter"])
    headers = {"Content-Disposition": 'attachment; filename="refused.csv"'}
    object_store().put(record.report_key, text, "text/csv; charset=utf-8", headers)


def delete_rows(record: ImportRow) -> None:
    """Delete the stored rows, which the records now have, and the parts of the report."""
    for folder in ("rows", "refused"):
        object_store().delete_under(f"{record.folder}{folder}/")


def _put(key: str, value: Any) -> None:  # noqa: ANN401  JSON
    object_store().put(key, json.dumps(value, ensure_ascii=False).encode(), _JSON)


def _get(key: str) -> Any:  # noqa: ANN401  JSON
    body = object_store().get(key)
    if body is None:
        raise UnavailableError
    return json.loads(body)
