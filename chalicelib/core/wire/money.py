"""Amounts of money in requests: integers of kopecks, with advice for amounts in rubles."""

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Final

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


def _check_kopecks(value: object) -> object:
    """Refuse a value that is not an integer of kopecks.

    If the value looks like rubles, the error contains the amount in kopecks.

    Raises:
        PydanticCustomError: the value is not an integer, or not from 0 to ``MAX_KOPECKS``.
    """
    # A boolean is an instance of ``int``.
    if not isinstance(value, int) or isinstance(value, bool):
        raise PydanticCustomError(
            "kopecks", "expected an integer of kopecks", _kopecks_advice(value)
        )
    if value < 0:
        raise PydanticCustomError("kopecks", "expected kopecks of at least 0")
    if value > MAX_KOPECKS:
        message = "expected kopecks of at most {most}"
        raise PydanticCustomError("kopecks", message, {"most": MAX_KOPECKS})
    return value


def _kopecks_advice(value: object) -> dict[str, str]:
    """Return advice to send kopecks, or "" if the value does not look like rubles."""
    if not isinstance(value, float | str):
        return {}
    text = str(value).strip()
    amount = rubles(text)
    if amount is None or not 0 <= amount * 100 <= MAX_KOPECKS:
        return {}
    kopecks = int((amount * 100).quantize(Decimal(1), ROUND_HALF_UP))
    if names_currency(text):
        return {"advice": f"the unit is kopecks: {kopecks} for {text}"}
    advice = f"if the amount is in rubles, send it in kopecks: {kopecks} for {text} ₽"
    if isinstance(value, str) and value.isdecimal():
        advice += f"; if the amount is in kopecks, send the number {int(value)} without quotes"
    return {"advice": advice}


Kopecks = Annotated[int, Field(ge=0, le=MAX_KOPECKS), BeforeValidator(_check_kopecks), MONEY]
"""An amount in kopecks; 100 kopecks are one ruble."""
