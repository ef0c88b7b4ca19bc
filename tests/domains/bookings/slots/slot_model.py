"""A naive second implementation of the slot rules. It works minute by minute and shares no code.

All numbers are minutes: since 1970 UTC for moments, after midnight for opening hours.
"""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
STAGES = (
    "no_schedule",
    "does_not_fit",
    "outside_horizon",
    "closed",
    "time_off",
    "too_little_notice",
    "fully_booked",
    "free",
)


class Hours(NamedTuple):
    """Opening hours as in the request. An end before or at the start is on the next day."""

    start: int
    end: int


class Reservation(NamedTuple):
    start: int
    end: int
    setup: int
    cleanup: int
    until: int | None


class World(NamedTuple):
    """A resource, a service and the current time."""

    zone: str
    weekly: tuple[tuple[Hours, ...], ...]
    dates: dict[date, tuple[Hours, ...]]
    duration: int
    step: int
    setup: int
    cleanup: int
    notice: int
    horizon: int
    capacity: int
    reservations: tuple[Reservation, ...]
    time_off: tuple[tuple[int, int], ...]
    now: int


class Model:
    """Checks every minute of the days around a date."""

    def __init__(self, world: World, middle: date) -> None:
        self.world = world
        self.middle = middle
        self.openings = [
            opening
            for number in range(-5, 7)
            for hours in unite(self.hours_of(middle + number * DAY))
            if (opening := self.opening(middle + number * DAY, hours))
        ]
        self.open = {minute for start, end in self.openings for minute in range(start, end)}
        self.off = {minute for start, end in world.time_off for minute in range(start, end)}
        self.taken: Counter[int] = Counter()
        for r in world.reservations:
            if r.until is None or r.until > world.now:
                self.taken.update(range(r.start - r.setup, r.end + r.cleanup))

    def stage(self, start: int) -> str:
        """Return the stage that removes a start, or ``free``."""
        world, span = self.world, range(start, start + self.world.duration)
        last_day = wall(world.zone, world.now).date() + world.horizon * DAY
        if wall(world.zone, start).date() > last_day:
            return "outside_horizon"
        on_grid = any(
            opened <= start < closed and (start - opened) % world.step == 0
            for opened, closed in self.openings
        )
        if not on_grid or not all(minute in self.open for minute in span):
            return "closed"
        if any(minute in self.off for minute in span):
            return "time_off"
        if start < world.now + world.notice:
            return "too_little_notice"
        return "free" if self.seats(start) > 0 else "fully_booked"

    def seats(self, start: int) -> int:
        """Return the seats that bookings leave free, ignoring all other obstacles."""
        end = start + self.world.duration + self.world.cleanup
        return self.world.capacity - max(
            self.taken[minute] for minute in range(start - self.world.setup, end)
        )

    def never(self) -> str | None:
        """Return why no day's hours would ever allow the service, or None.

        Checks a week and all dates, without clock changes. Weekly rules are checked over two weeks
        of minutes, and dates over the days around them.
        """
        world = self.world
        if not any(world.weekly) and not any(world.dates.values()):
            return "no_schedule"
        layouts = [[world.weekly[number % 7] for number in range(14)]]
        layouts += [
            [self.hours_of(day + number * DAY) for number in range(-3, 4)] for day in world.dates
        ]
        for layout in layouts:
            minutes = {
                number * 1440 + minute
                for number, day in enumerate(layout)
                for hours in unite(day)
                for minute in range(*hours)
            }
            run = 0
            for minute in range(15 * 1440):
                run = run + 1 if minute in minutes else 0
                if run >= world.duration:
                    return None
        return "does_not_fit"

    def hours_of(self, day: date) -> tuple[Hours, ...]:
        return self.world.dates.get(day, self.world.weekly[day.weekday()])

    def opening(self, day: date, hours: tuple[int, int]) -> tuple[int, int] | None:
        start, end = (self.moment(day, minutes) for minutes in hours)
        return (start, end) if start < end else None

    def moment(self, day: date, minutes: int) -> int:
        """Return when a wall clock first shows a time.

        For a time that a clock change skips, return when it would have been shown.
        """
        local_time = datetime(day.year, day.month, day.day) + minutes * MINUTE  # noqa: DTZ001
        walls, first = self.walls()
        if local_time in first:
            return first[local_time]
        next_minute = min(minute for minute in walls if walls[minute] > local_time)
        return next_minute - 1 + (local_time - walls[next_minute - 1]) // MINUTE

    def walls(self) -> tuple[dict[int, datetime], dict[datetime, int]]:
        return walls_around(self.world.zone, self.middle)


def unite(hours: tuple[Hours, ...]) -> list[tuple[int, int]]:
    """Return the spans, which may end on the next day, with overlapping ones merged."""
    spans = [(span.start, span.end if span.end > span.start else span.end + 1440) for span in hours]
    while pair := _overlapping(spans):
        one, other = pair
        spans = [span for i, span in enumerate(spans) if i not in pair] + [
            (min(spans[one][0], spans[other][0]), max(spans[one][1], spans[other][1]))
        ]
    return spans


def _overlapping(spans: list[tuple[int, int]]) -> tuple[int, int] | None:
    for one in range(len(spans)):
        for other in range(one):
            if spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]:
                return one, other
    return None


def wall(zone: str, minute: int) -> datetime:
    """Return the time that a wall clock shows."""
    return (EPOCH + minute * MINUTE).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


@cache
def walls_around(zone: str, middle: date) -> tuple[dict[int, datetime], dict[datetime, int]]:
    """Return the wall clock of every minute around a date, and when it first shows each time."""
    noon = (datetime(middle.year, middle.month, middle.day, 12, tzinfo=UTC) - EPOCH) // MINUTE
    walls = {minute: wall(zone, minute) for minute in range(noon - 7 * 1440, noon + 9 * 1440)}
    first: dict[datetime, int] = {}
    for minute, wall_time in walls.items():
        first.setdefault(wall_time, minute)
    return walls, first
