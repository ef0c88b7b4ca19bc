"""Read amounts of money and counts as shops and spreadsheets write them."""

import re
from decimal import Decimal
from functools import cache
from typing import Literal, NamedTuple, Self

from chalicelib.core.wire import money
from chalicelib.domains.imports.rules.tables.table_errors import CellError
from chalicelib.lib import currencies
from chalicelib.lib.currencies import RUB

# Of a table's prices: whole rubles, pounds or yen, or kopecks, pence or yen. The first two names
# are for tables in rubles.
Unit = Literal["rubles", "kopecks", "major", "minor"]
_GROUPS = re.compile(r"-?[0-9]{1,3}([.,][0-9]{3})+")


class Prices(NamedTuple):
    """What the prices of a table are counted in."""

    currency: str = RUB
    is_minor: bool = False

    @classmethod
    def of(cls, unit: Unit, currency: str) -> Self:
        return cls(currency, is_minor=unit in {"kopecks", "minor"})


_RUBLES = r"(?:₽|руб(?:лей|ля|ль)?\.?|р\.?|rub\.?|rur\.?|коп(?:еек|ейки|ейка)?\.?)"
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}[.,]000")
# Three digits after a comma or a point, which are thousands or decimals.
_THREE = re.compile(r"-?[1-9][0-9]{0,2}([.,])[0-9]{3}")


def parse_price(text: str, prices: Prices) -> int:
    """Read an amount such as "1 299,90 ₽" exactly, in minor units of the currency.

    Raises:
        CellError: it is not an amount, has more decimals than the currency, or has two meanings, as
            10,000, and as 1,500 in another currency than rubles.
    """
    currency, is_minor = prices
    bare = _without_currency(text, currency)
    if _is_ambiguous(bare, currency):
        # English programs mean ten thousand by 10,000, and Russian ones ten.
        whole, decimals = bare[:-4], bare[-3:]
        other = f"{whole}.{decimals[: currencies.DIGITS[currency]]}"
        msg = f'expected {whole}{decimals} or {other}, received "{text}", which may mean either'
        raise CellError.of("ambiguous_number", msg, text=text)
    if not currencies.DIGITS[currency] and _GROUPS.fullmatch(bare):
        bare = re.sub("[.,]", "", bare)  # There are no decimals that it could mean.
    amount = number(bare, shown=text) * (1 if is_minor else currencies.step(currency))
    if amount != int(amount):
        unit = "whole kopecks" if currency == RUB else _finest(currency)
        msg = f'expected {unit} at the finest, received "{text}"'
        raise CellError.of("too_many_decimals", msg, text=text)
    return int(amount)


def _is_ambiguous(bare: str, currency: str) -> bool:
    if currency == RUB:
        return _THOUSANDS.fullmatch(bare) is not None
    match, digits = _THREE.fullmatch(bare), currencies.DIGITS[currency]
    # A point before three decimals is the decimal point of dinars.
    return match is not None and digits > 0 and (match[1], digits) != (".", 3)


def _finest(currency: str) -> str:
    digits = currencies.DIGITS[currency]
    return f"{digits} decimals of {currency}" if digits else f"whole {currency}"


@cache
def _currency_pattern(currency: str) -> re.Pattern[str]:
    longest_first = sorted(currencies.names_of(currency), key=len, reverse=True)
    names = _RUBLES if currency == RUB else f"(?:{'|'.join(map(re.escape, longest_first))})"
    return re.compile(rf"^\s*{names}(?=[\s\d])|{names}\s*$", re.IGNORECASE)


def _without_currency(text: str, currency: str) -> str:
    return _currency_pattern(currency).sub("", text.strip()).strip()


def amount(text: str, currency: str = RUB) -> Decimal:
    """Read an amount in the unit of its table, or raise CellError."""
    return number(_without_currency(text, currency), shown=text)


def number(text: str, *, shown: str | None = None) -> Decimal:
    """Read a number with spaces or apostrophes between thousands, and a comma or point.

    If it has both, the last is the decimal separator. A single one is decimal. ``shown`` is the
    text for the message of a CellError.
    """
    value = money.decimal(text)
    if value is None:
        text = text if shown is None else shown
        raise CellError.of("not_a_number", f'expected a number, received "{text}"', text=text)
    return value
