"""Clients as a table of a spreadsheet, of another program, or of vCards."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, get_args

from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.birthdays import BirthdayColumn
from chalicelib.domains.imports.rules.tables.recognition import Dialects, roles_of
from chalicelib.domains.imports.rules.tables.rows import (
    NO_CHOICES,
    Row,
    Table,
    chosen_roles,
    named_columns,
    unread_columns,
    without_reasons,
)
from chalicelib.domains.imports.rules.tables.shop_products import Line, is_total
from chalicelib.domains.imports.rules.tables.shops import Shop, marks, roles
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import unmark_text
from chalicelib.domains.imports.rules.tables.text_tables import TextTable
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import MAX_NAME

ClientField = Literal[
    "name", "lastName", "phone", "email", "birthday", "tags", "notes", "externalId"
]
"""A field that a column can be chosen for. ``lastName`` follows ``name``."""
FIELDS: tuple[ClientField, ...] = get_args(ClientField)
MAX_TAGS, MAX_TAG, MAX_NOTES = 20, 50, 5000
_SEVERAL = frozenset(FIELDS) - {"birthday", "externalId"}
_KEYS = ("email", "phone", "externalId")
# Google writes several values of one kind in one cell, and vCards have a line for each.
_VALUES = re.compile(r":::|[\r\n]+")
_TAGS = re.compile(r":::|[,;|\r\n]")
# Phones of one cell. A comma or a semicolon may also stand before an extension.
_PHONES = re.compile(r":::|[;|/\r\n]|,(?=\s{0,9}(?:\+|8|7|\d{3}))")
_GROUPS_OF_GOOGLE = frozenset({"* mycontacts", "mycontacts", "* starred", "my contacts"})

OTHER = Shop(
    name="",
    marks=(),
    columns=roles(
        name=(
            *("имя", "фио", "ф.и.о.", "ф.и.о", "клиент", "имя клиента", "фио клиента", "контакт"),
            *("имя и фамилия", "фамилия имя отчество", "наименование", "полное имя"),
            *("name", "full name", "client", "client name", "customer", "customer name"),
            *("first name", "given name", "contact name"),
        ),
        middleName=("отчество", "middle name", "additional name"),
        lastName=("фамилия", "last name", "family name", "surname"),
        phone=(
            *("телефон", "телефон #", "номер телефона", "мобильный телефон", "мобильный", "тел"),
            *("тел.", "контактный телефон", "номер", "сотовый", "сотовый телефон"),
            *("phone", "phone #", "phone number", "mobile", "mobile phone", "mobile number"),
            *("telephone", "cell", "cell phone", "tel", "contact number"),
            *("телефон*", "мобильный*", "phone*", "mobile*"),
        ),
        email=(
            *("email", "e mail", "email #", "e mail #", "почта", "эл. почта", "эл почта"),
            *("электронная почта", "адрес электронной почты", "mail", "email address"),
            *("e mail address", "имейл", "email*", "e mail*", "почта*"),
        ),
        birthday=(
            *("день рождения", "дата рождения", "дата рожд.", "др", "д.р.", "рождение"),
            *("birthday", "birth date", "birthdate", "date of birth", "dob", "bday"),
        ),
        tags=("теги", "метки", "tags", "labels", "категория", "категории", "группа", "группы"),
        notes=(
            *("комментарий", "комментарии", "заметка", "заметки", "примечание", "примечания"),
            *("notes", "note", "comment", "comments", "описание", "client notes"),
        ),
        externalId=(
            *("id", "external id", "externalid", "client id", "customer id", "id клиента"),
            *("код", "код клиента", "uid", "id in your system", "номер в вашей системе"),
        ),
    ),
)
PROGRAMS = (
    Shop(
        name="Google Contacts",
        marks=marks("e mail # value", "phone # value", "given name;group membership"),
        columns=roles(
            fullName="name",
            name=("first name", "given name"),
            middleName=("middle name", "additional name"),
            lastName=("last name", "family name"),
            phone="phone # value",
            email="e mail # value",
            birthday="birthday",
            notes="notes",
            tags=("labels", "group membership"),
            company=("organization name", "organization # name"),
        ),
    ),
    Shop(
        name="Outlook",
        marks=marks("first name;e mail address;mobile phone", "имя;адрес эл. почты"),
        columns=roles(
            name=("first name", "имя"),
            middleName=("middle name", "отчество"),
            lastName=("last name", "фамилия"),
            phone=(
                *("mobile phone", "primary phone", "home phone", "home phone #"),
                *("business phone", "business phone #", "other phone", "company main phone"),
                *("телефон переносной", "основной телефон", "домашний телефон"),
                *("домашний телефон #", "рабочий телефон", "рабочий телефон #", "другой телефон"),
            ),
            email=(
                *("e mail address", "e mail # address", "адрес эл. почты"),
                "адрес # эл. почты",
            ),
            birthday=("birthday", "день рождения"),
            notes=("notes", "заметки"),
            tags=("categories", "категории"),
            company=("company", "организация"),
        ),
    ),
    Shop(
        name="YCLIENTS",
        marks=marks(
            "имя;телефон;количество посещений",
            "имя;телефон;визиты",
            "имя;телефон;количество визитов",
            "имя;телефон;первый визит",
            "имя;телефон;последний визит",
            "клиент;телефон;последний визит",
        ),
        columns={
            **OTHER.columns,
            **roles(tags=("категории", "категория", "теги"), externalId=("id", "id клиента")),
        },
    ),
    Shop(
        name="Shopify",
        marks=marks("first name;last name;email;accepts email marketing;default address phone"),
        columns=roles(
            externalId="customer id",
            name="first name",
            lastName="last name",
            email="email",
            phone=("phone", "default address phone"),
            company="default address company",
            notes="note",
            tags="tags",
        ),
    ),
)
CLIENTS = Dialects(PROGRAMS, OTHER)


@dataclass(frozen=True, slots=True)
class _Read:
    item: dict[str, Any]
    notes: list[Reason]
    fault: Reason | None = None


def read_table(
    table: TextTable, country: str, chosen: Mapping[str, str | None] = NO_CHOICES
) -> Table:
    """Read the clients of a table, with phones of a country unless they have a country code.

    ``chosen`` has the fields of columns by their names (``Column``), or None for a column that is
    not read. A row that repeats an earlier one is refused, because a client has one row.
    """
    table = without_reasons(table)
    program = CLIENTS.shop_of(table.names)
    columns = chosen_roles(roles_of(program, table.names), table.names, chosen, several=_SEVERAL)
    fault = None
    if not any(key in columns for key in _KEYS):
        fault = Reason.of(
            "no_contact_column",
            "No column has phones, e-mail addresses or ids. Choose such a column.",
        )
    lines = [Line(number, cells, columns) for number, cells in table.lines]
    lines = [line for line in lines if not is_total(line)]
    births = {
        index: BirthdayColumn(_cells(lines, index), country)
        for index in columns.get("birthday", ())
    }
    readings = [(line, _row(line, country, births)) for line in ([] if fault else lines)]
    ignored, partly_read = unread_columns(table.names, lines)
    rows = [
        Row(line.number, line.cells, reading.item, reading.fault, reading.notes)
        for line, reading in readings
    ]
    return Table(
        header=table.names,
        rows=_without_repeats(rows),
        delimiter=table.delimiter,
        shop=program.name,
        ignored=() if fault else ignored,
        partly_read={} if fault else partly_read,
        notes=[
            Reason.of(
                "day_first" if order == "day" else "month_first",
                f'The dates in "{table.names[index]}" are read with the {order} first, as in '
                f"{country}.",
                text=table.names[index],
            )
            for index, column in births.items()
            if (order := column.order_of_country)
        ],
        columns=named_columns(table, columns, FIELDS, unread=() if fault else ignored),
        codes=frozenset(columns.get("externalId", ())) | frozenset(columns.get("phone", ())),
        fault=fault,
    )


def _cells(lines: Sequence[Line], index: int) -> Iterator[str]:
    return (line.cells[index] for line in lines if index < len(line.cells))


def _row(line: Line, country: str, births: Mapping[int, BirthdayColumn]) -> _Read:
    notes: list[Reason] = []
    item: dict[str, Any] = {}
    if name := _name(line):
        item["name"] = name[:MAX_NAME]
    kept = [unmark_text(text) for text in line.all("notes")]
    numbers = list(_several(line, "phone", _PHONES))
    if numbers:
        found = {each: phones.find_phone(each, country=country) for each in numbers}
        valid = [each for each in numbers if found[each]]
        item["phone"] = (valid or numbers)[0][: phones.MAX_CHARACTERS]
        others = [
            each
            for each in numbers
            if each != item["phone"] and (found[each] is None or found[each] != found[valid[0]])
        ]
        kept += [f"Tel. {each}" for each in others]
    mails = {each: emails.find_email(each) for each in _several(line, "email", _PHONES)}
    valid_mails = list(dict.fromkeys(filter(None, mails.values())))
    if valid_mails:
        item["email"] = valid_mails[0]
        kept += valid_mails[1:]
    wrong = [each for each, address in mails.items() if address is None]
    notes += [
        Reason.of("no_email", f"email: {each} left out, which is no e-mail address", text=each)
        for each in wrong
    ]
    if external_id := " ".join(unmark_text(line.one("externalId")).split()):
        item["externalId"] = external_id
    if birthday := _birthday(line, births, notes):
        item["birthday"] = birthday.isoformat()
    if tags := _tags(line, notes):
        item["tags"] = tags
    if text := "\n".join(dict.fromkeys(filter(None, map(str.strip, kept)))):
        if len(text) > MAX_NOTES:
            msg = f"only the first {MAX_NOTES} characters of {len(text)}"
            said = Reason.of("shortened", msg, most=MAX_NOTES, count=len(text))
            notes.append(said.about("notes"))
        item["notes"] = text[:MAX_NOTES]
    if not any(name in item for name in _KEYS):
        msg = "email: expected an e-mail address, a phone or an id, received none of them"
        msg = f"{wrong[0]} is no e-mail address; {msg}" if wrong else msg
        return _Read(item, notes, Reason.of("no_contact", msg))
    return _Read(item, notes)


def _name(line: Line) -> str:
    parts = [*line.all("name")[:1], *line.all("middleName")[:1], *line.all("lastName")[:1]]
    full = line.one("fullName") or " ".join(parts)
    name = " ".join(unmark_text(full).split())
    company = line.one("company")
    return name or company


def _birthday(line: Line, births: Mapping[int, BirthdayColumn], notes: list[Reason]) -> date | None:
    for index, column in births.items():
        cell = unmark_text(line.cells[index]) if index < len(line.cells) else ""
        day, note = column.read(cell)
        notes += [note] if note else []
        # A date that is left out is counted among the cells that are not read.
        if day or not note:
            line.used.add(index)
        if day:
            return day
    return None


def _several(line: Line, role: str, separators: re.Pattern[str]) -> Iterator[str]:
    cells = (unmark_text(cell) for cell in line.all(role))
    parts = (part.strip() for cell in cells for part in separators.split(cell))
    yield from dict.fromkeys(part for part in parts if part)


def _tags(line: Line, notes: list[Reason]) -> list[str]:
    tags = [
        tag
        for tag in _several(line, "tags", _TAGS)
        if tag.casefold() not in _GROUPS_OF_GOOGLE and tag.strip("* ")
    ]
    short = list(dict.fromkeys(tag.strip("* ")[:MAX_TAG].strip() for tag in tags))
    if len(short) > MAX_TAGS:
        count = len(short) - MAX_TAGS
        msg = f"tags: {count} of {len(short)} left out"
        notes.append(Reason.of("too_many_tags", msg, count=count, most=MAX_TAGS))
    return short[:MAX_TAGS]


def _without_repeats(rows: Sequence[Row]) -> list[Row]:
    """Refuse a row with an e-mail address, a phone or an id of an earlier row."""
    first: dict[tuple[str, str], int] = {}
    kept = []
    for row in rows:
        keys = [(name, _key(name, row.item[name])) for name in _KEYS if name in row.item]
        if row.fault is None and (earlier := [key for key in keys if key in first]):
            name = earlier[0][0]
            number = first[earlier[0]]
            fault = Reason.of("repeated_contact", f"row {number} has it, too", row=number).about(
                name
            )
            kept.append(replace(row, fault=fault))
            continue
        kept.append(row)
        if row.fault is None:
            first.update(dict.fromkeys(keys, row.number))
    return kept


def _key(name: str, value: str) -> str:
    if name == "email":
        return emails.key(value)
    return "".join(re.findall(r"\d", value)) or value if name == "phone" else value
