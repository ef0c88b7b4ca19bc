"""Translations in Russian and English, and the formats of dates, numbers and money.

The translations and plural forms are in the PO files of ``locale`` (ADR 47). Months and currency
signs come from the CLDR through Babel, which is imported when a page first needs it. The Lambda zip
has Babel's data for these two languages only.
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

from chalicelib.core import clock
from chalicelib.lib import po_files, quotes
from chalicelib.lib.localized import day, language_of, money, sign
from chalicelib.transports.web.languages import LANGUAGES, Language

__all__ = ["LANGUAGES", "Language", "day", "language_of", "money", "sign"]

# The folder of the PO files, one folder for each language.
LOCALE = Path(__file__).parent / "locale"
_NEAR_DAYS = {-1: "moment_yesterday", 0: "moment_today", 1: "moment_tomorrow"}
_RANGE = re.compile(r"([A-Za-z]+)(?:-[^;,]*|\s*)(?:;\s*q\s*=\s*([0-9.]+))?")


def preferred(header: str, default: Language = "en") -> Language:
    """Return the supported language that an ``Accept-Language`` header ranks highest."""
    candidates: list[tuple[float, Language]] = []
    for part in header.split(","):
        match = _RANGE.fullmatch(part.strip())
        language = supported(match[1].lower()) if match else None
        if match and language and (weight := _weight(match[2])):
            candidates.append((weight, language))
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else default


def supported(code: str) -> Language | None:
    """Return a language by its code, or None if the pages do not have it."""
    return next((language for language in LANGUAGES if language == code), None)


def _weight(text: str | None) -> float:
    try:
        return float(text) if text is not None else 1.0
    except ValueError:
        return 0.0


@cache
def catalogue(language: Language) -> po_files.Catalogue:
    """Return the translations of a language, by key."""
    return po_files.read(LOCALE, language, "public", "booking", "console")


def translate(language: Language, key: str, **values: object) -> str:
    """Return a translation of the catalogue. ``n`` selects the plural form."""
    text = catalogue(language).texts[key]
    if isinstance(text, str):
        return quotes.nest(text.format(**values))
    n = values["n"]
    if not isinstance(n, int):
        msg = f"{key} needs n, a whole number, to select the plural form"
        raise TypeError(msg)
    form = text[catalogue(language).plural_index(n)]
    return quotes.nest(form.format(**{**values, "n": number(language, n)}))


def has(language: Language, key: str) -> bool:
    """Whether the catalogue has a translation of this key."""
    return key in catalogue(language).texts


def number(language: Language, n: int) -> str:
    """Format a whole number with thousands separators."""
    from babel.numbers import format_decimal

    return format_decimal(n, locale=language)


def countries(language: Language, codes: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of the codes and names of countries (ISO 3166), sorted by name."""
    from babel import Locale

    names = Locale(language).territories
    return sorted(((code, names.get(code, code)) for code in codes), key=lambda pair: pair[1])


def dated(language: Language, when: date, pattern: str) -> str:
    """Format a date or a local time by a CLDR pattern, such as ``EEEE, d MMMM``."""
    from babel.dates import format_date, format_datetime

    if isinstance(when, datetime):
        return format_datetime(when, pattern, locale=language)
    return format_date(when, pattern, locale=language)


def weekday_and_day(language: Language, when: date, *, short: bool = False) -> str:
    """Format a date with its weekday, such as ``Wednesday, 25 November 2026`` or ``Wed 25 Nov``."""
    return dated(language, when, "EEE d MMM" if short else "EEEE, d MMMM y")


def moment(language: Language, when: datetime, timezone: str) -> str:
    """Format a moment in an IANA time zone, such as ``22 Nov 2026, 14:05``."""
    from babel.dates import format_datetime

    return format_datetime(local(when, timezone), "d MMM y, HH:mm", locale=language)


def near_moment(language: Language, when: datetime, timezone: str) -> str:
    """Format a moment near now, such as ``today 14:05`` or ``22 Nov, 14:05``.

    The year is left out in the current year.
    """
    local_time, today = local(when, timezone), local(clock.now(), timezone)
    days = (local_time.date() - today.date()).days
    if days in _NEAR_DAYS:
        return translate(language, _NEAR_DAYS[days], time=f"{local_time:%H:%M}")
    is_near = local_time.year == today.year
    return local_moment(language, local_time) if is_near else moment(language, when, timezone)


def local_moment(language: Language, when: datetime) -> str:
    """Format a moment in the offset that it has, without its year, such as ``22 Nov, 14:05``."""
    from babel.dates import format_datetime

    return format_datetime(when.replace(tzinfo=None), "d MMM, HH:mm", locale=language)


def offset(when: datetime, timezone: str) -> int:
    """Return the UTC offset of the time that ``moment`` shows, in minutes, negative in the west."""
    ahead = local(when, timezone).utcoffset() or timedelta()
    return int(ahead.total_seconds()) // 60


def zone(minutes: int) -> str:
    """Format an offset from UTC, such as ``UTC+5:30``."""
    if not minutes:
        return "UTC"
    sign, (hours, minutes_past_hour) = "+" if minutes > 0 else "\u2212", divmod(abs(minutes), 60)
    return f"UTC{sign}{hours}" + (f":{minutes_past_hour:02}" if minutes_past_hour else "")


def city(language: Language, timezone: str) -> str:
    """Return the city after which an IANA time zone is named, such as ``Yekaterinburg``."""
    from babel.dates import get_timezone_location

    return get_timezone_location(timezone, locale=language, return_city=True)


def local(when: datetime, timezone: str) -> datetime:
    """Return a moment in an IANA time zone, or in UTC if the zone cannot convert it."""
    from zoneinfo import ZoneInfo

    try:
        return when.astimezone(ZoneInfo(timezone))
    except OverflowError:
        return when.astimezone(UTC)
