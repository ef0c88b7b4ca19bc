"""The windows that a bot's spending is limited in: a day, an ISO week and a month of a time zone.

A window is known by a key, a text; a later window's key is the greater one.
"""

from datetime import date, datetime, timedelta
from math import ceil
from typing import Literal, NamedTuple

from chalicelib.core import clock

Window = Literal["daily", "weekly", "monthly"]
WINDOWS: tuple[Window, ...] = ("daily", "weekly", "monthly")


class WindowKeys(NamedTuple):
    """The windows that a moment lies in, in the order of ``WINDOWS``."""

    daily: str
    weekly: str
    monthly: str


def window_keys(moment: datetime, timezone: str) -> WindowKeys:
    """Return the windows of a moment, such as 2027-01-01, 2026-W53 and 2027-01."""
    day = clock.local_day(moment, timezone)
    year, week, _ = day.isocalendar()
    return WindowKeys(day.isoformat(), f"{year:04}-W{week:02}", f"{day.year:04}-{day.month:02}")


def seconds_left(window: Window, moment: datetime, timezone: str) -> int:
    """Return how many seconds after a moment the next window begins."""
    begins = clock.moment_of(_next(window, clock.local_day(moment, timezone)), timezone)
    return max(1, ceil((begins - moment).total_seconds()))


def _next(window: Window, day: date) -> date:
    """Return the first day of the next window."""
    match window:
        case "daily":
            return day + timedelta(days=1)
        case "weekly":
            return day + timedelta(days=7 - day.weekday())
        case "monthly":
            return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
