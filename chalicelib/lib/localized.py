"""Money, dates and language detection, in Russian and English."""

import re
from datetime import date, datetime
from typing import Final, Literal, get_args

from chalicelib.lib import currencies
from chalicelib.lib.currencies import RUB

# Names of months and weekdays come from the CLDR through Babel, which is imported on first use. The
# Lambda zip contains Babel's data for these two languages only.
Language = Literal["ru", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)

_CYRILLIC = re.compile("[\u0430-\u044f\u0451]", re.IGNORECASE)
_LATIN = re.compile("[a-z]", re.IGNORECASE)


def language_of(text: str) -> Language:
    """Guess the language of a passage by its script."""
    return "ru" if len(_CYRILLIC.findall(text)) > len(_LATIN.findall(text)) else "en"


def language_of_message(text: str) -> Language:
    """Return Russian for a message with a Cyrillic letter."""
    # Russian messages often have more Latin letters than Cyrillic ones, in the names of products.
    return "ru" if _CYRILLIC.search(text) else "en"


def language_of_country(country: str) -> Language:
    """Return the language of e-mail to a country (ISO 3166-1 alpha-2)."""
    return "ru" if country == "RU" else "en"


def money(language: Language, amount: int, currency: str) -> str:
    """Format an amount in minor units, such as ``1 234,50 ₽``, ``£1,500``, ``KWD 1.250``.

    A whole amount has no decimals.
    """
    from decimal import Decimal

    from babel.numbers import format_currency

    digits = currencies.DIGITS[currency]
    # Babel would use the digits of CLDR, which differ from ISO 4217.
    decimals = f".{'0' * digits}" if amount % currencies.step(currency) else ""
    number = f"#,##0{decimals}"
    symbol = sign(language, currency)
    if currency == RUB:
        pattern = f"{number} ¤"
    elif language == "ru":
        pattern = f"{number}\u00a0¤"
    elif symbol[-1].isalpha():
        pattern = f"¤\u00a0{number}"
    else:
        pattern = f"¤{number}"
    text = format_currency(
        Decimal(amount).scaleb(-digits), currency, pattern, locale=language, currency_digits=False
    )
    return text.replace(RUB, symbol) if currency == RUB else text


def sign(language: Language, currency: str) -> str:
    """Return the sign of a currency that stands for no other, or its code: ``CA$``, ``KWD``."""
    from babel.numbers import get_currency_symbol

    # Babel writes the code of the ruble in English, and its sign in Russian.
    return "₽" if currency == RUB else get_currency_symbol(currency, locale=language)


_UNITS: dict[Language, tuple[str, str]] = {"en": ("h", "min"), "ru": ("ч", "мин")}


def length(language: Language, minutes: int) -> str:
    """Format a length of time, or "" for none.

    >>> length("en", 90)
    '1 h 30 min'
    """
    parts = zip(divmod(minutes, 60), _UNITS[language], strict=True)
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)


def day(language: Language, when: date) -> str:
    """Format a date, such as ``22 November 2026``."""
    from babel.dates import format_date

    return format_date(when, "d MMMM y", locale=language)


def weekday_and_time(language: Language, local: datetime) -> str:
    """Format a local time, such as ``Friday, 27 November 2026, 10:00``."""
    from babel.dates import format_datetime

    return format_datetime(local, "EEEE, d MMMM y, HH:mm", locale=language)


def short_time(language: Language, local: datetime) -> str:
    """Format a local time in few characters, such as ``27 Nov 10:00``."""
    from babel.dates import format_datetime

    pattern = "dd.MM 'в' HH:mm" if language == "ru" else "d MMM HH:mm"
    return format_datetime(local, pattern, locale=language)
