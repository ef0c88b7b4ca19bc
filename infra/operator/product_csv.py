"""Products as CSV of a spreadsheet, with various headers, encodings and delimiters.

This module does not access files. It converts bytes to rows and text.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any, Literal

from chalicelib.core.text import fold, line_fold
from chalicelib.core.wire import money
from infra.operator import shopify_csv
from infra.operator.spreadsheet_cells import (
    CODES,
    ESCAPE,
    CellError,
    decode,
    is_value,
    refuse_scientific,
    unmark_text,
)

Unit = Literal["rubles", "kopecks"]

HEADERS: Mapping[str, str] = {
    **dict.fromkeys(("артикул", "sku", "код", "код товара", "vendor code", "article"), "sku"),
    **dict.fromkeys(("название", "наименование", "товар", "имя", "name", "title"), "name"),
    **dict.fromkeys(("цена", "стоимость", "цена продажи", "price"), "price"),
    **dict.fromkeys(("штрихкод", "штрих код", "barcode", "ean", "ean13", "gtin"), "barcode"),
    **dict.fromkeys(("остаток", "количество", "кол во", "наличие", "на складе"), "stock"),
    **dict.fromkeys(("stock", "quantity", "qty"), "stock"),
    **dict.fromkeys(("категория", "раздел", "группа", "category"), "category"),
    **dict.fromkeys(("описание", "description"), "description"),
    **dict.fromkeys(("изображения", "изображение", "картинки", "картинка", "фото"), "images"),
    **dict.fromkeys(("images", "image", "photos", "photo", "image urls"), "images"),
    **dict.fromkeys(("статус", "status"), "status"),
}
"""The field of a column, by its normalised header (``_header``)."""
STATUSES: Mapping[str, str] = {
    **dict.fromkeys(("active", "активен", "активный", "да", "1"), "active"),
    **dict.fromkeys(("inactive", "неактивен", "неактивный", "скрыт", "нет", "0"), "inactive"),
    **dict.fromkeys(("draft", "archived", "unlisted"), "inactive"),
}
REPORT_COLUMNS = ("row", "sku", "reason")
"""Columns that a report of refused rows adds before the table's columns.

An import accepts them, so a corrected report can be imported like the original table.
"""
DELIMITERS = ";,\t"
EXPORT_FIELDS: Mapping[str, str] = {
    **{name: name for name in ("id", "sku", "name")},
    "price (kopecks)": "price",
    **{name: name for name in ("description", "stock", "barcode", "category")},
    "category id": "categoryId",
    **{name: name for name in ("images", "status")},
    "sort order": "sortOrder",
    "created at": "",
    "updated at": "",
}
"""The field of each column of an exported table. The last two columns are for readers only."""
EXPORT_COLUMNS = tuple(EXPORT_FIELDS)
"""The header of an exported table.

In a table with ids of products, only these columns count. Its cells keep their spaces, and an id
names a product of the workspace, whatever happened to the SKU.
"""
KOPECKS = "The header says that prices are in kopecks. Use --prices kopecks."
HEADER_ROWS = 20
"""Rows that may be the header. The rows above the header are a title."""


class TableError(ValueError):
    """The whole table cannot be read, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    ``number`` counts as spreadsheets do: the header is row 1. ``item`` is the input of an upsert,
    but with ``category`` as in the table. ``fault`` is the reason to refuse the row. ``note``
    describes a value that was read differently. A row of an exported table also has ``id`` and
    ``categoryId``.
    """

    number: int
    cells: Sequence[str]
    item: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    note: str | None = None

    @property
    def sku(self) -> str:
        """The SKU, or "" without one."""
        return str(self.item.get("sku", ""))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of products; ``ignored`` are the unknown headers.

    ``codes`` are the columns whose numbers are names, which a spreadsheet must not rewrite.
    """

    header: Sequence[str]
    rows: Sequence[Row]
    delimiter: str
    ignored: Sequence[str]
    codes: frozenset[int] = frozenset()


def read(raw: bytes, unit: Unit | None) -> Table:
    """Read a table with prices in rubles or kopecks; an exported table needs no unit.

    Raises:
        TableError: the header has no SKU, two columns have the same meaning, or the unit is missing
            or contradicts the header.
    """
    text = decode(raw)
    declared = _DECLARED.match(text)
    text = text[declared.end() :] if declared else text
    delimiters = declared[1] if declared else DELIMITERS
    delimiter = max(
        delimiters,
        key=lambda candidate: _recognized(_header_of(_lines(text, delimiter=candidate))[1]),
    )
    try:
        numbered_rows = [
            (number, cells) for number, cells in enumerate(_lines(text, delimiter=delimiter), 1)
        ]
    except csv.Error as error:
        msg = f"This is no CSV: {error}."
        raise TableError(msg) from None
    start, header = _header_of(cells for _, cells in numbered_rows)
    # LibreOffice saves a file's byte order mark as a part of the first cell, before its quotes.
    header = [name.strip().strip('\ufeff"') for name in header]
    skipped = len(REPORT_COLUMNS) if tuple(header[:3]) == REPORT_COLUMNS else 0
    names: Sequence[str] = header[skipped:]
    lines: Sequence[tuple[int, Sequence[str]]] = [
        (number, cells[skipped:]) for number, cells in numbered_rows[start + 1 :] if any(cells)
    ]
    if _is_exported(names, lines):
        fields = [EXPORT_FIELDS.get(name.strip(), "") for name in names]
        ignored = [name for name in names if name.strip() and name.strip() not in EXPORT_FIELDS]
        if "price" in fields and unit == "rubles":
            raise TableError(KOPECKS)
        rows = [_exported_row(number, cells, fields=fields) for number, cells in lines]
        return Table(names, refuse_repeated(rows), delimiter, ignored)
    columns = {} if shopify_csv.is_export(names) else _columns(names)
    if "price" in columns and "kopeck" in fold(names[columns["price"]]) and unit == "rubles":
        raise TableError(KOPECKS)
    if unit is None:
        raise TableError("Say what the prices are in: --prices rubles, or --prices kopecks.")
    ignored = [name for name in names if name.strip() and _header(name) not in HEADERS]
    codes = frozenset(columns[name] for name in columns.keys() & CODES)
    if shopify_csv.is_export(names):
        ignored = shopify_csv.ignored(names)
        lines, names = shopify_csv.plain(names, lines), shopify_csv.HEADER
        columns = _columns(names)
    rows = [_row(number, cells, names=names, columns=columns, unit=unit) for number, cells in lines]
    return Table(names, refuse_repeated(rows), delimiter, ignored, codes)


_DECLARED = re.compile(r'"?sep=([;,\t|])"?[;,\t|]*(?:\r\n?|\n)', re.IGNORECASE)
"""A first line from which Excel reads the delimiter. Excel shows no such row."""


def report(table: Table, refusals: Sequence[tuple[Row, str]]) -> bytes:
    """Return the refused rows with their reasons, as CSV that spreadsheets can open."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=table.delimiter, lineterminator="\r\n")
    writer.writerow([*REPORT_COLUMNS, *table.header])
    for row, reason in refusals:
        cells = [
            f'="{cell}"' if index in table.codes and is_value(cell) else cell
            for index, cell in enumerate(row.cells)
        ]
        writer.writerow([row.number, row.sku, reason, *cells])
    # Excel reads UTF-8 only after a byte order mark.
    return out.getvalue().encode("utf-8-sig")


_CURRENCY = re.compile(
    r"(?:₽|руб(?:лей|ля|ль)?\.?|р\.?|rub\.?|коп(?:еек|ейки|ейка)?\.?)\s*$", re.IGNORECASE
)


def kopecks(text: str, unit: Unit) -> int:
    """Parse an amount such as "1 299,90 ₽" exactly.

    Raises:
        CellError: it is not an amount, or has fractions of a kopeck.
    """
    amount = number(_CURRENCY.sub("", text.strip())) * (100 if unit == "rubles" else 1)
    if amount != int(amount):
        msg = f'expected whole kopecks at the finest, received "{text}"'
        raise CellError(msg)
    return int(amount)


def number(text: str) -> Decimal:
    """Parse a number with spaces or apostrophes between thousands, and a comma or point.

    If it has both, the last is the decimal separator. A single one is decimal.

    Raises:
        CellError: it is not a number.
    """
    number = money.decimal(text)
    if number is None:
        msg = f'expected a number, received "{text}"'
        raise CellError(msg)
    return number


def _lines(text: str, *, delimiter: str) -> Iterator[list[str]]:
    # Without ``newline=""``, line breaks within quoted cells would change.
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def _header_of(lines: Iterable[list[str]]) -> tuple[int, list[str]]:
    """Return the header and the number of the lines above the header, such as a title."""
    try:
        first = [line for line in islice(enumerate(lines), 10 * HEADER_ROWS) if any(line[1])]
    except csv.Error:
        first = []
    # A table may begin with a title, so the row with the most known headers is used.
    return max(first[:HEADER_ROWS], key=lambda header: _recognized(header[1]), default=(-1, []))


def _header(name: str) -> str:
    """Normalise a header, so that "Цена, ₽" and "ЦЕНА (руб.)" become "цена"."""
    bare = re.split(r"[,(\[]", fold(name), maxsplit=1)[0]
    return " ".join(re.sub(r"[-_\u2010-\u2015]", " ", bare).split())


_ID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")


def _is_exported(names: Sequence[str], lines: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Whether a table has ids of products, possibly after columns were moved or removed."""
    if tuple(names) == EXPORT_COLUMNS:
        return True
    bare = [name.strip() for name in names]
    column = bare.index("id") if "id" in bare else len(bare)
    ids = [cells[column] for _, cells in lines if column < len(cells)]
    return any(map(_ID.fullmatch, ids))


def _recognized(names: Sequence[str]) -> int:
    """Count the known columns, because the delimiter with the most known columns is used."""
    return len(names) if shopify_csv.is_export(names) else len(_known(names))


def _known(names: Sequence[str]) -> list[str]:
    return [HEADERS[_header(name)] for name in names if _header(name) in HEADERS]


def _columns(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each column, by field."""
    name_counts = Counter(_known(names))
    if "sku" not in name_counts:
        msg = f"No column has the header sku or артикул. Headers: {', '.join(names) or 'none'}."
        raise TableError(msg)
    if twice := [name for name, count in name_counts.items() if count > 1]:
        msg = f"Several columns contain {', '.join(twice)}. Leave one of each."
        raise TableError(msg)
    return {HEADERS[_header(name)]: i for i, name in enumerate(names) if _header(name) in HEADERS}


def _row(
    number: int,
    cells: Sequence[str],
    *,
    names: Sequence[str],
    columns: Mapping[str, int],
    unit: Unit,
) -> Row:
    """Read a row without its empty cells, so that products keep their values."""
    row_cells = {name: cells[i].strip() for name, i in columns.items() if i < len(cells)}
    item: dict[str, Any] = {
        name: text for name, cell in row_cells.items() if (text := _typed_text(name, cell=cell))
    }
    if any(cell.strip() for cell in cells[len(names) :]):
        extra = f"expected at most {len(names)} cells, received {len(cells)}"
        return Row(number, cells, item, extra)
    if "sku" not in item:
        return Row(number, cells, item, "sku: is required")
    fault = _convert(item, row_cells, unit)
    if fault is not None:
        return Row(number, cells, item, fault)
    if item.get("stock", 0) < 0:
        note = f"stock: {item['stock']} is read as 0"
        return Row(number, cells, item | {"stock": 0}, note=note)
    return Row(number, cells, item)


def _exported_row(number: int, cells: Sequence[str], *, fields: Sequence[str]) -> Row:
    """Read a row of an exported table without its empty cells, as in any table."""
    if any(cell.strip() for cell in cells[len(fields) :]):
        fault = f"expected at most {len(fields)} cells, received {len(cells)}"
        return Row(number, cells, {}, fault)
    row_cells = {name: cell for name, cell in zip(fields, cells, strict=False) if cell and name}
    item: dict[str, Any] = {
        name: cell.removeprefix(ESCAPE) if cell.startswith(ESCAPE) else _typed_text(name, cell=cell)
        for name, cell in row_cells.items()
        if name != "category"
    }
    if "category" in row_cells:
        item["category"] = row_cells["category"]
    if "id" in item and not _ID.fullmatch(item["id"]):
        return Row(number, cells, item, "id: expected the id of a product, as it was exported")
    if "sku" not in item and "id" not in item:
        return Row(number, cells, item, "sku: is required")
    return Row(number, cells, item, _convert(item, row_cells, "kopecks"))


def _typed_text(name: str, *, cell: str) -> str:
    """Return the string that a cell held when it was entered, without line breaks in a name."""
    text = unmark_text(cell)
    return re.sub(r"\s*[\r\n]\s*", " ", text).strip() if name in {*CODES, "name"} else text


def _convert(item: dict[str, Any], row_cells: Mapping[str, str], unit: Unit) -> str | None:
    """Convert the strings of an item, and return the reason to refuse the item, if any."""
    for name, convert in _CONVERTED.items():
        if name in item:
            try:
                item[name] = convert(item[name], unit)
            except CellError as error:
                return f"{name}: {error}"
    try:
        for name in CODES & row_cells.keys():
            refuse_scientific(name, cell=row_cells[name])
    except CellError as error:
        return str(error)
    return None


def _stock(text: str, _: Unit) -> int:
    pieces = number(text)
    if pieces != int(pieces):
        msg = f'expected a whole number, received "{text}"'
        raise CellError(msg)
    return int(pieces)


def _status(text: str, _: Unit) -> str:
    if fold(text) not in STATUSES:
        msg = f'expected active or inactive, received "{text}"'
        raise CellError(msg)
    return STATUSES[fold(text)]


def _images(text: str, _: Unit) -> list[dict[str, str]]:
    return [{"url": url} for address in re.split(r"[|\r\n]+", text) if (url := address.strip())]


_CONVERTED = {
    "price": kopecks,
    "stock": _stock,
    "sortOrder": _stock,
    "status": _status,
    "images": _images,
}


def refuse_repeated(rows: Sequence[Row], live: Collection[str] | None = None) -> list[Row]:
    """Refuse all rows that name one product, because the right one is unknown.

    The id of a row names its product if it is in ``live``, otherwise the SKU does. Default: any id.
    """
    keys = {row.number: _key(row, live) for row in rows}
    numbers: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        numbers.setdefault(keys[row.number], []).append(row.number)
    return [
        replace(
            row,
            fault=f"{name}: expected once in the table, also in rows {_others(same, row.number)}",
        )
        if (name := keys[row.number][0])
        and row.fault is None
        and len(same := numbers[keys[row.number]]) > 1
        else row
        for row in rows
    ]


def _key(row: Row, live: Collection[str] | None) -> tuple[str, str]:
    """Return the field that names the product of a row, and its value in normal form."""
    record_id = row.item.get("id")
    if record_id and (live is None or record_id in live or not row.sku):
        return "id", str(record_id)
    return ("sku", line_fold(row.sku)) if row.sku else ("", str(row.number))


def _others(numbers: Sequence[int], number: int) -> str:
    return ", ".join(str(row_number) for row_number in numbers if row_number != number)
