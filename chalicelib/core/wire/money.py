"""Amounts of money as people write them."""

import re
from decimal import Decimal

_CURRENCY = re.compile(
    r"(?:₽|руб(?:лей|ля|ль)?\.?|р\.?|rub\.?|rubles?)\s*$",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


def names_currency(text: str) -> bool:
    """Return whether the text ends in a name or the sign of the ruble."""
    return _CURRENCY.search(text) is not None


def rubles(text: str) -> Decimal | None:
    """Return the amount in a text such as ``1 299,90 ₽``, or None if it holds no amount."""
    return decimal(_CURRENCY.sub("", text))


def decimal(text: str) -> Decimal | None:
    """Return the number in a text, or None if it holds no number.

    Spaces and apostrophes may separate thousands. If the text has both a comma and a point, the
    last one is the decimal mark. A single comma or point is the decimal mark, too.
    """
    compact = "".join(c for c in text if not c.isspace() and c not in "'’")
    last = max(compact.rfind(","), compact.rfind("."))
    if {",", "."} <= set(compact):
        whole = compact[:last].replace(",", "").replace(".", "")
        compact = f"{whole}.{compact[last + 1 :]}"
    plain = compact.replace(",", ".").replace("\u2212", "-")
    return Decimal(plain) if _AMOUNT.fullmatch(plain) else None
