"""CSV text (RFC 4180) that spreadsheets show as text and never run as formulas."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

Cell = str | int | float | None
_FORMULA = re.compile("\\s*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n]")
"""Matches a text that a spreadsheet could run as a formula. Some of them skip leading spaces.

A tab or a line break at the beginning can hide one (OWASP, CSV Injection).
"""


def write(rows: Iterable[Sequence[Cell]], delimiter: str = ",") -> str:
    """Return the rows as CSV. Every cell is in quotes, so no other delimiter divides it.

    A text that a spreadsheet could run as a formula gets an apostrophe before it. Numbers do not
    need one. Languages whose spreadsheets divide cells at semicolons write decimals with commas.
    """
    point = "," if delimiter == ";" else "."
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerows([_text(cell, point) for cell in row] for row in rows)
    return buffer.getvalue()


def is_formula(text: str) -> bool:
    """Whether a spreadsheet could run a text as a formula."""
    return _FORMULA.match(text) is not None


def _text(cell: Cell, point: str) -> str | None:
    """Return the text of a cell: no formula, and a number without an exponent."""
    if isinstance(cell, str):
        return f"'{cell}" if is_formula(cell) else cell
    return None if cell is None else format(Decimal(str(cell)), "f").replace(".", point)
