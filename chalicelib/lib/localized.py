"""Money, dates and language detection, in Russian and English."""

import re
from datetime import datetime
from typing import Final, Literal, get_args

# Names of months and weekdays come from the CLDR through Babel, which is imported on first use. The
# Lambda zip contains Babel's data for these two languages only.
Language = Literal["ru", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
CURRENCY = "RUB"  # ISO 4217 code of the currency of all amounts, which are in kopecks

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


def money(language: Language, kopecks: int) -> str:
    """Format an amount in rubles, such as ``1 234,50 ₽``, or ``1 500 ₽`` without kopecks."""
    from decimal import Decimal

    from babel.numbers import format_currency

    rubles = Decimal(kopecks) / 100
    pattern = "#,##0.00 ¤" if kopecks % 100 else "#,##0 ¤"
    # Babel writes the code of the currency in English, and its sign in Russian.
    return format_currency(
        rubles, CURRENCY, pattern, locale=language, currency_digits=False
    ).replace(CURRENCY, "₽")


_UNITS: dict[Language, tuple[str, str]] = {"en": ("h", "min"), "ru": ("ч", "мин")}


def length(language: Language, minutes: int) -> str:
    """Format a length of time, or "" for none.

    >>> length("en", 90)
    '1 h 30 min'
    """
    parts = zip(divmod(minutes, 60), _UNITS[language], strict=True)
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)


def weekday_and_time(language: Language, local: datetime) -> str:
    """Format a local time, such as ``Friday, 27 November 2026, 10:00``."""
    from babel.dates import format_datetime

    return format_datetime(local, "EEEE, d MMMM y, HH:mm", locale=language)
