"""Dates of birth, as tables and vCards write them.

Google Contacts writes ``1985-04-12``, and `` --04-12`` if the year is unknown. Outlook writes the
short date of Windows, such as ``4/12/1985`` or ``12.04.1985``, and ``0/0/00`` for none. vCards have
``19850412``, ``--0412``, times and texts (RFC 6350, 4.3 and 6.2.5).
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from typing import Literal, NamedTuple

from chalicelib.core import clock
from chalicelib.domains.imports.rules.reasons import Reason
from chalicelib.lib.contact_fields import FIRST_BIRTHDAY

Order = Literal["day", "month"]
"""Which number stands first in a date such as 03/04/1985."""
_MONTH_FIRST = frozenset({"US", "AS", "FM", "GU", "MH", "MP", "PR", "PW", "UM", "VI"})
# Both orders are in use there.
_EITHER_FIRST = frozenset({"CA", "PA", "PH"})
_MONTHS = (
    *("january январь января", "february февраль февраля", "march март марта"),
    *("april апрель апреля", "may май мая", "june июнь июня", "july июль июля"),
    *("august август августа", "september сентябрь сентября", "october октябрь октября"),
    *("november ноябрь ноября", "december декабрь декабря"),
)
_NO_DATE = "no_date", "which is no date from 1900 until today"
_SHOWN = 60  # characters of a cell that is left out
_MONTH_LETTERS = 3  # of the shortest abbreviation of a month
_OTHER_WORDS = frozenset({"г", "год", "года", "of", "st", "nd", "rd", "th"})
_TIME = r"(?:[T ,]+\d{1,2}:?\d{2}.*)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-./](\d\d?)[-./](\d\d?){_TIME}")
_COMPACT = re.compile(rf"(\d{{4}})(\d\d)(\d\d){_TIME}")
_YEAR_LAST = re.compile(rf"(\d\d?) ?([-./]) ?(\d\d?) ?\2 ?(\d{{4}}|\d\d)(?: ?г\.?)?{_TIME}")
_WITHOUT_YEAR = re.compile(r"--\d\d-?\d\d|\d\d?[-./]\d\d?\.?")
_NONE = re.compile(r"[0\W_]*")
_WORDS = re.compile(r"\d+|[^\W\d_]+")


class Reading(NamedTuple):
    """The date of a cell, or None if the cell has none that can be read, and what to say of it."""

    day: date | None
    note: Reason | None = None


class BirthdayColumn:
    """Reads the dates of a column, whose order all its values decide, or else the country."""

    def __init__(self, cells: Iterable[str], country: str) -> None:
        pairs = [
            (int(found[1]), int(found[3]), found[2])
            for cell in cells
            if (found := _YEAR_LAST.fullmatch(cell.strip()))
        ]
        shown = {order for first, second, _ in pairs if (order := _certain(first, second))}
        self._order: Order | None = next(iter(shown)) if len(shown) == 1 else None
        self._is_dotted_day_first = not shown
        asks_country = any(
            separator != "." and first != second for first, second, separator in pairs
        )
        self.order_of_country: Order | None = None
        """The order, if only the country decides it for some of the dates."""
        if not shown and asks_country and country and country not in _EITHER_FIRST:
            self._order = "month" if country in _MONTH_FIRST else "day"
            self.order_of_country = self._order

    def read(self, cell: str) -> Reading:
        """Return the date of a cell. What cannot be read with certainty is left out."""
        text = " ".join(cell.split())
        if _NONE.fullmatch(text):
            return Reading(None)
        if found := _YEAR_FIRST.fullmatch(text) or _COMPACT.fullmatch(text):
            return _checked(text, *found.groups())
        if found := _YEAR_LAST.fullmatch(text):
            first, separator, second, year = found.groups()
            order = _certain(int(first), int(second)) or self._order
            if order is None and (first == second or self._is_day_first(separator)):
                order = "day"
            if order is None:
                return _left_out(text, "either_order", "as either number may be the month")
            day, month = (first, second) if order == "day" else (second, first)
            return _checked(text, year, month, day)
        return _with_name_of_month(text)

    def _is_day_first(self, separator: str) -> bool:
        return separator == "." and self._is_dotted_day_first


def _certain(first: int, second: int) -> Order | None:
    """Return the order of two numbers of which only one can be a month.

    >>> _certain(25, 4), _certain(4, 25), _certain(3, 4)
    ('day', 'month', None)
    """
    months = range(1, 13)
    if (first in months) == (second in months):
        return None
    return "day" if second in months else "month"


def _with_name_of_month(text: str) -> Reading:
    words = [word for word in _WORDS.findall(text.casefold()) if word not in _OTHER_WORDS]
    months = [number for word in words if (number := _month(word))]
    numbers = [word for word in words if word.isdecimal()]
    if _WITHOUT_YEAR.fullmatch(text) or (len(words), len(months), len(numbers)) == (2, 1, 1):
        return _left_out(text, "no_year", "as it has no year")
    if (len(words), len(months), len(numbers)) != (3, 1, 2):
        return _left_out(text, *_NO_DATE)
    day, year = sorted(numbers, key=len) if len(numbers[0]) > 2 else numbers  # noqa: PLR2004  digits
    return _checked(text, year, str(months[0]), day)


def _month(word: str) -> int | None:
    if len(word) < _MONTH_LETTERS:
        return None
    names = enumerate(_MONTHS, 1)
    return next((n for n, forms in names if f" {word}" in f" {forms}"), None)


def _checked(text: str, year: str, month: str, day: str) -> Reading:
    today = clock.now().date()
    centuries = (0,) if len(year) == len("1985") else (2000, 1900)
    for century in centuries:
        # The latest year that is not in the future. Only people over 100 have an earlier one.
        with suppress(ValueError):
            found = date(century + int(year), int(month), int(day))
            if FIRST_BIRTHDAY <= found <= today:
                is_chosen = century == centuries[0] and len(centuries) > 1
                if not is_chosen:
                    return Reading(found)
                said = Reason.of("read_as", f"{text} is read as {found}", text=text, value=found)
                return Reading(found, said.about("birthday"))
    return _left_out(text, *_NO_DATE)


def _left_out(text: str, code: str, reason: str) -> Reading:
    shown = text[:_SHOWN]
    return Reading(
        None, Reason.of(code, f"{shown} left out, {reason}", text=shown).about("birthday")
    )
