"""Periods of days that statistics are asked for, in the workspace's time zone."""

from datetime import date, timedelta

from chalicelib.core import clock
from chalicelib.core.errors import ValidationError

DEFAULT_DAYS = 30
MAX_DAYS = 366


def period(first: date | None, last: date | None, timezone: str) -> tuple[date, date]:
    """Return the days from the first to the last, both included; the last thirty by default.

    Raises:
        ValidationError: none at all, or more than a year.
    """
    last = last or clock.local_day(clock.now(), timezone)
    first = first or last - timedelta(days=DEFAULT_DAYS - 1)
    length = (last - first).days + 1
    if length < 1:
        raise ValidationError.of("from", f"expected a day up to {last}, received {first}")
    if length > MAX_DAYS:
        message = f"expected at most {MAX_DAYS} days, received {length}"
        raise ValidationError.of("from", message)
    return first, last
