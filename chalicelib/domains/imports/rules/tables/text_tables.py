"""Read bytes as a table of text: find the encoding, the delimiter and the header."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise

from chalicelib.domains.imports.rules.tables import file_kinds
from chalicelib.domains.imports.rules.tables.recognition import PRODUCTS, Dialects, role_of
from chalicelib.domains.imports.rules.tables.table_errors import TableError

DELIMITERS = ";,\t"
MAX_COLUMNS = 2_000  # Columns of a table. Shops with many attributes export some hundreds.
HEADER_ROWS = 20  # Rows that may be the header. The rows above the header are a title.
# Encodings of Russian programs. Only the right one shows known headers in Cyrillic.
_ENCODINGS = ("cp1251", "cp866", "koi8-r")
# A first line from which Excel reads the delimiter. Excel shows no such row.
_DECLARED = re.compile(r'"?sep=([;,\t|])"?[;,\t|]*(?:\r\n?|\n)', re.IGNORECASE)
_MIXED_WORD = re.compile("[a-z][а-яё]|[а-яё][a-z]", re.IGNORECASE)
_CYRILLIC_WORD = re.compile(r"\b[а-яё]{2,}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextTable:
    names: Sequence[str]
    # Numbers count as spreadsheets do: the first row is 1, with a line that declares the delimiter
    # left out.
    lines: Sequence[tuple[int, Sequence[str]]]
    delimiter: str


def text_table(raw: bytes, dialects: Dialects = PRODUCTS) -> TextTable:
    """Read a table without its empty rows, or raise TableError with what the file is."""
    file_kinds.refuse_other_files(raw)
    readings = [
        (bare, delimiter)
        for text in _texts(raw)
        for bare, delimiters in [_without_declaration(text)]
        for delimiter in delimiters
    ]
    text, delimiter = max(readings, key=partial(_likelihood, dialects))
    try:
        rows = list(_rows(text, delimiter=delimiter))
    except csv.Error as error:
        raise TableError.of("no_table", f"This is no CSV: {error}.") from None
    return _with_header(rows, delimiter, dialects)


def sheet_table(
    sheets: Sequence[Sequence[Sequence[str]]], dialects: Dialects
) -> tuple[TextTable, int]:
    """Return the sheet of a workbook with the most known headers, and its position."""
    certainties = [
        (dialects.recognized(_header_of(rows, dialects)[1][:MAX_COLUMNS]), len(rows), -at)
        for at, rows in enumerate(sheets)
    ]
    at = -max(certainties)[2]
    table = _with_header(sheets[at], ",", dialects)
    # Excel divides a CSV at semicolons where commas are decimal, as in Russian.
    is_russian = any(_CYRILLIC_WORD.search(name.lower()) for name in table.names)
    return replace(table, delimiter=";" if is_russian else ","), at


def _with_header(rows: Sequence[Sequence[str]], delimiter: str, dialects: Dialects) -> TextTable:
    last, header = _header_of(rows, dialects)
    if len(header) > MAX_COLUMNS:
        count, most = f"{len(header):,}", f"{MAX_COLUMNS:,}"
        msg = f"The table has {count} columns, but the maximum is {most}."
        raise TableError.of("too_many_columns", msg, count=count, most=most)
    # LibreOffice saves a file's byte order mark as a part of the first cell, before its quotes.
    names = [name.strip().strip('\ufeff"') for name in header]
    lines = [
        (number, row)
        for number, row in enumerate(rows, 1)
        if number > last + 1 and any(map(str.strip, row))
    ]
    return TextTable(names, lines, delimiter)


def _texts(raw: bytes) -> list[str]:
    wide = file_kinds.utf16_encoding(raw)
    texts = [raw.decode(wide, errors="replace").removeprefix("\ufeff")] if wide else []
    if wide == "utf-16":
        return texts
    try:
        return [*texts, raw.decode("utf-8-sig")]
    except UnicodeDecodeError:
        russian = [raw.decode(encoding, errors="replace") for encoding in _ENCODINGS]
    # In a Western table, Cyrillic letters would stand among Latin ones, as in "Cafй".
    if len(_MIXED_WORD.findall(russian[0])) > len(_CYRILLIC_WORD.findall(russian[0])):
        texts.append(raw.decode("cp1252", errors="replace"))
    return texts + russian


def _likelihood(dialects: Dialects, reading: tuple[str, str]) -> tuple[int, int]:
    text, delimiter = reading
    header = _header_of(_rows(text, delimiter=delimiter), dialects)[1][:MAX_COLUMNS]
    return dialects.recognized(header), len(header)


def _without_declaration(text: str) -> tuple[str, str]:
    declared = _DECLARED.match(text)
    return (text[declared.end() :], declared[1]) if declared else (text, DELIMITERS)


def _rows(text: str, *, delimiter: str) -> Iterator[list[str]]:
    # Without ``newline=""``, line breaks within quoted cells would change.
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _header_of(rows: Iterable[Sequence[str]], dialects: Dialects) -> tuple[int, Sequence[str]]:
    # A table may begin with a title, and a header may take two rows, of which the upper names
    # groups of columns. So the row, or the two rows, with the most known headers are used.
    try:
        first = [row for row in islice(enumerate(rows), 10 * HEADER_ROWS) if any(row[1])]
    except csv.Error:
        first = []
    first = first[:HEADER_ROWS]
    double = [
        (below, header)
        for (above, upper), (below, lower) in pairwise(first)
        if below == above + 1
        and max(len(upper), len(lower)) <= MAX_COLUMNS
        and (header := _joined(upper, lower, dialects))
    ]
    return max(
        (*first, *double),
        key=lambda row: dialects.recognized(row[1][:MAX_COLUMNS]),
        default=(-1, []),
    )


def _joined(upper: Sequence[str], lower: Sequence[str], dialects: Dialects) -> list[str]:
    shop = dialects.shop_of(upper)
    width = max(len(upper), len(lower))
    pairs = [
        (above.strip(), below.strip())
        for above, below in zip(
            [*upper, *[""] * (width - len(upper))],
            [*lower, *[""] * (width - len(lower))],
            strict=True,
        )
    ]
    if any(role_of(shop, above) and below and not role_of(shop, below) for above, below in pairs):
        return []
    return [below if role_of(shop, below) else above or below for above, below in pairs]
