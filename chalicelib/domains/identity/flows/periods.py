"""Periods of days in requests for statistics."""

from datetime import date, timedelta

from chalicelib.core import clock
from chalicelib.core.errors import ValidationError
from chalicelib.domains.identity.store import workspaces

DEFAULT_DAYS = 30
MAX_DAYS = 366


def period(workspace_id: str, first: date | None, last: date | None) -> tuple[date, date]:
    """Return the first and last day of a period. Default: the last 30 days in the workspace's zone.

    Raises:
        ValidationError: the first day is after the last, or the period is longer than ``MAX_DAYS``.
    """
    if last is None:
        last = clock.local_day(clock.now(), workspaces.get(workspace_id).timezone)
    first = first or last - timedelta(days=DEFAULT_DAYS - 1)
    length = (last - first).days + 1
    if length < 1:
        raise ValidationError.of("from", f"expected a day up to {last}, received {first}")
    if length > MAX_DAYS:
        message = f"expected at most {MAX_DAYS} days, received {length}"
        raise ValidationError.of("from", message)
    return first, last
