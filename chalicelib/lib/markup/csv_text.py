"""CSV (RFC 4180) that a spreadsheet never runs as formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

Cell = str | int | float | None
# Matches a string that a spreadsheet could run as a formula. Some spreadsheets skip leading spaces.
# A tab or a line break at the beginning can hide a formula (OWASP, CSV Injection).
_FORMULA = re.compile("\\s*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n]")


def write(rows: Iterable[Sequence[Cell]], delimiter: str = ",") -> str:
    """Return the rows as CSV, in quotes, with an apostrophe before what could run as a formula."""
    # Languages whose spreadsheets divide cells at semicolons write decimals with commas.
    point = "," if delimiter == ";" else "."
    buffer = io.StringIO()
    # Every cell is in quotes, so no other delimiter divides it.
    writer = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerows([_text(cell, point) for cell in row] for row in rows)
    return buffer.getvalue()


def is_formula(text: str) -> bool:
    """Whether a spreadsheet could run a string as a formula."""
    return _FORMULA.match(text) is not None


def _text(cell: Cell, point: str) -> str | None:
    if isinstance(cell, str):
        return f"'{cell}" if is_formula(cell) else cell
    # A spreadsheet may read an exponent as a string, such as 1E+3.
    return None if cell is None else format(Decimal(str(cell)), "f").replace(".", point)
