"""Read amounts of money and counts as shops and spreadsheets write them."""

import re
from decimal import Decimal
from typing import Literal

from chalicelib.core.wire import money
from chalicelib.domains.catalog.rules.tables.table_errors import CellError

Unit = Literal["rubles", "kopecks"]

_RUBLES = r"(?:₽|руб(?:лей|ля|ль)?\.?|р\.?|rub\.?|rur\.?|коп(?:еек|ейки|ейка)?\.?)"
_CURRENCY = re.compile(rf"^\s*{_RUBLES}(?=[\s\d])|{_RUBLES}\s*$", re.IGNORECASE)
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}[.,]000")


def kopecks(text: str, unit: Unit) -> int:
    """Read an amount such as "1 299,90 ₽" exactly.

    Raises:
        CellError: it is not an amount, has fractions of a kopeck, or has two meanings, as 10,000.
    """
    bare = _CURRENCY.sub("", text.strip()).strip()
    if _THOUSANDS.fullmatch(bare):
        # English programs mean ten thousand by 10,000, and Russian ones ten.
        whole = bare[:-4]
        msg = f'expected {whole}000 or {whole}.00, received "{text}", which may mean either'
        raise CellError(msg)
    in_kopecks = number(bare, shown=text) * (100 if unit == "rubles" else 1)
    if in_kopecks != int(in_kopecks):
        msg = f'expected whole kopecks at the finest, received "{text}"'
        raise CellError(msg)
    return int(in_kopecks)


def amount(text: str) -> Decimal:
    """Read an amount in the unit of its table, or raise CellError."""
    return number(_CURRENCY.sub("", text.strip()).strip(), shown=text)


def number(text: str, *, shown: str | None = None) -> Decimal:
    """Read a number with spaces or apostrophes between thousands, and a comma or point.

    If it has both, the last is the decimal separator. A single one is decimal. ``shown`` is the
    text for the message of a CellError.
    """
    value = money.decimal(text)
    if value is None:
        msg = f'expected a number, received "{text if shown is None else shown}"'
        raise CellError(msg)
    return value
