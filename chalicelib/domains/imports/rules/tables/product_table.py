"""Products as CSV of a spreadsheet or a shop, with various headers, encodings and delimiters."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from chalicelib.core.text import fold, line_fold
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables import shop_products
from chalicelib.domains.imports.rules.tables.amounts import Prices, Unit, number, parse_price
from chalicelib.domains.imports.rules.tables.recognition import PRODUCTS, roles_of
from chalicelib.domains.imports.rules.tables.rows import (
    NO_CHOICES,
    REPORT_COLUMNS,
    Row,
    Table,
    chosen_roles,
    letters,
    named_columns,
    repeated_columns,
    repeated_key,
    report_cells,
    report_text,
    too_many_cells,
    unread_columns,
    without_reasons,
)
from chalicelib.domains.imports.rules.tables.shop_products import (
    MAX_CODE,
    PLAIN_HEADER,
    Line,
    Product,
)
from chalicelib.domains.imports.rules.tables.shops import OTHER, Shop
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import (
    CODES,
    ESCAPE,
    refuse_scientific,
    unmark_text,
)
from chalicelib.domains.imports.rules.tables.table_errors import CellError, TableError, UnitError
from chalicelib.domains.imports.rules.tables.text_tables import TextTable, text_table
from chalicelib.lib import barcodes, slugs
from chalicelib.lib.barcodes import BarcodeError
from chalicelib.lib.currencies import RUB

STATUSES: Mapping[str, str] = {
    **dict.fromkeys(("active", "активен", "активный", "да", "1"), "active"),
    **dict.fromkeys(("inactive", "неактивен", "неактивный", "скрыт", "нет", "0"), "inactive"),
    **dict.fromkeys(("draft", "archived", "unlisted"), "inactive"),
}
# The field of each column of an exported table. The last two columns are for readers only.
EXPORT_FIELDS: Mapping[str, str] = {
    **{name: name for name in ("id", "sku", "name")},
    "price (kopecks)": "price",
    **{name: name for name in ("description", "stock", "barcode", "category")},
    "category id": "categoryId",
    **{name: name for name in ("images", "status")},
    "sort order": "sortOrder",
    "external id": "externalId",
    "metadata": "metadata",
    "created at": "",
    "updated at": "",
}
_OF_PRICE = re.compile(r"price \((kopecks|[A-Z]{3})\)")
# The header of an exported table. In a table with ids of products, only these columns count. Its
# cells keep their spaces, and an id names a product of the workspace, whatever happened to the SKU.
EXPORT_COLUMNS = tuple(EXPORT_FIELDS)


def export_fields(currency: str) -> Mapping[str, str]:
    """Return the fields of an exported table's columns.

    Prices are in kopecks in rubles, and in units of any other currency: ``price (GBP)``.
    """
    if currency == RUB:
        return EXPORT_FIELDS
    name = f"price ({currency})"
    return {name if field == "price" else column: field for column, field in EXPORT_FIELDS.items()}


ProductField = Literal[
    "sku",
    "name",
    "price",
    "description",
    "stock",
    "barcode",
    "category",
    "images",
    "status",
    "option",
    "currency",
]
"""A field that a column can be chosen for."""
FIELDS: tuple[ProductField, ...] = get_args(ProductField)
KOPECKS = Reason.of("unit", "The header says that the prices are in kopecks.")


def read(raw: bytes, unit: Unit | None, currency: str = RUB) -> Table:
    """Read a table with prices in a currency; an exported table needs no unit.

    Raises:
        TableError: the file is no table of text, the header has no SKU, or two columns have the
            same meaning.
        UnitError: the unit is missing, contradicts the header, or is of another currency.
    """
    table = read_table(text_table(raw), unit, currency=currency, needs_sku=True)
    if table.fault:
        raise TableError(table.fault)
    return table


def read_table(
    table: TextTable,
    unit: Unit | None,
    chosen: Mapping[str, str | None] = NO_CHOICES,
    *,
    currency: str = RUB,
    needs_sku: bool = False,
) -> Table:
    """Read the products of a table.

    ``chosen`` has the fields of columns by their names (``Column``), or None for a column that is
    not read. Unless ``needs_sku``, the names of products without SKUs take their place.

    Raises:
        UnitError: the unit is missing, contradicts the header, or is of another currency.
    """
    if unit in {"rubles", "kopecks"} and currency != RUB:
        msg = f"The prices of the workspace are in {currency}, not in rubles."
        raise UnitError.of("unit", msg)
    table = without_reasons(table)
    if _is_exported(table.names, table.lines):
        return _exported_table(table, unit, currency)
    shop = PRODUCTS.shop_of(table.names)
    columns = chosen_roles(roles_of(shop, table.names), table.names, chosen, several=_SEVERAL)
    price_headers = [table.names[at] for at in columns.get("price", ())]
    if unit in {"rubles", "major"} and says_kopecks(price_headers):
        raise UnitError(KOPECKS)
    fault = _fault_of(table.names, columns, needs_sku=needs_sku) if shop is OTHER else None
    if fault:
        return Table(
            header=table.names,
            rows=(),
            delimiter=table.delimiter,
            columns=named_columns(table, columns, FIELDS),
            fault=fault,
        )
    if unit is None:
        units = "rubles or in kopecks" if currency == RUB else f"{currency} or in its minor units"
        raise UnitError.of("unit", f"Say whether the prices are in {units}.")
    return _product_table(table, shop, columns, Prices.of(unit, currency))


def says_kopecks(names: Sequence[str]) -> bool:
    """Whether headers say that prices are in kopecks."""
    return "kopeck" in fold(" ".join(names))


def _product_table(
    table: TextTable, shop: Shop, columns: Mapping[str, Sequence[int]], prices: Prices
) -> Table:
    all_lines = [Line(number, cells, columns) for number, cells in table.lines]
    totals = [line for line in all_lines if shop_products.is_total(line)]
    notes = [
        Reason.of("total", f"Row {line.number} is a total, so it is left out.", row=line.number)
        for line in totals
    ]
    lines, *said = shop_products.without_translations(
        [line for line in all_lines if line not in totals]
    )
    said += [
        shop_products.without_ids(shop, lines),
        shop_products.without_empty_stock(shop, lines),
    ]
    width = len(table.names)
    is_without_sku = shop is OTHER and not {"sku", "id"} & columns.keys()
    cells_of = {line.number: line.cells for line in lines}
    rows = []
    for product in shop_products.products(shop, lines, prices.currency):
        cells = cells_of[product.number]
        fault = product.fault
        if any(cell.strip() for cell in cells[width:]):
            fault = too_many_cells(cells, width)
        shown = cells if shop is OTHER else product.cells
        named = _named_by_name(product) if is_without_sku else product
        rows.append(_row(replace(named, fault=fault), shown, prices))
    net = [at for at in columns.get("net price", ()) if any(at in line.used for line in lines)]
    notes += [
        Reason.of("net", f'The prices in "{name}" may be without tax.', text=name)
        for name in (table.names[at] for at in net)
    ]
    refused = {row.number for row in rows if row.fault}
    ignored, partly_read = unread_columns(
        table.names, [line for line in lines if line.number not in refused] or lines
    )
    if is_without_sku:
        msg = "No column has SKUs, so they are made from the names."
        notes.append(Reason.of("made_skus", msg))
    return Table(
        columns=named_columns(table, columns, FIELDS, unread=ignored),
        header=table.names if shop is OTHER else PLAIN_HEADER,
        rows=refuse_repeated(rows),
        delimiter=table.delimiter,
        shop=shop.name,
        ignored=ignored,
        partly_read=partly_read,
        notes=[*notes, *filter(None, said)],
        codes=frozenset(at for role in ("sku", "id", "barcode") for at in columns.get(role, ()))
        if shop is OTHER
        else frozenset(map(PLAIN_HEADER.index, CODES.intersection(PLAIN_HEADER))),
    )


def _named_by_name(product: Product) -> Product:
    # The code must be the same in the next table of the same person.
    name = " ".join((product.values.get("name", ""), *product.options))
    code = slugs.slugify(name, fallback="")[:MAX_CODE].strip("-")
    return replace(product, values={**product.values, "sku": code} if code else product.values)


def _exported_table(table: TextTable, unit: Unit | None, currency: str) -> Table:
    # The header of a table that was exported here says what its prices are counted in.
    names, known = table.names, export_fields(currency)
    if other := [name for name in names if _OF_PRICE.fullmatch(name.strip())]:
        if known.get(other[0].strip()) != "price":
            msg = f"{other[0].strip()}: the prices of the workspace are in {currency}."
            raise UnitError.of("unit", msg)
        if unit in ({"rubles", "major"} if currency == RUB else {"minor"}):
            said = Reason.of("unit", "The header says what the prices are in.")
            raise UnitError(KOPECKS if currency == RUB else said)
    fields = [known.get(name.strip(), "") for name in names]
    prices = Prices(currency, is_minor=currency == RUB)
    rows = [_exported_row(number, cells, prices, fields=fields) for number, cells in table.lines]
    ignored = [
        name.strip() or f"column {letters(at)}"
        for at, name in enumerate(names)
        if name.strip() not in known
        and any(cells[at].strip() for _, cells in table.lines if at < len(cells))
    ]
    return Table(
        header=names,
        rows=refuse_repeated(rows),
        delimiter=table.delimiter,
        ignored=ignored,
        columns=named_columns(
            table, {name: [at] for at, name in enumerate(fields) if name}, tuple(known)
        ),
    )


def report(table: Table, refusals: Sequence[tuple[Row, str]]) -> bytes:
    """Return the refused rows with their reasons, as CSV that spreadsheets can open."""
    lines = [
        [str(row.number), row.sku, reason, *report_cells(row, table.codes)]
        for row, reason in refusals
    ]
    return report_text((*REPORT_COLUMNS, *table.header), lines, delimiter=table.delimiter)


_ID = re.compile("[0-9A-HJKMNP-TV-Z]{26}")


def _is_exported(names: Sequence[str], lines: Sequence[tuple[int, Sequence[str]]]) -> bool:
    if len(names) == len(EXPORT_FIELDS) and all(
        name == known or (_OF_PRICE.fullmatch(name) and _OF_PRICE.fullmatch(known))
        for name, known in zip(names, EXPORT_FIELDS, strict=True)
    ):
        return True
    bare = [name.strip() for name in names]
    column = bare.index("id") if "id" in bare else len(bare)
    ids = [cells[column] for _, cells in lines if column < len(cells)]
    return any(map(_ID.fullmatch, ids))


def _fault_of(
    names: Sequence[str], columns: Mapping[str, Sequence[int]], *, needs_sku: bool
) -> Reason | None:
    wanted = ("sku", "id") if needs_sku else ("sku", "id", "name")
    if not any(role in columns for role in wanted):
        shown = ", ".join(filter(None, names[:_SHOWN_HEADERS])) or "none"
        msg = f"No column has the header sku or артикул. Headers: {shown}."
        return Reason.of("no_sku_column", msg, text=shown)
    if twice := [role for role, at in columns.items() if len(at) > 1 and role not in _SEVERAL]:
        return repeated_columns(twice, "Leave")
    return None


_SHOWN_HEADERS = 30
NO_SKU = Reason.of("required", "is required").about("sku")
# Roles that several columns of a table may have.
_SEVERAL = frozenset({"barcode", "id", "images", "option"})


def _row(product: Product, cells: Sequence[str], prices: Prices) -> Row:
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
        return Row(product.number, cells, item, NO_SKU)
    fault = _convert(item, product.values, prices, notes)
    if fault is not None:
        return Row(product.number, cells, item, fault)
    item |= dict.fromkeys(product.without)
    return Row(product.number, cells, item, notes=notes)


def _exported_row(
    number: int, cells: Sequence[str], prices: Prices, *, fields: Sequence[str]
) -> Row:
    if any(cell.strip() for cell in cells[len(fields) :]):
        return Row(number, cells, {}, too_many_cells(cells, len(fields)))
    row_cells = {name: cell for name, cell in zip(fields, cells, strict=False) if cell and name}
    item: dict[str, Any] = {
        name: cell.removeprefix(ESCAPE) if cell.startswith(ESCAPE) else _typed_text(name, cell=cell)
        for name, cell in row_cells.items()
        if name != "category"
    }
    if "category" in row_cells:
        item["category"] = row_cells["category"]
    if "id" in item and not _ID.fullmatch(item["id"]):
        msg = "expected the id of a product, as it was exported"
        return Row(number, cells, item, Reason.of("wrong_id", msg).about("id"))
    if "sku" not in item and "id" not in item:
        return Row(number, cells, item, NO_SKU)
    notes: list[Reason] = []
    return Row(number, cells, item, _convert(item, row_cells, prices, notes), notes)


def _typed_text(name: str, *, cell: str) -> str:
    text = unmark_text(cell)
    if name not in {*CODES, "name"}:
        return text
    return " ".join(filter(None, map(str.strip, re.split(r"[\r\n]+", text))))


def _convert(
    item: dict[str, Any], cells: Mapping[str, str], prices: Prices, notes: list[Reason]
) -> Reason | None:
    # A barcode that is none is left out, because the product can be sold without it.
    stock = item.get("stock", "")
    for name, convert in _CONVERTED.items():
        if name in item:
            try:
                item[name] = convert(item[name], prices)
            except CellError as error:
                return error.reason.about(name)
    if item.get("stock", 0) < 0 or _THOUSANDS.fullmatch(stock):
        item["stock"] = max(0, item["stock"])
        msg = f"{stock} is read as {item['stock']}"
        notes.append(Reason.of("read_as", msg, text=stock, value=item["stock"]).about("stock"))
    for name in ("sku", "externalId"):
        try:
            refuse_scientific(cells.get(name, ""))
        except CellError as error:
            return error.reason.about(name)
    if "barcode" in item:
        try:
            refuse_scientific(cells["barcode"])
            item["barcode"], others = _barcode(item["barcode"])
        except (BarcodeError, CellError) as error:
            notes.append(Reason.of("barcode", f"barcode: left out: {error}"))
            del item["barcode"]
        else:
            notes += [
                Reason.of(
                    "one_barcode", f"barcode: {other} left out, as a product has one", text=other
                )
                for other in others
            ]
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


def _stock(text: str, _: Prices) -> int:
    pieces = number(text)
    if pieces != int(pieces):
        raise CellError.of("not_a_number", f'expected a whole number, received "{text}"', text=text)
    return int(pieces)


def _status(text: str, _: Prices) -> str:
    if fold(text) not in STATUSES:
        msg = f'expected active or inactive, received "{text}"'
        raise CellError.of("unknown_status", msg, text=text)
    return STATUSES[fold(text)]


def _images(text: str, _: Prices) -> list[dict[str, str]]:
    return [{"url": url} for address in re.split(r"[|\r\n]+", text) if (url := address.strip())]


def _metadata(text: str, _: Prices) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        msg = 'expected a JSON object, such as {"shelf": "A7"}'
        raise CellError.of("no_object", msg)
    return metadata


_CONVERTED = {
    "price": parse_price,
    "stock": _stock,
    "sortOrder": _stock,
    "status": _status,
    "images": _images,
    "metadata": _metadata,
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
            fault=repeated_key(name, (number for number in same if number != row.number)),
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
