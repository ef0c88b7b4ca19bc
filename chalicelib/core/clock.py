"""The one source of time, so that tests can set it instead of sleeping."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_source: Callable[[], datetime] = lambda: datetime.now(UTC)  # noqa: E731


def now() -> datetime:
    """Return the current time in UTC, cut to milliseconds, the precision of ids and responses.

    >>> now().microsecond % 1000
    0
    """
    moment = _source()
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def iso(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, with milliseconds and ``Z``.

    >>> iso(datetime(2027, 1, 31, 9, 30, tzinfo=UTC))
    '2027-01-31T09:30:00.000Z'
    """
    moment = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    # Formatting is a third faster without an offset, and a tenth without a choice of the precision.
    text = moment.replace(tzinfo=None).isoformat()
    return f"{text[:23]}Z" if moment.microsecond else f"{text}.000Z"


def epoch_ms(moment: datetime) -> int:
    """Return milliseconds since 1970-01-01 UTC.

    >>> epoch_ms(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
    2000
    """
    return round(moment.timestamp() * 1000)


def moment_at(ms: int) -> datetime:
    """Return the moment that is ``ms`` milliseconds after 1970-01-01 UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def local_day(moment: datetime, timezone: str) -> date:
    """Return the date of a moment in an IANA time zone.

    >>> local_day(datetime(2027, 1, 31, 22, tzinfo=UTC), "Europe/Moscow")
    datetime.date(2027, 2, 1)
    """
    from zoneinfo import ZoneInfo

    return moment.astimezone(ZoneInfo(timezone)).date()


def moment_of(when: date, timezone: str, *, end: bool = False) -> datetime:
    """Return the moment of a local time, or the first or, with ``end``, last one of a date."""
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(timezone)
    if isinstance(when, datetime):
        return (when if when.tzinfo else when.replace(tzinfo=zone)).astimezone(UTC)
    # A day on which the clock changes has 23 or 25 hours, so the next midnight decides.
    day = when + timedelta(days=1) if end else when
    midnight = datetime.combine(day, time(), zone).astimezone(UTC)
    return midnight - timedelta(milliseconds=1) if end else midnight


@contextmanager
def using(source: Callable[[], datetime]) -> Iterator[None]:
    """Replace the clock for the length of a ``with`` block, in every thread."""
    global _source  # noqa: PLW0603  the clock is process-wide by intent
    previous_source, _source = _source, source
    try:
        yield
    finally:
        _source = previous_source
