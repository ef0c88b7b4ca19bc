"""Names of IANA time zones, and conversion between local times and moments, as points in time."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from unicodedata import combining, normalize

from chalicelib.core import clock
from chalicelib.lib.spans import Span

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_NOT_PLACES = {"localtime", "Factory"}  # names in zone databases that are not names of a place


class LocalTimeError(ValueError):
    """A local time that matches no moment, or two moments. The message has valid times to send."""


class NonexistentTimeError(LocalTimeError):
    """A local time that a clock change skips."""


class AmbiguousTimeError(LocalTimeError):
    """A local time that a clock change repeats."""


class LocalTime(NamedTuple):
    """A local time as ISO 8601 with its UTC offset, and the weekday as ``mon`` to ``sun``."""

    text: str
    weekday: str


@cache
def zones() -> frozenset[str]:
    """Return the names of all zones in the pinned tzdata package, the same on every machine."""
    # ``zoneinfo.available_timezones`` is slower, because it opens hundreds of files.
    from importlib import resources

    names = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    return frozenset(names) - _NOT_PLACES


# Codes of territories where nobody has a business (ISO 3166).
UNINHABITED = frozenset({"AQ", "GS", "IO", "TF", "UM"})


@cache
def zones_of_countries(code: str | None = None) -> tuple[str, ...]:
    """Return the zones of today, of one country (ISO 3166) or of all inhabited ones, sorted.

    Those of all countries are two thirds of ``zones``, because former names are left out.
    """
    return tuple(
        sorted(
            zone
            for country, zone in _country_rows()
            if (country == code if code else country not in UNINHABITED)
        )
    )


def zones_of_country(code: str) -> list[str]:
    """Return the zones of a country (ISO 3166 code), or one zone if they do not differ from now on.

    ``Europe/Berlin`` and ``Europe/Busingen`` differed in the past only. The first one is returned.
    """
    zones_found = [zone for country, zone in _country_rows() if country == code]
    rules = {_rules_from_now_on(zone) for zone in zones_found}
    return zones_found[:1] if len(rules) == 1 else zones_found


@cache
def zones_that_differ() -> dict[str, list[str]]:
    """Return for each country a zone for each clock that its places have from now on.

    >>> zones_that_differ()["NZ"]
    ['Pacific/Auckland', 'Pacific/Chatham']
    """
    by_country: dict[str, list[str]] = {}
    for country, zone in _country_rows():
        by_country.setdefault(country, []).append(zone)
    # The rules of a zone are in a file, which most countries do not need.
    return {
        country: zones_found if len(zones_found) == 1 else _first_by_rules(zones_found)
        for country, zones_found in by_country.items()
    }


def _first_by_rules(zones_found: Iterable[str]) -> list[str]:
    by_rules: dict[bytes, str] = {}
    for zone in zones_found:
        by_rules.setdefault(_rules_from_now_on(zone), zone)
    return list(by_rules.values())


def _country_rows() -> list[tuple[str, str]]:
    """Return pairs of a country's code and a zone, in the order of the zone database."""
    lines = _database_file("zone.tab").decode().splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(row[0], row[2]) for row in rows]


def _rules_from_now_on(zone: str) -> bytes:
    """Return the last line of a zone's file, its rules as a POSIX TZ string (RFC 9636, 3.3)."""
    return _database_file(*zone.split("/")).splitlines()[-1]


def _database_file(*path: str) -> bytes:
    from importlib import resources

    return resources.files("tzdata").joinpath("zoneinfo", *path).read_bytes()


# Large cities that are not the names of zones, as users type them.
_CITIES = {
    "Europe/Moscow": "Санкт-Петербург, Saint Petersburg, Petersburg, Питер, Казань, Kazan, Сочи, "
    "Sochi, Краснодар, Krasnodar, Нижний Новгород, Nizhny Novgorod, Ростов-на-Дону, Rostov, "
    "Воронеж, Voronezh, Тула, Ярославль, Крым, Севастополь",
    "Asia/Yekaterinburg": "Уфа, Ufa, Пермь, Perm, Челябинск, Chelyabinsk, Тюмень, Tyumen",
    "Asia/Vladivostok": "Хабаровск, Khabarovsk",
    "Asia/Almaty": "Астана, Astana, Алма-Ата, Шымкент",
    "Asia/Kolkata": "Калькутта, Mumbai, Delhi, Дели, Мумбаи",
    "Europe/Kyiv": "Kiev, Киев, Київ, Одесса, Odesa, Львов, Lviv",
    "Asia/Shanghai": "Beijing, Пекин",
    "Europe/Berlin": "Munich, Мюнхен, Hamburg, Гамбург, Germany, Германия",
    "Asia/Jerusalem": "Tel Aviv, Тель-Авив",
    "America/Los_Angeles": "San Francisco, Сан-Франциско",
}
_SEPARATORS = re.compile(r"[\W_]+")


def find_zone(text: str) -> str | None:
    """Return the zone of ``Berlin``, ``asia/yekaterinburg`` or ``Нью-Йорк``, or None."""
    # The input is the name in any case, its last part, or a city in English or Russian.
    name = text.strip()
    return name if name in zones() else _zones_by_spelling().get(_spelling(name))


def _spelling(text: str) -> str:
    letters = "".join(c for c in normalize("NFKD", text.casefold()) if not combining(c))
    return _SEPARATORS.sub(" ", letters).strip().removeprefix("г ")  # noqa: RUF001  Russian


@cache
def _zones_by_spelling() -> dict[str, str]:
    from babel import Locale

    # Names of offsets, such as GMT+3, differ by a sign only, and its meaning is often mistaken.
    places = sorted(name for name in zones() if not name.startswith(("Etc/", "GMT")))
    preferred = zones_of_countries()
    names = {
        _spelling(spelling): zone
        # Later entries win, so that a city leads to its zone of today.
        for zone in (*places, *preferred)
        for spelling in (zone.rpartition("/")[2], zone)
    }
    for language in ("en", "ru"):
        for zone, zone_names in Locale(language).time_zones.items():
            if zone in zones() and "city" in zone_names:
                names.setdefault(_spelling(zone_names["city"]), zone)
    for zone, cities in _CITIES.items():
        names |= {_spelling(city): zone for city in cities.split(", ")}
    return names


def resolve_timezone(
    requested: str | None, *, resource: str | None, bound: Iterable[str], workspace: str
) -> str:
    """Return the zone in which to read input times that have no offset: the first that exists."""
    # The zone of the resources that are bound to the service counts only if they share one.
    shared = set(bound)
    return requested or resource or (shared.pop() if len(shared) == 1 else workspace)


def exact_moment(when: datetime, timezone: str) -> datetime:
    """Return the moment in UTC, or raise LocalTimeError for a time that is skipped or repeated."""
    from zoneinfo import ZoneInfo

    if when.tzinfo:
        return when.astimezone(UTC)
    zone = ZoneInfo(timezone)
    # fold=0 and fold=1 differ only around a clock change (PEP 495). For a repeated time, fold=0 is
    # the earlier moment; for a skipped time, it is the later one.
    first, second = (when.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    low, high = (local_time(moment, timezone).text for moment in sorted((first, second)))
    # The start of a booking must be one moment. For the bounds of a range, ``clock.moment_of``
    # chooses a moment instead.
    local = f"{when.isoformat(timespec='minutes')} in {timezone}"
    if first < second:
        message = f"{local} occurs twice, because clocks go back; send {low} or {high}"
        raise AmbiguousTimeError(message)
    message = f"{local} does not exist, because clocks go forward; send {low} or {high}"
    raise NonexistentTimeError(message)


def local_time(moment: datetime, timezone: str) -> LocalTime:
    """Return the local time of a moment in a zone."""
    from zoneinfo import ZoneInfo

    local = moment.astimezone(ZoneInfo(timezone))
    return LocalTime(local.isoformat(timespec="seconds"), WEEKDAYS[local.weekday()])


def span_of_days(first: date, *, last: date, timezone: str) -> Span:
    """Return the span of the local dates ``first`` to ``last``, both included."""
    return Span(
        clock.epoch_ms(clock.moment_of(first, timezone)),
        clock.epoch_ms(clock.moment_of(last, timezone, end=True)) + 1,
    )


def moment_days_later(when: date, days: int, timezone: str) -> datetime:
    """Return the moment some days later, at the same local time even if the clocks change."""
    from zoneinfo import ZoneInfo

    # A date begins at midnight, and a time may have an offset or none.
    if isinstance(when, datetime) and when.tzinfo:
        # The days are added to the local time, because a day may have 23 or 25 hours.
        when = when.astimezone(ZoneInfo(timezone)).replace(tzinfo=None)
    return clock.moment_of(when + timedelta(days=days), timezone)


def count_of_days(first: datetime, *, last: datetime, timezone: str) -> int:
    """Return the number of local dates from ``first`` to ``last``, both included."""
    # Hours do not determine the number, because a day of a clock change has 23 or 25 hours.
    return (clock.local_day(last, timezone) - clock.local_day(first, timezone)).days + 1
