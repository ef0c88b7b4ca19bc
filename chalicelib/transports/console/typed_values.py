"""Amounts and lengths of time as users type them in forms."""

import re

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.money import MAX_KOPECKS
from chalicelib.lib import currencies
from chalicelib.lib.currencies import RUB
from chalicelib.transports.web import texts

_AMOUNT = re.compile(r"([0-9]{1,12})(?:[.,]([0-9]{1,3}))?", re.ASCII)
_SPACES = re.compile(r"[\s\u00a0\u202f]")
_RUBLES = re.compile(r"(₽|руб(лей|ля|ль|\.)?|р\.?|rub)$", re.IGNORECASE)  # noqa: RUF001  Russian
_CLOCK = re.compile(r"([0-9]{1,3}):([0-5][0-9])", re.ASCII)
_UNITS = {
    1_440: r"(?:d|days?|д|дн|день|дня|дней|сут|сутки|суток)",
    60: r"(?:h|hrs?|hours?|ч|час|часа|часов)",
    1: r"(?:m|mins?|minutes?|м|мин|минута|минуты|минут)?",
}
_NUMBER = r"([0-9]{1,6}(?:[.,][0-9]{1,2})?)"
_LENGTH = re.compile("".join(rf"(?:{_NUMBER}{unit}\.?)?" for unit in _UNITS.values()))
_BETWEEN = re.compile(r"[;\n]|,(?=\s)")


def amount(field: str, text: str, currency: str) -> int | None:
    """Convert an amount to minor units, and "" to None, or raise ValidationError.

    More decimals than the currency has are refused: ``12.5`` in yen, ``1.234`` in pounds.
    """
    compact = _SPACES.sub("", text)
    if not compact:
        return None
    digits = currencies.DIGITS[currency]
    match = _AMOUNT.fullmatch(_without_currency(compact, currency))
    typed = -1
    if match and len(match[2] or "") <= digits:
        typed = int(match[1] + (match[2] or "").ljust(digits, "0"))
    if not 0 <= typed <= MAX_KOPECKS:
        example = currencies.plain(9990, currency)
        raise ValidationError.of(
            field, message=f"expected an amount in {currency} from 0, such as {example}"
        )
    return typed


def _without_currency(text: str, currency: str) -> str:
    if currency == RUB:
        return _RUBLES.sub("", text)
    folded = text.lower()
    names = sorted(currencies.names_of(currency), key=len, reverse=True)
    # A sign stands before or after the amount.
    for name in names:
        if folded.startswith(name):
            return text[len(name) :]
        if folded.endswith(name):
            return text[: -len(name)]
    return text


def kopecks(field: str, text: str) -> int | None:
    """Convert an amount in rubles to kopecks, and "" to None, or raise ValidationError."""
    return amount(field, text, RUB)


def plain_amount(value: int | None, currency: str) -> str:
    """Return an amount of minor units as a user would type it."""
    if value is None:
        return ""
    is_whole = value % currencies.step(currency) == 0
    text = currencies.plain(value, currency)
    return text.partition(".")[0] if is_whole else text


def minutes(field: str, text: str) -> int | None:
    """Convert ``90``, ``1:30``, ``1 h 30 min`` or ``1,5 ч`` to minutes, or raise ValidationError.

    Return None for an empty string.
    """
    compact = _SPACES.sub("", text).lower()
    if not compact:
        return None
    if clock := _CLOCK.fullmatch(compact):
        return int(clock[1]) * 60 + int(clock[2])
    match = _LENGTH.fullmatch(compact)
    if match and any(match.groups()):
        numbers = zip(match.groups(default="0"), _UNITS, strict=True)
        total = sum((float(number.replace(",", ".")) * unit for number, unit in numbers), 0.0)
        if total.is_integer():
            return int(total)
    raise ValidationError.of(
        field, message="expected a length of time, such as 90, 1:30 or 1 h 30 min"
    )


def list_of_minutes(field: str, *, text: str) -> list[int]:
    """Convert lengths that are separated by commas or semicolons, or raise ValidationError."""
    lengths = [minutes(field, part) for part in _BETWEEN.split(text)]
    return [length for length in lengths if length is not None]


def length(language: texts.Language, count: int | None) -> str:
    """Return a length in minutes as ``minutes`` reads it, such as ``1 h 30 min``."""
    if count is None:
        return ""
    remaining, parts = count, list[str]()
    for unit, key in ((1_440, "length_days"), (60, "length_hours"), (1, "length_minutes")):
        unit_count, remaining = divmod(remaining, unit)
        if unit_count or (unit == 1 and not parts):
            parts.append(texts.translate(language, key, count=unit_count))
    return " ".join(parts)


def number(field: str, text: str) -> int | None:
    """Convert a whole number, and "" to None, or raise ValidationError."""
    compact = _SPACES.sub("", text)
    if not compact:
        return None
    if not re.fullmatch("[0-9]{1,9}", compact, re.ASCII):
        raise ValidationError.of(field, message="expected a whole number")
    return int(compact)
