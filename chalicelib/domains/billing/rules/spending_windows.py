"""Compute the spending windows of a bot: a day, an ISO week and a month in a time zone.

Each window has a string as key. Keys sort in order of time.
"""

from datetime import date, datetime, timedelta
from math import ceil
from typing import Literal, NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import AppError

Window = Literal["daily", "weekly", "monthly"]
WINDOWS: tuple[Window, ...] = ("daily", "weekly", "monthly")
# Balances in kopecks below which the owner of an account is warned. 100 rubles leave time for a
# payment: an answer costs some kopecks to a few rubles. The second message, at 10 rubles, comes
# shortly before bots stop answering.
LOW_BALANCES = (10_000, 1_000)


LEAST_DAILY_LIMIT = 10_000  # in kopecks for a new bot, if a tenth of the balance is less
# A visitor spends a quarter of a bot's lowest limit a day, and an IPv6 network a half.
SHARES = {"visitor": 4, "network": 2}


def first_daily_limit(balance: int) -> int:
    """Return the daily limit of a new bot, in kopecks, from the balance of its owner."""
    return max(LEAST_DAILY_LIMIT, balance // 10)


class SpendingError(AppError):
    """The cost of an answer exceeds a limit or the balance. Messages contain no amounts."""

    status = 429
    # The window whose limit is used up, such as ``daily#2027-01-15``. None if the balance is too
    # low, if open holds may return enough of the limit, or if the owner has stopped the bot with a
    # limit of 0.
    used_up: str | None = None


class DailyLimitError(SpendingError):
    """The bot's limit of the day is reached."""

    code = "limit_daily"


class VisitorShareError(SpendingError):
    """The visitor has spent the share of a visitor of the bot's limit, or sends too much."""

    code = "rate_limited"


class WeeklyLimitError(SpendingError):
    """The bot's limit of the week is reached."""

    code = "limit_weekly"


class MonthlyLimitError(SpendingError):
    """The bot's limit of the month is reached."""

    code = "limit_monthly"


class InsufficientBalanceError(SpendingError):
    """The balance of the bot's owner does not suffice."""

    code = "insufficient_balance"


class WindowKeys(NamedTuple):
    """Keys of the windows that contain a moment, in the order of ``WINDOWS``."""

    daily: str
    weekly: str
    monthly: str


def window_keys(moment: datetime, timezone: str) -> WindowKeys:
    """Return the window keys of a moment, such as 2027-01-01, 2026-W53 and 2027-01."""
    day = clock.local_day(moment, timezone)
    year, week, _ = day.isocalendar()
    return WindowKeys(day.isoformat(), f"{year:04}-W{week:02}", f"{day.year:04}-{day.month:02}")


def becomes_low(balance_before: int, *, balance_after: int) -> bool:
    """Whether a balance falls below one of ``LOW_BALANCES``."""
    return any(balance_after < low <= balance_before for low in LOW_BALANCES)


def seconds_left(window: Window, moment: datetime, timezone: str) -> int:
    """Return the seconds from a moment to the next window, at least 1."""
    key = window_keys(moment, timezone)[WINDOWS.index(window)]
    return max(1, ceil((window_end(window, key, timezone=timezone) - moment).total_seconds()))


def window_end(window: Window, key: str, *, timezone: str) -> datetime:
    """Return the end of a window, which is the first moment of the next window."""
    match window:
        case "daily":
            day = date.fromisoformat(key) + timedelta(days=1)
        case "weekly":
            day = date.fromisoformat(key) + timedelta(days=7)
        case "monthly":
            day = (date.fromisoformat(f"{key}-01") + timedelta(days=32)).replace(day=1)
    return clock.moment_of(day, timezone)
