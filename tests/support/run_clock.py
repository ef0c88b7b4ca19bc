"""Sets the clock of a whole test run to the real time or to an unusual moment.

``--clock weekend`` starts the service's clock on a Saturday evening, and it goes on from there.
With ``--clock drawn``, the seed of the run chooses. Browsers and other processes keep the real
time.
"""

import random
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core import clock

MOSCOW, BERLIN = ZoneInfo("Europe/Moscow"), ZoneInfo("Europe/Berlin")
DRAWN = "drawn"


def _weekend(today: datetime) -> datetime:
    saturday = today + timedelta(days=(5 - today.weekday()) % 7)
    return saturday.replace(hour=20, minute=30)


def _night(today: datetime) -> datetime:
    return (today + timedelta(days=1)).replace(hour=3, minute=10)


def _month_end(today: datetime) -> datetime:
    next_month = (today.replace(day=1) + timedelta(days=32)).replace(day=1, hour=0, minute=0)
    return next_month - timedelta(minutes=5)


def _year_end(today: datetime) -> datetime:
    return today.replace(month=12, day=31, hour=23, minute=55)


def _leap_day(today: datetime) -> datetime:
    return today.replace(year=today.year - today.year % 4 + 4, month=2, day=29, hour=12, minute=0)


def _clocks_change(month: int) -> Callable[[datetime], datetime]:
    """Return the rule for ten minutes before the clocks change in the European Union."""

    def moment(today: datetime) -> datetime:
        last = datetime(today.year + 1, month, 31, 0, 50, tzinfo=UTC)
        return last - timedelta(days=(last.weekday() + 1) % 7)

    return moment


CLOCKS: Mapping[str, Callable[[datetime], datetime]] = {
    "now": lambda _: datetime.now(UTC),
    "weekend": _weekend,
    "night": _night,
    "month-end": _month_end,
    "year-end": _year_end,
    "leap-day": _leap_day,
    "spring-forward": _clocks_change(3),
    "fall-back": _clocks_change(10),
}
"""Name of a clock -> its first moment, from the beginning of today in Moscow."""


def clock_name(text: str) -> str:
    """Return the value of ``--clock``.

    Raises:
        ArgumentTypeError: The clock is unknown.
    """
    if text not in {*CLOCKS, DRAWN}:
        msg = f"expected {DRAWN} or one of {', '.join(CLOCKS)}; received {text!r}"
        raise ArgumentTypeError(msg)
    return text


def get_clock_name(config: pytest.Config) -> str:
    """Return the name of the run's clock. All processes of a run choose the same one."""
    name: str = config.getoption("--clock")
    if name != DRAWN:
        return name
    seed = config.getoption("randomly_seed", 0)
    return random.Random(f"{seed} clock").choice([*CLOCKS])


def moment_of(name: str) -> datetime:
    """Return the first moment of a clock, if it starts today."""
    today = datetime.now(MOSCOW).replace(hour=0, minute=0, second=0, microsecond=0)
    return CLOCKS[name](today).astimezone(UTC)


_shift = timedelta(0)


def now() -> datetime:
    """Return the time of the run's clock, whatever clock a test has set."""
    return datetime.now(UTC) + _shift


def start(config: pytest.Config) -> None:
    """Set the service's clock for the rest of this process."""
    global _shift  # noqa: PLW0603  the clock is process-wide by intent
    if (name := get_clock_name(config)) != "now":
        _shift = moment_of(name) - datetime.now(UTC)
        clock._source = now


def header(config: pytest.Config) -> str:
    """Return the line of the report that names the clock."""
    name = get_clock_name(config)
    return f"clock: {name}, from {moment_of(name):%a %Y-%m-%d %H:%M} UTC (--clock {name})"
