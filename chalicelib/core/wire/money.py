"""Amounts of money in requests: integers of minor units, with advice for amounts in major ones."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Final, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

_CURRENCY = re.compile(
    r"(?:₽|руб(?:лей|ля|ль)?\.?|р\.?|rub\.?|rubles?)\s*$",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
MAX_KOPECKS = 10**11
MONEY: Final = "money"
"""A mark, in ``Annotated``, of an amount of money. A string is never read as such a number."""


def names_currency(text: str) -> bool:
    """Return whether the string ends in a name or the sign of the ruble."""
    return _CURRENCY.search(text) is not None


def rubles(text: str) -> Decimal | None:
    """Return the amount in a string such as ``1 299,90 ₽``, or None if it holds no amount."""
    return decimal(_CURRENCY.sub("", text))


def decimal(text: str) -> Decimal | None:
    """Return the number in a string, or None if it holds no number.

    Spaces and apostrophes may separate thousands. If the string has both a comma and a point, the
    last one is the decimal mark. A single comma or point is the decimal mark, too.
    """
    compact = "".join(c for c in text if not c.isspace() and c not in "'’")
    last = max(compact.rfind(","), compact.rfind("."))
    if {",", "."} <= set(compact):
        integer_part = compact[:last].replace(",", "").replace(".", "")
        compact = f"{integer_part}.{compact[last + 1 :]}"
    plain = compact.replace(",", ".").replace("\u2212", "-")
    return Decimal(plain) if _AMOUNT.fullmatch(plain) else None


class MoneyUnit(NamedTuple):
    """What a request's amounts of money are counted in, and what people may write instead."""

    minor: str = "kopecks"
    major: str = "rubles"
    sign: str = "₽"
    digits: int = 2


RUBLES: Final = MoneyUnit()
# Returns the unit of the workspace that a request is for. It is called for an error only.
_unit: ContextVar[Callable[[], MoneyUnit]] = ContextVar("money unit", default=lambda: RUBLES)


@contextmanager
def counted_in(read_unit: Callable[[], MoneyUnit]) -> Iterator[None]:
    """Say what the amounts of money are counted in that the block parses."""
    token = _unit.set(read_unit)
    try:
        yield
    finally:
        _unit.reset(token)


def _check(value: object, read_unit: Callable[[], MoneyUnit]) -> object:
    """Refuse a value that is not an integer of minor units.

    If the value looks like an amount in major units, the error contains it in minor units.

    Raises:
        PydanticCustomError: the value is not an integer, or not from 0 to ``MAX_KOPECKS``.
    """
    # A boolean is an instance of ``int``.
    if not isinstance(value, int) or isinstance(value, bool):
        unit = read_unit()
        message = f"expected an integer of {unit.minor}"
        raise PydanticCustomError("invalid_type", message, _advice(value, unit))
    if value < 0:
        message = f"expected {read_unit().minor} of at least 0"
        raise PydanticCustomError("too_small", message)
    if value > MAX_KOPECKS:
        message = f"expected {read_unit().minor} of at most {MAX_KOPECKS}"
        raise PydanticCustomError("too_large", message)
    return value


def _advice(value: object, unit: MoneyUnit) -> dict[str, str]:
    """Return advice to send minor units, or "" if the value does not look like major ones."""
    if not isinstance(value, float | str):
        return {}
    text = str(value).strip()
    amount, factor = rubles(text), 10**unit.digits
    if amount is None or not 0 <= amount * factor <= MAX_KOPECKS:
        return {}
    if amount * factor != int(amount * factor) and unit != RUBLES:
        return {"advice": f"the currency has {unit.digits} decimals"}
    minor = int((amount * factor).quantize(Decimal(1), ROUND_HALF_UP))
    if names_currency(text):
        return {"advice": f"the unit is {unit.minor}: {minor} for {text}"} if unit == RUBLES else {}
    advice = f"if the amount is in {unit.major}, send it in {unit.minor}: {minor} for "
    advice += f"{text} {unit.sign}"
    if isinstance(value, str) and value.isdecimal():
        advice += f"; if the amount is in {unit.minor}, send the number {int(value)} without quotes"
    return {"advice": advice}


def _check_kopecks(value: object) -> object:
    return _check(value, lambda: RUBLES)


def _check_amount(value: object) -> object:
    return _check(value, _unit.get())


Kopecks = Annotated[int, Field(ge=0, le=MAX_KOPECKS), BeforeValidator(_check_kopecks), MONEY]
"""An amount that the platform charges, in kopecks; 100 kopecks are one ruble."""
Amount = Annotated[int, Field(ge=0, le=MAX_KOPECKS), BeforeValidator(_check_amount), MONEY]
"""An amount in minor units of the workspace's currency (kopecks)."""
