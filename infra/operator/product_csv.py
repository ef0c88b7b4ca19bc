"""Products as CSV of a spreadsheet, with various headers, encodings and delimiters.

This module does not access files. It converts bytes to rows and text.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from chalicelib.core.text import fold, line_fold
from chalicelib.core.wire import money
from chalicelib.lib.markup.csv_text import is_formula
from infra.operator import shopify_csv

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
"""Columns that a report of refused rows adds before those of the table.

An import accepts them, so a corrected report can be imported like the original table.
"""
DELIMITERS = ";,\t"
EXPORT_COLUMNS = (
    *("id", "sku", "name", "price (kopecks)", "description", "stock", "barcode"),
    *("category", "category id", "images", "status", "sort order", "created at", "updated at"),
)
"""The header of an exported table.

A table with exactly this header is read unchanged: cells keep their spaces, prices are in kopecks,
and products without an SKU are identified by their ids.
"""
ESCAPE = "\\"
"""First character of an exported cell that holds an empty text, or what could be a formula.

An empty cell means no text at all. A spreadsheet runs a formula, and callers choose the names of
products. Texts that begin with this character are escaped with it, too.
"""


class TableError(ValueError):
    """The whole table cannot be read; the message has the reason."""


class CellError(ValueError):
    """A cell cannot be read; the message has the expected format."""


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
        """The SKU, or "" if there is none."""
        return str(self.item.get("sku", ""))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of products; ``ignored`` are the unknown headers.

    ``exported`` is true if ``export-products`` has written the table.
    """

    header: Sequence[str]
    rows: Sequence[Row]
    delimiter: str
    ignored: Sequence[str]
    exported: bool = False


def read(raw: bytes, unit: Unit | None) -> Table:
    """Read a table with prices in rubles or kopecks; an exported table needs no unit.

    Raises:
        TableError: the header has no SKU, two columns have the same meaning, or the unit is missing
            or contradicts the header.
    """
    text = decode(raw)
    delimiter = max(DELIMITERS, key=lambda each: _recognized(_header_of(text, each)))
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        found = [(number, cells) for number, cells in enumerate(records, 1) if any(cells)]
    except csv.Error as error:
        msg = f"This is no CSV: {error}."
        raise TableError(msg) from None
    header = found[0][1] if found else []
    skipped = len(REPORT_COLUMNS) if tuple(header[:3]) == REPORT_COLUMNS else 0
    names: Sequence[str] = header[skipped:]
    columns = {} if shopify_csv.is_export(names) else _columns(names)
    if "price" in columns and "kopeck" in fold(names[columns["price"]]) and unit == "rubles":
        raise TableError("The header says that prices are in kopecks. Use --prices kopecks.")
    if tuple(names) == EXPORT_COLUMNS:
        rows = [_exported_row(number, cells[skipped:]) for number, cells in found[1:]]
        return Table(names, _refuse_repeated(rows), delimiter, (), exported=True)
    if unit is None:
        raise TableError("Say what the prices are in: --prices rubles, or --prices kopecks.")
    ignored = [name for name in names if name.strip() and _header(name) not in HEADERS]
    lines: Sequence[tuple[int, Sequence[str]]] = [(n, cells[skipped:]) for n, cells in found[1:]]
    if shopify_csv.is_export(names):
        ignored = shopify_csv.ignored(names)
        lines, names = shopify_csv.plain(names, lines), shopify_csv.HEADER
        columns = _columns(names)
    rows = [_row(number, cells, names, columns, unit) for number, cells in lines]
    return Table(names, _refuse_repeated(rows), delimiter, ignored)


def exported(product: Mapping[str, Any], category: Sequence[str]) -> list[str]:
    """Return the cells of a product in the order of the columns.

    ``category`` has the names of its category and of the categories above, from the top.
    """
    values = [
        product["id"],
        _escaped(product["sku"]),
        _escaped(product["name"]),
        product["price"],
        _escaped(product["description"]),
        product["stock"],
        product["barcode"],
        ESCAPE * is_formula(above := path_text(category)) + above,
        product["categoryId"],
        "|".join(image["url"] for image in product["images"]),
        *(product[name] for name in ("status", "sortOrder", "createdAt", "updatedAt")),
    ]
    return ["" if value is None else str(value) for value in values]


def path_text(names: Iterable[str]) -> str:
    """Return the path of a category: its names, separated by slashes and escaped."""
    return " / ".join(re.sub(r"[\\/]", r"\\\g<0>", name) for name in names)


def path_names(text: str) -> tuple[str, ...]:
    """Return the names of a category's path."""
    parts = re.findall(r"(?:\\.|[^\\/])+", text, re.DOTALL)
    return tuple(re.sub(r"\\(.)", r"\1", part.strip()) for part in parts)


def _escaped(text: str | None) -> str | None:
    """Escape an empty text, one that begins with the escape, and one that could be a formula."""
    if text is None or (text and not text.startswith(ESCAPE) and not is_formula(text)):
        return text
    return ESCAPE + text


def report(table: Table, refused: Sequence[tuple[Row, str]]) -> bytes:
    """Return the refused rows with their reasons, as CSV that spreadsheets can open."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=table.delimiter, lineterminator="\r\n")
    writer.writerow([*REPORT_COLUMNS, *table.header])
    for row, reason in refused:
        writer.writerow([row.number, row.sku, reason, *row.cells])
    return out.getvalue().encode("utf-8-sig")


def decode(raw: bytes) -> str:
    """Decode a file: UTF-8, UTF-16 with a byte order mark, or else Windows-1251."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1251", errors="replace")


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
    found = money.decimal(text)
    if found is None:
        msg = f'expected a number, received "{text}"'
        raise CellError(msg)
    return found


def _header_of(text: str, delimiter: str) -> list[str]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return next(filter(any, lines), [])


def _header(name: str) -> str:
    """Normalise a header: "Цена, ₽" and "ЦЕНА (руб.)" become "цена"."""
    bare = re.split(r"[,(\[]", fold(name), maxsplit=1)[0]
    return " ".join(re.sub(r"[-_\u2010-\u2015]", " ", bare).split())


def _recognized(names: Sequence[str]) -> int:
    """Count the known columns. The delimiter with the most known columns is used."""
    return len(names) if shopify_csv.is_export(names) else len(_known(names))


def _known(names: Sequence[str]) -> list[str]:
    return [HEADERS[_header(name)] for name in names if _header(name) in HEADERS]


def _columns(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each column, by field."""
    counted = Counter(_known(names))
    if "sku" not in counted:
        msg = f"No column has the header sku or артикул. Headers: {', '.join(names) or 'none'}."
        raise TableError(msg)
    if twice := [name for name, count in counted.items() if count > 1]:
        msg = f"Several columns contain {', '.join(twice)}. Leave one of each."
        raise TableError(msg)
    return {HEADERS[_header(name)]: i for i, name in enumerate(names) if _header(name) in HEADERS}


def _row(
    number: int, cells: Sequence[str], names: Sequence[str], columns: Mapping[str, int], unit: Unit
) -> Row:
    """Read a row. Empty cells are omitted, so that products keep their values."""
    given = {name: cells[i].strip() for name, i in columns.items() if i < len(cells)}
    item: dict[str, Any] = {name: text for name, text in given.items() if text}
    if any(cell.strip() for cell in cells[len(names) :]):
        fault: str | None = f"expected at most {len(names)} cells, received {len(cells)}"
        return Row(number, cells, item, fault)
    if "sku" not in item:
        return Row(number, cells, item, "sku: is required")
    for name, convert in _CONVERTED.items():
        if name in item:
            try:
                item[name] = convert(item[name], unit)
            except CellError as error:
                return Row(number, cells, item, f"{name}: {error}")
    if item.get("stock", 0) < 0:
        note = f"stock: {item['stock']} is read as 0"
        return Row(number, cells, item | {"stock": 0}, note=note)
    return Row(number, cells, item)


def _exported_row(number: int, cells: Sequence[str]) -> Row:
    """Read a row of an exported table. Empty cells are omitted, as in any table."""
    if len(cells) > len(EXPORT_COLUMNS):
        fault = f"expected at most {len(EXPORT_COLUMNS)} cells, received {len(cells)}"
        return Row(number, cells, {}, fault)
    given = zip(_EXPORT_FIELDS, cells, strict=False)
    item: dict[str, Any] = {name: text for name, text in given if text and name}
    for name in item.keys() & {"sku", "name", "description"}:
        item[name] = item[name].removeprefix(ESCAPE)
    for name, convert in {**_CONVERTED, "sortOrder": _stock}.items():
        if name in item:
            try:
                item[name] = convert(item[name], "kopecks")
            except CellError as error:
                return Row(number, cells, item, f"{name}: {error}")
    missing = "sku" not in item and "id" not in item
    return Row(number, cells, item, "sku: is required" if missing else None)


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
    return [{"url": url} for each in re.split(r"[|\r\n]+", text) if (url := each.strip())]


_EXPORT_FIELDS = (
    *("id", "sku", "name", "price", "description", "stock", "barcode"),
    *("category", "categoryId", "images", "status", "sortOrder", "", ""),
)
"""Upsert fields of the columns in an exported table; the last two are for readers only."""
_CONVERTED = {"price": kopecks, "stock": _stock, "status": _status, "images": _images}


def _refuse_repeated(rows: Sequence[Row]) -> list[Row]:
    """Refuse all rows that share an SKU, because the right one is unknown."""
    numbers: dict[str, list[int]] = {}
    for row in rows:
        numbers.setdefault(line_fold(row.sku), []).append(row.number)
    return [
        Row(
            row.number,
            row.cells,
            row.item,
            f"sku: expected once in the table, also in rows {_others(same, row.number)}",
        )
        if row.sku and len(same := numbers[line_fold(row.sku)]) > 1 and row.fault is None
        else row
        for row in rows
    ]


def _others(numbers: Sequence[int], number: int) -> str:
    return ", ".join(str(each) for each in numbers if each != number)
