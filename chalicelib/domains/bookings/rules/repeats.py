"""The starts at which a visit is repeated: the same time of day, some weeks later."""

from datetime import datetime
from typing import NamedTuple

from chalicelib.lib import zoned_times

# Query parameter of a booking page: the start at which a visit is to be repeated, if it is free.
PARAMETER = "again"
WEEKS = (1, 2, 3, 4, 6, 8)  # after which pages offer a visit again


class Repeat(NamedTuple):
    weeks: int
    start: datetime


def start_after(starts_at: datetime, weeks: int, timezone: str) -> datetime:
    """Return the start some weeks later at the same local time, even if the clocks change."""
    return zoned_times.moment_days_later(starts_at, 7 * weeks, timezone)


def offered(starts_at: datetime, timezone: str, *, now: datetime) -> list[Repeat]:
    """Return when a visit can be repeated, without the times that have passed."""
    repeats = [Repeat(weeks, start_after(starts_at, weeks, timezone)) for weeks in WEEKS]
    return [repeat for repeat in repeats if repeat.start > now]
