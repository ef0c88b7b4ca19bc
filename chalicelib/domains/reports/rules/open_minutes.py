"""Compute the minutes in which resources are open, by local day."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from chalicelib.core import clock
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.open_windows import Schedule
from chalicelib.lib.spans import Span, merge

_DAY = timedelta(days=1)
_MINUTE = 60_000


class OpenDays:
    """The open minutes of resources on the days of a zone, ``first`` to ``last``."""

    def __init__(self, first: date, last: date, zone: str) -> None:
        self._first, self._last = first, last
        # Days on which the clock changes have 23 or 25 hours.
        days = range((last - first).days + 2)
        midnights = (clock.moment_of(first + number * _DAY, zone) for number in days)
        self._midnights = list(map(clock.epoch_ms, midnights))
        # Many of the staff have the same hours.
        self._opened: dict[str, list[Span]] = {}

    @property
    def span(self) -> Span:
        """The time from the first midnight to the last."""
        return Span(self._midnights[0], self._midnights[-1])

    def minutes(self, schedule: Schedule, timezone: str, off: Iterable[Span]) -> dict[date, int]:
        """Return the open minutes of a resource by day, without time off.

        Hours after midnight belong to the day on which they are.
        """
        closed = merge(off, touching=True)
        minutes: defaultdict[date, int] = defaultdict(int)
        for span in self._windows(schedule, timezone):
            for part in _without(span, closed):
                start, end = max(part.start, self.span.start), min(part.end, self.span.end)
                number = bisect_right(self._midnights, start) - 1
                while start < end:
                    until = min(end, self._midnights[number + 1])
                    minutes[self._first + number * _DAY] += (until - start) // _MINUTE
                    start, number = until, number + 1
        return dict(minutes)

    def _windows(self, schedule: Schedule, timezone: str) -> list[Span]:
        key = repr((timezone, schedule.weekly, sorted(schedule.dates.items())))
        if key not in self._opened:
            # Hours of the evening before reach into the first day, and another zone is up to a day
            # away.
            first, last = self._first - 2 * _DAY, self._last + _DAY
            found = open_windows.windows(schedule, timezone, first, last=last)
            self._opened[key] = merge(found, touching=True)
        return self._opened[key]


def _without(span: Span, closed: Sequence[Span]) -> list[Span]:
    if not closed:
        return [span]
    parts, start = list[Span](), span.start
    place = max(bisect_right(closed, Span(span.start, span.start)) - 1, 0)
    for each in closed[place:]:
        if each.start >= span.end:
            break
        if each.start > start:
            parts.append(Span(start, each.start))
        start = max(start, each.end)
    if start < span.end:
        parts.append(Span(start, span.end))
    return parts
