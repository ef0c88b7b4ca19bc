"""Read the table in a file, whatever its format."""

from collections.abc import Mapping
from dataclasses import replace

from chalicelib.domains.imports.rules import vcards, workbooks
from chalicelib.domains.imports.rules.nouns import CLIENTS, PRODUCTS, Noun
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables import (
    client_table,
    product_table,
    recognition,
    service_table,
    text_tables,
)
from chalicelib.domains.imports.rules.tables.amounts import Prices, Unit
from chalicelib.domains.imports.rules.tables.file_kinds import is_workbook
from chalicelib.domains.imports.rules.tables.recognition import Dialects
from chalicelib.domains.imports.rules.tables.rows import NO_CHOICES, Table
from chalicelib.domains.imports.rules.tables.table_errors import TableError
from chalicelib.domains.imports.rules.tables.text_tables import TextTable
from chalicelib.gateways import isolation
from chalicelib.lib.currencies import RUB

MAX_ROWS = 20_000
"""Rows of one import, which are read while the caller waits."""
_READER = "chalicelib.domains.imports.rules.workbooks:read_sheets"
_DIALECTS: Mapping[Noun, Dialects] = {
    "products": recognition.PRODUCTS,
    "services": service_table.SERVICES,
    "clients": client_table.CLIENTS,
}


def read_table(
    noun: Noun,
    body: bytes,
    *,
    country: str,
    currency: str = RUB,
    chosen: Mapping[str, str | None] = NO_CHOICES,
) -> Table:
    """Read the records in a file, with prices in the unit that the header says.

    Raises:
        TableError: the file is no table that can be read, for the reason in the message.
    """
    table, notes = open_table(body, noun)
    if len(table.lines) > MAX_ROWS:
        count, most = f"{len(table.lines):,}", f"{MAX_ROWS:,}"
        msg = f"The table has {count} rows, but the maximum is {most}. Divide it."
        raise TableError.of("too_many", msg, count=count, most=most)
    unit: Unit = "minor" if product_table.says_kopecks(table.names) else "major"
    match noun:
        case "products":
            read = product_table.read_table(table, unit, chosen, currency=currency)
        case "services":
            read = service_table.read_table(table, Prices.of(unit, currency), chosen)
        case _:
            read = client_table.read_table(table, country, chosen)
    return replace(read, notes=[*notes, *read.notes])


def open_table(body: bytes, noun: Noun = PRODUCTS) -> tuple[TextTable, list[Reason]]:
    """Return the table in a file as texts, and what of the file is left out.

    Raises:
        TableError: the file is no table.
    """
    if vcards.is_vcard(body):
        if noun != CLIENTS:
            msg = f"These are contacts (vCard), which have no {noun}. Import them as clients."
            raise TableError.of("contacts", msg)
        return vcards.vcard_table(body), []
    if not is_workbook(body):
        return text_tables.text_table(body, _DIALECTS[noun]), []
    sheets = _sheets(body)
    filled = [(name, rows) for name, rows in sheets if any(map(any, rows))]
    if not filled:
        raise TableError.of("empty", "The workbook has no cells. Choose another file.")
    table, at = text_tables.sheet_table([rows for _, rows in filled], _DIALECTS[noun])
    others = [name for name, _ in filled[:at] + filled[at + 1 :]]
    if not others:
        return table, []
    name, left_out = filled[at][0], ", ".join(others)
    msg = f'The sheet "{name}" is read. Left out: {left_out}.'
    return table, [Reason.of("sheet", msg, text=name, others=left_out)]


def _sheets(body: bytes) -> list[tuple[str, list[list[str]]]]:
    # calamine ends the process for some small files, and takes all memory for others.
    try:
        text = isolation.call(_READER, body, None, memory_bytes=workbooks.MEMORY_BYTES)
    except isolation.RaisedError as error:
        raise TableError(Reason(*error.args)) from None
    except isolation.IsolationError:
        msg = (
            "The workbook takes too much memory or time. Save only the sheet with the table as CSV "
            "(UTF-8), and import that file."
        )
        raise TableError.of(workbooks.TOO_LARGE, msg) from None
    return workbooks.sheets_of(text)
