"""Times in IANA zones: which zones there are, how local times are read and shown.

Ranges are read leniently (``clock.moment_of``); a time that something is to happen at is read
exactly here: one that never occurs, or occurs twice, is refused (bookings.md, Zones).
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import cache
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.lib.spans import Span

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_NO_PLACES = {"localtime", "Factory"}
"""Names of zone databases that stand for no place."""


class LocalTimeError(ValueError):
    """A local time that names no moment, or two; the message says which ones to send instead."""


class NonexistentTimeError(LocalTimeError):
    """A local time that a clock change skips."""


class AmbiguousTimeError(LocalTimeError):
    """A local time that a clock change repeats."""


class LocalTime(NamedTuple):
    """A moment as people of a zone say it: ISO 8601 with its offset, and ``mon`` to ``sun``."""

    text: str
    weekday: str


@cache
def zones() -> frozenset[str]:
    """Return the names of all zones.

    They are those of the pinned tzdata, the same on every machine; ``available_timezones`` would
    look into hundreds of files of the system.
    """
    from importlib import resources  # noqa: PLC0415  few requests ask

    names = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    return frozenset(names) - _NO_PLACES


def reading_zone(
    given: str | None, resource: str | None, bound: Iterable[str], workspace: str
) -> str:
    """Return the zone that input without an offset is read in.

    The one given with it, else the named resource's, else the one that all bound resources share,
    else the workspace's.
    """
    shared = set(bound)
    return given or resource or (shared.pop() if len(shared) == 1 else workspace)


def exact_moment(when: datetime, timezone: str) -> datetime:
    """Return the moment, in UTC, that a time with an offset, or a local time of a zone, names.

    Raises:
        NonexistentTimeError: clocks skip this local time.
        AmbiguousTimeError: clocks show this local time twice.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415  as above

    if when.tzinfo:
        return when.astimezone(UTC)
    zone = ZoneInfo(timezone)
    # Where both readings differ, the first is the earlier one of a time that is repeated and the
    # later one of a time that is skipped (PEP 495).
    first, second = (when.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    low, high = (shown(moment, timezone).text for moment in sorted((first, second)))
    local = f"{when.isoformat(timespec='minutes')} in {timezone}"
    if first < second:
        message = f"{local} occurs twice, as clocks go back; send {low} or {high}"
        raise AmbiguousTimeError(message)
    message = f"{local} does not occur, as clocks go forward; the nearest are {low} and {high}"
    raise NonexistentTimeError(message)


def shown(moment: datetime, timezone: str) -> LocalTime:
    """Return how a moment is said in a zone."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  as above

    local = moment.astimezone(ZoneInfo(timezone))
    return LocalTime(local.isoformat(timespec="seconds"), WEEKDAYS[local.weekday()])


def span_of_days(first: date, last: date, timezone: str) -> Span:
    """Return the local dates ``first`` to ``last``, both whole, in milliseconds since 1970 UTC."""
    return Span(
        clock.epoch_ms(clock.moment_of(first, timezone)),
        clock.epoch_ms(clock.moment_of(last, timezone, end=True)) + 1,
    )


def count_of_days(first: datetime, last: datetime, timezone: str) -> int:
    """Return how many local dates a range touches: October in Berlin has 31, at 745 hours."""
    return (clock.local_day(last, timezone) - clock.local_day(first, timezone)).days + 1
