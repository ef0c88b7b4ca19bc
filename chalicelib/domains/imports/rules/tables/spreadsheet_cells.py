"""Restore the strings of a table that a spreadsheet has saved.

A spreadsheet rewrites what looks like a number or a date: ``00123`` becomes 123, ``1-2`` the second
of January, and a long number loses digits.
"""

import re
from collections.abc import Mapping
from typing import Any

from chalicelib.domains.imports.rules.tables.table_errors import CellError
from chalicelib.lib.markup.csv_text import is_formula

# First character of an exported cell whose string would not come back from a spreadsheet. That is
# an empty string (an empty cell means no string at all), a string that could be a formula or a
# value such as a number or a date, and a string that begins with this character. A spreadsheet runs
# formulas and rewrites values: ``00123`` becomes 123, and ``1-2`` the second of January.
ESCAPE = "\\"
_MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|"
    "янв|фев|мар|апр|ма[йя]|ию[нл]|авг|сен|окт|ноя|дек"
)
_VALUE = re.compile(
    rf"(?=.*\d)(?:\d|(?:{_MONTHS})[a-zа-я]*+|(?<=[\d ])[ap]m?\b|e(?=[-+\d])|t(?=\d)|z$|руб|р\b|"
    r"[\s.,:;/'’()%+\u2212\u2010-\u2015$€£¥₽-])+|true|false|истина|ложь",
    re.IGNORECASE | re.DOTALL,
)
_AS_TEXT = re.compile(r'=\s*"((?:[^"]|"")*)"', re.DOTALL)
# A long number as a spreadsheet shows it. The digits that are left out are lost.
_SCIENTIFIC = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?e[-+][0-9]+", re.IGNORECASE)
# Fields whose numbers are names, so that each digit counts.
CODES = frozenset({"sku", "barcode", "externalId"})


def is_value(text: str) -> bool:
    """Whether a spreadsheet could take a string for a number, a date, a time or a truth value."""
    return _VALUE.fullmatch(text.strip()) is not None


def escaped(text: str | None) -> str | None:
    """Escape a string that would not come back from a spreadsheet as it is."""
    changes = not text or text.startswith(ESCAPE) or is_formula(text) or is_value(text)
    return ESCAPE + text if text is not None and (changes or unmark_text(text) != text) else text


def unmark_text(cell: str) -> str:
    """Return the content of a cell that was marked as a string, ``="00145"`` or ``'00145``."""
    if marked := _AS_TEXT.fullmatch(cell.strip()):
        return marked[1].replace('""', '"')
    bare = cell.lstrip()
    is_marked = bare.startswith("'") and (is_value(bare[1:]) or is_formula(bare[1:]))
    return bare[1:] if is_marked else cell


def restore(item: Mapping[str, Any], stored_fields: Mapping[str, str | None]) -> dict[str, Any]:
    """Return an item without what a spreadsheet rewrote without a change by its user.

    ``stored_fields`` has the stored strings of the product that the item names. A spreadsheet drops
    leading zeros of codes and writes line breaks in its own way. Raises CellError if a code lost
    digits.
    """
    restored = dict(item)
    for name, text in stored_fields.items():
        cell = item.get(name)
        if cell is None or text is None or cell == text:
            continue
        if name in CODES:
            try:
                refuse_scientific(cell)
            except CellError as error:
                raise CellError(error.reason.about(name)) from None
            is_same = cell.isdecimal() and cell.lstrip("0") == text.lstrip("0")
        else:
            is_same = _LINE_END.sub("\n", cell) == _LINE_END.sub("\n", text)
        if is_same:
            del restored[name]
    return restored


_LINE_END = re.compile(r"\r\n?")


def refuse_scientific(cell: str) -> None:
    """Raise CellError for a code that a spreadsheet has shortened."""
    if _SCIENTIFIC.fullmatch(cell.strip()):
        msg = (
            f'expected all digits, received "{cell.strip()}", as a spreadsheet shortens a long '
            "number. Format the column as text and enter it again."
        )
        raise CellError.of("lost_digits", msg, text=cell.strip())
