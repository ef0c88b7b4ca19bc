"""Store the rows of an import, and those that were refused, as objects."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.imports.flows.sending import Outcome
from chalicelib.domains.imports.rules import reasons
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.rows import Row, Table, report_cells, report_text
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
        yield from (_row(row) for row in rows[skipped:])
        number, skipped = number + 1, 0


def _row(stored: dict[str, Any]) -> Row:
    fault, notes = stored["fault"], stored["notes"]
    read = {"fault": fault and Reason(**fault), "notes": [Reason(**note) for note in notes]}
    return Row(**stored | read)


class Refusal(NamedTuple):
    """A row that was refused."""

    row: int
    sku: str
    reason: Reason
    cells: Sequence[str]

    @classmethod
    def from_json(cls, row: int, sku: str, reason: dict[str, Any], cells: list[str]) -> Self:
        return cls(row, sku, Reason(**reason), cells)

    def to_json(self) -> list[Any]:
        return [self.row, self.sku, asdict(self.reason), self.cells]

    def line(self, form: reasons.Form, *, has_sku: bool) -> list[str]:
        """Return the cells under ``report_columns`` and those of the row."""
        sku = [self.sku] if has_sku else []
        code = [self.reason.code] if form is None else []
        return [str(self.row), *sku, *code, self.reason.shown(form), *self.cells]


def store_refused(record: ImportRow, start: int, refused: Sequence[Outcome]) -> None:
    """Store the rows from a position on that were refused."""
    codes = frozenset(_get(f"{record.folder}rows/about.json")["codes"])
    refusals = [
        Refusal(each.row.number, each.row.sku, each.reason, report_cells(each.row, codes)).to_json()
        for each in refused
        if each.reason is not None
    ]
    # A run that is repeated replaces the object.
    _put(f"{record.folder}refused/{start}.json", refusals)


def store_reports(record: ImportRow, starts: Iterable[int]) -> None:
    """Make the tables of all refused rows, from those at the positions: one for each form."""
    about = _get(f"{record.folder}rows/about.json")
    has_sku = about["hasSku"]
    refusals = [
        Refusal.from_json(*each)
        for start in starts
        for each in _get(f"{record.folder}refused/{start}.json")
    ]
    headers = {"Content-Disposition": 'attachment; filename="refused.csv"'}
    for form in reasons.FORMS:
        columns = (*reasons.report_columns(form, has_sku=has_sku), *about["header"])
        lines = [each.line(form, has_sku=has_sku) for each in refusals]
        text = report_text(columns, lines, delimiter=about["delimiter"])
        object_store().put(record.report_key(form), text, "text/csv; charset=utf-8", headers)


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
