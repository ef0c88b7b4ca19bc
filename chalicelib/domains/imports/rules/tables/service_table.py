"""Services as a table of a spreadsheet or of another booking program."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from chalicelib.core.text import fold
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.amounts import Prices, parse_price
from chalicelib.domains.imports.rules.tables.flag_words import NO, YES
from chalicelib.domains.imports.rules.tables.recognition import Dialects, roles_of
from chalicelib.domains.imports.rules.tables.rows import (
    NO_CHOICES,
    Row,
    Table,
    chosen_roles,
    named_columns,
    repeated_columns,
    repeated_key,
    unread_columns,
    without_reasons,
)
from chalicelib.domains.imports.rules.tables.shop_products import Line, is_total, readable
from chalicelib.domains.imports.rules.tables.shops import Shop, marks, roles
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import unmark_text
from chalicelib.domains.imports.rules.tables.table_errors import CellError
from chalicelib.domains.imports.rules.tables.text_tables import TextTable

ServiceField = Literal[
    "name", "durationMin", "price", "description", "category", "status", "externalId"
]
"""A field that a column can be chosen for."""
FIELDS: tuple[ServiceField, ...] = get_args(ServiceField)
_HOURS = r"(\d{1,6}(?:[.,]\d{1,6})?)\s*(?:ч|час|часа|часов|h|hr|hrs|hour|hours)\.?"
_MINUTES = r"(\d{1,6})\s*(?:м|мин|минут|минуты|минута|min|mins|minutes|minute|m)\.?"
# The whole text, because a part that is not understood may be a day, or the end of a range.
_LENGTH = re.compile(rf"{_HOURS}(?:(?:\s|,|и|and)*{_MINUTES})?|{_MINUTES}")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::00)?")
_SECONDS_IN_HEADER = re.compile(r"\b(?:сек|секунд\w*|sec|seconds?)\b")
_HOURS_IN_HEADER = re.compile(r"\b(?:ч|час\w*|h|hours?)\b")
_FROM = re.compile(r"^\s*(?:от|from)\s+", re.IGNORECASE)
_RANGE = re.compile(r"(?<=\d)\s*[-\u2010-\u2015]\s*(?=\d)")

OTHER = Shop(
    name="",
    marks=(),
    columns=roles(
        name=(
            *("название", "наименование", "услуга", "название услуги", "наименование услуги"),
            *("name", "title", "service", "service name"),
        ),
        durationMin=(
            *("длительность", "продолжительность", "время", "длительность услуги"),
            *("длительность мин", "длительность сек", "длительность минут", "минут"),
            *("duration", "duration min", "duration minutes", "length", "durationmin"),
        ),
        price=(
            *("цена", "стоимость", "цена от", "стоимость от", "минимальная цена", "цена услуги"),
            *("цена мин", "стоимость минимальная", "минимальная стоимость", "price min"),
            *("price", "cost", "service price", "price from"),
        ),
        description=("описание", "комментарий", "description", "service description"),
        category=("категория", "категория услуги", "группа", "category", "service category"),
        status=("статус", "активна", "status", "active"),
        externalId=(
            *("id", "id услуги", "код", "код услуги", "артикул", "external id", "externalid"),
            *("service id", "sku"),
        ),
    ),
)
PROGRAMS = (
    Shop(
        name="YCLIENTS",
        marks=marks(
            "название;цена от;цена до;длительность",
            "название;стоимость от;стоимость до;длительность",
            "название;минимальная стоимость;максимальная стоимость",
            "услуга;категория;цена от;цена до",
            "название;стоимость минимальная;стоимость максимальная",
        ),
        columns=OTHER.columns,
    ),
    Shop(
        name="Fresha",
        marks=marks("service name;retail price;duration", "service name;price;treatment type"),
        columns={**OTHER.columns, **roles(price=("retail price", "price"))},
    ),
)
SERVICES = Dialects(PROGRAMS, OTHER)


def read_table(
    table: TextTable, prices: Prices, chosen: Mapping[str, str | None] = NO_CHOICES
) -> Table:
    """Read the services of a table.

    ``chosen`` has the fields of columns by their names (``Column``), or None for a column that is
    not read.
    """
    table = without_reasons(table)
    program = SERVICES.shop_of(table.names)
    columns = chosen_roles(roles_of(program, table.names), table.names, chosen, several=())
    fault = None
    if "name" not in columns:
        msg = "No column has the names of the services. Choose the column."
        fault = Reason.of("no_name_column", msg)
    elif twice := [role for role, at in columns.items() if len(at) > 1]:
        fault = repeated_columns(twice, "Choose")
    headers = {
        role: fold(" ".join(table.names[at] for at in indexes)) for role, indexes in columns.items()
    }
    lines = [Line(number, cells, columns) for number, cells in table.lines]
    lines = [line for line in lines if not is_total(line)]
    rows = [_row(line, headers, prices) for line in ([] if fault else lines)]
    ignored, partly_read = unread_columns(table.names, lines)
    return Table(
        header=table.names,
        rows=_refuse_repeated(rows),
        delimiter=table.delimiter,
        shop=program.name,
        ignored=() if fault else ignored,
        partly_read={} if fault else partly_read,
        columns=named_columns(table, columns, FIELDS, unread=() if fault else ignored),
        codes=frozenset(columns.get("externalId", ())),
        fault=fault,
    )


def _row(line: Line, headers: Mapping[str, str], prices: Prices) -> Row:
    notes: list[Reason] = []
    item: dict[str, Any] = {}
    fault = None
    texts = {name: unmark_text(line.one(name)).strip() for name in FIELDS}
    for name in ("name", "externalId", "category"):
        if text := " ".join(texts[name].split()):
            item[name] = text
    if text := readable(texts["description"]):
        item["description"] = text
    try:
        if texts["durationMin"]:
            item["durationMin"] = minutes(texts["durationMin"], headers["durationMin"])
        if texts["price"]:
            item["price"] = _price(texts["price"], prices, notes)
        if texts["status"]:
            item["status"] = _status(texts["status"])
    except CellError as error:
        fault = error.reason
    if "name" not in item:
        fault = Reason.of("required", "is required").about("name")
    return Row(line.number, line.cells, item, fault, notes)


def minutes(text: str, header: str = "") -> int:
    """Read a duration as programs and people write it, or raise CellError.

    >>> minutes("1 ч 30 мин"), minutes("1:30"), minutes("90"), minutes("5400", "duration sec")
    (90, 90, 90, 90)
    """
    bare = fold(text)
    if clock := _CLOCK.fullmatch(bare):
        return int(clock[1]) * 60 + int(clock[2])
    if length := _LENGTH.fullmatch(bare):
        hours, rest, only = length.groups(default="0")
        return round(float(hours.replace(",", ".")) * 60) + int(rest) + int(only)
    if re.fullmatch(r"\d+(?:[.,]\d+)?", bare):
        value = float(bare.replace(",", "."))
        if _SECONDS_IN_HEADER.search(header):
            return round(value / 60)
        return round(value * 60) if _HOURS_IN_HEADER.search(header) else round(value)
    msg = f'durationMin: expected a length such as "90", "1:30" or "1 h 30 min", received "{text}"'
    raise CellError.of("not_a_duration", msg, text=text)


def _price(text: str, prices: Prices, notes: list[Reason]) -> int:
    lowest = _RANGE.split(_FROM.sub("", text))[0]
    try:
        amount = parse_price(lowest, prices)
    except CellError as error:
        raise CellError(error.reason.about("price")) from None
    if lowest != text:
        said = Reason.of("read_as", f"{text} is read as {lowest}", text=text, value=lowest)
        notes.append(said.about("price"))
    return amount


def _status(text: str) -> str:
    word = fold(text)
    if word in YES:
        return "active"
    if word in NO:
        return "inactive"
    msg = f'status: expected active or inactive, received "{text}"'
    raise CellError.of("unknown_status", msg, text=text)


def _refuse_repeated(rows: Sequence[Row]) -> list[Row]:
    numbers: dict[str, list[int]] = {}
    for row in rows:
        numbers.setdefault(_key(row), []).append(row.number)
    kept = []
    for row in rows:
        others = [number for number in numbers[_key(row)] if number != row.number]
        if row.fault is None and others:
            name = "externalId" if "externalId" in row.item else "name"
            kept.append(replace(row, fault=repeated_key(name, others)))
        else:
            kept.append(row)
    return kept


def _key(row: Row) -> str:
    return row.item.get("externalId") or fold(row.item.get("name", f"\n{row.number}"))
