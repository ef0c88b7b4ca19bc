"""The rows of a table that is imported, a report of what is not read, and one of refused rows."""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol

from chalicelib.domains.imports.rules import reasons
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.domains.imports.rules.tables.spreadsheet_cells import is_value
from chalicelib.domains.imports.rules.tables.text_tables import TextTable

# Columns that the command line's report of refused rows adds before the table's columns.
REPORT_COLUMNS = ("row", "sku", "reason")


class ReadLine(Protocol):
    """A row of a table, and the indexes of the cells that were read."""

    cells: Sequence[str]
    used: set[int]


@dataclass(frozen=True, slots=True)
class Row:
    number: int  # as spreadsheets count: the header is row 1
    cells: Sequence[str]
    # The input of an upsert. That of a product has ``category`` as a path (``category_path``). A
    # row of an exported table of products also has ``id`` and ``categoryId``.
    item: Mapping[str, Any] = field(default_factory=dict)
    fault: Reason | None = None  # why the row is refused
    notes: Sequence[Reason] = ()  # values that were read differently or left out

    @property
    def sku(self) -> str:
        return str(self.item.get("sku", ""))


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name, which no other column of the table has."""

    name: str
    # The field that it fills, ``RECOGNIZED`` if the rules of a program read it in another way, or
    # None if nothing reads it.
    field: str | None
    samples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of records, and a report of what is not read."""

    header: Sequence[str]  # for a report of refused rows, as the cells of ``rows``
    rows: Sequence[Row]
    delimiter: str = ","
    shop: str = ""  # name of the shop or program whose table it is, or ""
    ignored: Sequence[str] = ()  # headers of the columns that are not read
    # number of rows in which a column is not read, if it is in others
    partly_read: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[Reason] = ()  # about the whole table
    # columns whose numbers are names, which a spreadsheet must not rewrite
    codes: frozenset[int] = frozenset()
    columns: Sequence[Column] = ()
    fault: Reason | None = None  # what to choose before any row can be read


RECOGNIZED = "recognized"
NO_CHOICES: Mapping[str, str | None] = {}
_SAMPLES = 3
_SAMPLE_CHARACTERS = 60


def unread_columns(
    names: Sequence[str], lines: Sequence[ReadLine]
) -> tuple[list[str], dict[str, int]]:
    """Return the columns that are not read, and the number of rows in which others are not."""
    filled: Counter[int] = Counter()
    read_cells: Counter[int] = Counter()
    for line in lines:
        filled.update(at for at, cell in enumerate(line.cells[: len(names)]) if cell.strip())
        read_cells.update(line.used)
    ignored: list[str] = []
    partly_read: Counter[str] = Counter()
    for at in sorted(filled):
        name = names[at] or f"column {letters(at)}"
        if not read_cells[at] and name not in ignored:
            ignored.append(name)
        elif read_cells[at] and (unread := filled[at] - read_cells[at]):
            partly_read[name] += unread
    return ignored, dict(partly_read)


def without_reasons(table: TextTable) -> TextTable:
    """Return a corrected report of refused rows without the columns that the report has added.

    So it is imported like the original table.
    """
    added = [
        REPORT_COLUMNS,
        *(
            reasons.report_columns(form, has_sku=has_sku)
            for form in reasons.FORMS
            for has_sku in (True, False)
        ),
    ]
    skipped = next((len(names) for names in added if (*table.names[: len(names)],) == names), 0)
    lines = [(number, cells[skipped:]) for number, cells in table.lines]
    return replace(table, names=table.names[skipped:], lines=lines)


def chosen_roles(
    roles: Mapping[str, Sequence[int]],
    names: Sequence[str],
    chosen: Mapping[str, str | None],
    *,
    several: Collection[str],
) -> dict[str, list[int]]:
    """Return the columns of each role, with those that a person chose by their names.

    A chosen column replaces the recognized one, unless ``several`` columns may have the role.
    """
    indexes = {name: index for index, name in enumerate(unique_names(names))}
    picked = {indexes[name]: role for name, role in chosen.items() if name in indexes}
    taken = {role for role in picked.values() if role and role not in several}
    columns = {
        role: [index for index in at if index not in picked]
        for role, at in roles.items()
        if role not in taken
    }
    for index in sorted(picked):
        if role := picked[index]:
            columns.setdefault(role, []).append(index)
    return {role: at for role, at in columns.items() if at}


def named_columns(
    table: TextTable,
    roles: Mapping[str, Sequence[int]],
    fields: Collection[str],
    *,
    unread: Collection[str] = (),
) -> list[Column]:
    """Return the columns of a table with a name, or a value, each with the field that it fills."""
    role_of = {index: role for role, at in roles.items() for index in at}
    columns = []
    for index, name in enumerate(unique_names(table.names)):
        values = (cells[index].strip() for _, cells in table.lines if index < len(cells))
        filled = (value[:_SAMPLE_CHARACTERS] for value in values if value)
        samples = list(islice(dict.fromkeys(islice(filled, _SAMPLES * 5)), _SAMPLES))
        if not samples and not table.names[index].strip():
            continue
        role = role_of.get(index)
        if role is not None and role not in fields:
            role = None if name in unread else RECOGNIZED
        columns.append(Column(name, role, samples))
    return columns


def repeated_key(name: str, numbers: Iterable[int]) -> Reason:
    """Return why a row is refused whose record other rows name, too."""
    rows = ", ".join(map(str, numbers))
    msg = f"expected once in the table, also in rows {rows}"
    return Reason.of("repeated_key", msg, rows=rows).about(name)


def repeated_columns(fields: Iterable[str], remedy: str) -> Reason:
    """Return why a table is refused that has several columns for a field."""
    names = ", ".join(fields)
    msg = f"Several columns contain {names}. {remedy} one of each."
    return Reason.of("repeated_columns", msg, text=names)


def too_many_cells(cells: Sequence[str], width: int) -> Reason:
    """Return why a row is refused that is wider than the header."""
    msg = f"expected at most {width} cells, received {len(cells)}"
    return Reason.of("too_many_cells", msg, most=width, count=len(cells))


def report_text(header: Sequence[str], lines: Sequence[Sequence[str]], *, delimiter: str) -> bytes:
    """Return lines with their header as CSV that spreadsheets can open."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([header, *lines])
    # Excel reads UTF-8 only after a byte order mark.
    return out.getvalue().encode("utf-8-sig")


def report_cells(row: Row, codes: frozenset[int]) -> list[str]:
    """Return the cells of a refused row, with the numbers that are names marked as text."""
    return [
        f'="{cell}"' if index in codes and is_value(cell) else cell
        for index, cell in enumerate(row.cells)
    ]


def letters(index: int) -> str:
    """Name a column as a spreadsheet does: 0 is A, 26 is AA.

    >>> letters(0), letters(27)
    ('A', 'AB')
    """
    name = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def unique_names(names: Sequence[str]) -> list[str]:
    """Name each column once: by its header, with its letter if another column has it, too.

    >>> unique_names(["name", "", "name"])
    ['name', 'column B', 'name (column C)']
    """
    unique: list[str] = []
    for index, name in enumerate(names):
        bare = name.strip() or f"column {letters(index)}"
        unique.append(f"{bare} (column {letters(index)})" if bare in unique else bare)
    return unique
