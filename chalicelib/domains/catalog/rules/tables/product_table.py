"""Products as CSV of a spreadsheet or a shop, with various headers, encodings and delimiters."""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chalicelib.core.text import fold, line_fold
from chalicelib.domains.catalog.rules.tables import shop_products
from chalicelib.domains.catalog.rules.tables.amounts import Unit, kopecks, number
from chalicelib.domains.catalog.rules.tables.recognition import roles_of, shop_of
from chalicelib.domains.catalog.rules.tables.shop_products import PLAIN_HEADER, Line, Product
from chalicelib.domains.catalog.rules.tables.shops import OTHER, Role, Shop
from chalicelib.domains.catalog.rules.tables.spreadsheet_cells import (
    CODES,
    ESCAPE,
    is_value,
    refuse_scientific,
    unmark_text,
)
from chalicelib.domains.catalog.rules.tables.table_errors import CellError, TableError, UnitError
from chalicelib.domains.catalog.rules.tables.text_tables import TextTable, text_table
from chalicelib.lib import barcodes
from chalicelib.lib.barcodes import BarcodeError

STATUSES: Mapping[str, str] = {
    **dict.fromkeys(("active", "активен", "активный", "да", "1"), "active"),
    **dict.fromkeys(("inactive", "неактивен", "неактивный", "скрыт", "нет", "0"), "inactive"),
    **dict.fromkeys(("draft", "archived", "unlisted"), "inactive"),
}
# Columns that a report of refused rows adds before the table's columns. An import accepts them, so
# a corrected report can be imported like the original table.
REPORT_COLUMNS = ("row", "sku", "reason")
# The field of each column of an exported table. The last two columns are for readers only.
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
# The header of an exported table. In a table with ids of products, only these columns count. Its
# cells keep their spaces, and an id names a product of the workspace, whatever happened to the SKU.
EXPORT_COLUMNS = tuple(EXPORT_FIELDS)
KOPECKS = "The header says that the prices are in kopecks."


@dataclass(frozen=True, slots=True)
class Row:
    number: int  # as spreadsheets count: the header is row 1
    cells: Sequence[str]
    # The input of an upsert, but with ``category`` as a path (``category_path``). A row of an
    # exported table also has ``id`` and ``categoryId``.
    item: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None  # reason to refuse the row
    notes: Sequence[str] = ()  # values that were read differently or left out

    @property
    def sku(self) -> str:
        return str(self.item.get("sku", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of products, and a report of what is not read."""

    header: Sequence[str]  # for a report of refused rows, as the cells of ``rows``
    rows: Sequence[Row]
    delimiter: str
    shop: str = ""  # name of the shop whose table it is, or ""
    ignored: Sequence[str] = ()  # headers of the columns that are not read
    # number of rows in which a column is not read, if it is in others
    partly_read: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()  # sentences about the whole table
    # columns whose numbers are names, which a spreadsheet must not rewrite
    codes: frozenset[int] = frozenset()


def read(raw: bytes, unit: Unit | None) -> Table:
    """Read a table with prices in rubles or kopecks; an exported table needs no unit.

    Raises:
        TableError: the file is no table of text, the header has no SKU, or two columns have the
            same meaning.
        UnitError: the unit is missing or contradicts the header.
    """
    table = text_table(raw)
    if tuple(table.names[:3]) == REPORT_COLUMNS:
        skipped = len(REPORT_COLUMNS)
        lines = [(number, cells[skipped:]) for number, cells in table.lines]
        table = replace(table, names=table.names[skipped:], lines=lines)
    if _is_exported(table.names, table.lines):
        return _exported_table(table, unit)
    shop = shop_of(table.names)
    columns = roles_of(shop, table.names)
    if shop is OTHER:
        _check_columns(table.names, columns)
    price_headers = fold(" ".join(table.names[at] for at in columns.get("price", ())))
    if "kopeck" in price_headers and unit == "rubles":
        raise UnitError(KOPECKS)
    if unit is None:
        raise UnitError("Say whether the prices are in rubles or in kopecks.")
    return _product_table(table, shop, columns, unit)


def _product_table(
    table: TextTable, shop: Shop, columns: Mapping[Role, Sequence[int]], unit: Unit
) -> Table:
    all_lines = [Line(number, cells, columns) for number, cells in table.lines]
    totals = [line for line in all_lines if shop_products.is_total(line)]
    notes = [f"Row {line.number} is a total, so it is left out." for line in totals]
    lines, *sentences = shop_products.without_translations(
        [line for line in all_lines if line not in totals]
    )
    sentences += [
        shop_products.without_ids(shop, lines),
        shop_products.without_empty_stock(shop, lines),
    ]
    width = len(table.names)
    cells_of = {line.number: line.cells for line in lines}
    rows = []
    for product in shop_products.products(shop, lines):
        cells = cells_of[product.number]
        fault = product.fault
        if any(cell.strip() for cell in cells[width:]):
            fault = f"expected at most {width} cells, received {len(cells)}"
        shown = cells if shop is OTHER else product.cells
        rows.append(_row(replace(product, fault=fault), shown, unit))
    net = [at for at in columns.get("net price", ()) if any(at in line.used for line in lines)]
    notes += [f'The prices in "{table.names[at]}" may be without tax.' for at in net]
    refused = {row.number for row in rows if row.fault}
    ignored, partly_read = _unread(
        table.names, [line for line in lines if line.number not in refused] or lines
    )
    return Table(
        header=table.names if shop is OTHER else PLAIN_HEADER,
        rows=refuse_repeated(rows),
        delimiter=table.delimiter,
        shop=shop.name,
        ignored=ignored,
        partly_read=partly_read,
        notes=[*notes, *filter(None, sentences)],
        codes=frozenset(at for role in ("sku", "id", "barcode") for at in columns.get(role, ()))
        if shop is OTHER
        else frozenset(map(PLAIN_HEADER.index, CODES)),
    )


def _unread(names: Sequence[str], lines: Sequence[Line]) -> tuple[list[str], dict[str, int]]:
    # The columns that are not read, and the number of rows in which others are not read.
    filled: Counter[int] = Counter()
    read_cells: Counter[int] = Counter()
    for line in lines:
        filled.update(at for at, cell in enumerate(line.cells[: len(names)]) if cell.strip())
        read_cells.update(line.used)
    ignored: list[str] = []
    partly_read: Counter[str] = Counter()
    for at in sorted(filled):
        name = names[at] or f"column {_letters(at)}"
        if not read_cells[at] and name not in ignored:
            ignored.append(name)
        elif read_cells[at] and (unread := filled[at] - read_cells[at]):
            partly_read[name] += unread
    return ignored, dict(partly_read)


def _letters(index: int) -> str:
    # As a spreadsheet shows columns: 0 is A, 26 is AA.
    letters = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def _exported_table(table: TextTable, unit: Unit | None) -> Table:
    # The prices of a table that was exported here are in kopecks.
    names = table.names
    fields = [EXPORT_FIELDS.get(name.strip(), "") for name in names]
    if "price" in fields and unit == "rubles":
        raise UnitError(KOPECKS)
    rows = [_exported_row(number, cells, fields=fields) for number, cells in table.lines]
    ignored = [
        name.strip() or f"column {_letters(at)}"
        for at, name in enumerate(names)
        if name.strip() not in EXPORT_FIELDS
        and any(cells[at].strip() for _, cells in table.lines if at < len(cells))
    ]
    return Table(
        header=names, rows=refuse_repeated(rows), delimiter=table.delimiter, ignored=ignored
    )


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


_ID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")


def _is_exported(names: Sequence[str], lines: Sequence[tuple[int, Sequence[str]]]) -> bool:
    if tuple(names) == EXPORT_COLUMNS:
        return True
    bare = [name.strip() for name in names]
    column = bare.index("id") if "id" in bare else len(bare)
    ids = [cells[column] for _, cells in lines if column < len(cells)]
    return any(map(_ID.fullmatch, ids))


def _check_columns(names: Sequence[str], columns: Mapping[Role, Sequence[int]]) -> None:
    if "sku" not in columns and "id" not in columns:
        shown = ", ".join(filter(None, names[:_SHOWN_HEADERS])) or "none"
        msg = f"No column has the header sku or артикул. Headers: {shown}."
        raise TableError(msg)
    if twice := [role for role, at in columns.items() if len(at) > 1 and role not in _SEVERAL]:
        msg = f"Several columns contain {', '.join(twice)}. Leave one of each."
        raise TableError(msg)


_SHOWN_HEADERS = 30
# Roles that several columns of a table may have.
_SEVERAL = frozenset({"barcode", "id", "images", "option"})


def _row(product: Product, cells: Sequence[str], unit: Unit) -> Row:
    # Empty cells are left out, so that products keep their values.
    item: dict[str, Any] = {
        name: text
        for name, cell in product.values.items()
        if (text := _typed_text(name, cell=cell))
    }
    notes = list(product.notes)
    if product.fault is not None:
        return Row(product.number, cells, item, product.fault)
    if "sku" not in item:
        return Row(product.number, cells, item, "sku: is required")
    fault = _convert(item, product.values, unit, notes)
    if fault is not None:
        return Row(product.number, cells, item, fault)
    item |= dict.fromkeys(product.without)
    return Row(product.number, cells, item, notes=notes)


def _exported_row(number: int, cells: Sequence[str], *, fields: Sequence[str]) -> Row:
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
    notes: list[str] = []
    return Row(number, cells, item, _convert(item, row_cells, "kopecks", notes), notes)


def _typed_text(name: str, *, cell: str) -> str:
    text = unmark_text(cell)
    if name not in {*CODES, "name"}:
        return text
    return " ".join(filter(None, map(str.strip, re.split(r"[\r\n]+", text))))


def _convert(
    item: dict[str, Any], cells: Mapping[str, str], unit: Unit, notes: list[str]
) -> str | None:
    # A barcode that is none is left out, because the product can be sold without it.
    stock = item.get("stock", "")
    for name, convert in _CONVERTED.items():
        if name in item:
            try:
                item[name] = convert(item[name], unit)
            except CellError as error:
                return f"{name}: {error}"
    if item.get("stock", 0) < 0 or _THOUSANDS.fullmatch(stock):
        notes.append(f"stock: {stock} is read as {max(0, item['stock'])}")
        item["stock"] = max(0, item["stock"])
    try:
        refuse_scientific("sku", cell=cells.get("sku", ""))
    except CellError as error:
        return str(error)
    if "barcode" in item:
        try:
            refuse_scientific("barcode", cell=cells["barcode"])
            item["barcode"], others = _barcode(item["barcode"])
        except (BarcodeError, CellError) as error:
            notes.append(f"barcode: left out: {str(error).removeprefix('barcode: ')}")
            del item["barcode"]
        else:
            notes += [f"barcode: {other} left out, as a product has one" for other in others]
    return None


# A count that is thousands in English, and one with three decimals in Russian.
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}[.,][0-9]{3}")


def _barcode(text: str) -> tuple[str, list[str]]:
    # The cell's first barcode, with the zeros that a spreadsheet dropped, and the others.
    whole = _whole_barcode(text)
    parts = [part for part in re.split(r"[;,|\s]+", text) if part]
    valid = [part for part in parts if _is_barcode(_whole_barcode(part))]
    if _is_barcode(whole) or not valid:
        barcodes.parse(whole)
        return whole, []
    return _whole_barcode(valid[0]), [part for part in parts if part != valid[0]]


def _whole_barcode(text: str) -> str:
    padded = text.zfill(_LENGTHS.get(len(text), 0)) if text.isdecimal() else text
    return padded if _is_barcode(padded) else text


_LENGTHS = {7: 8, 10: 12, 11: 12}  # Lengths of barcodes without their first zeros, and with them.


def _is_barcode(text: str) -> bool:
    try:
        barcodes.parse(text)
    except BarcodeError:
        return False
    return True


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
    record_id = row.item.get("id")
    if record_id and (live is None or record_id in live or not row.sku):
        return "id", str(record_id)
    return ("sku", line_fold(row.sku)) if row.sku else ("", str(row.number))


def _others(numbers: Sequence[int], number: int) -> str:
    return ", ".join(str(row_number) for row_number in numbers if row_number != number)
