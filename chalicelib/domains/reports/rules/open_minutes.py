"""Compute the minutes in which resources are open, by local day."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from chalicelib.core import clock
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.open_windows import Schedule
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span, merge

_DAY = timedelta(days=1)
_MINUTE = 60_000


def by_day(  # noqa: PLR0913  the hours, the time off, and two zones
    schedule: Schedule,
    off: Iterable[Span],
    first: date,
    *,
    last: date,
    resource_zone: str,
    zone: str,
) -> dict[date, int]:
    """Return the open minutes of the days ``first`` to ``last`` of a zone, without time off.

    Hours after midnight belong to the day on which they are.
    """
    bounds = zoned_times.span_of_days(first, last=last, timezone=zone)
    # Hours of the evening before reach into the first day, and another zone may be a day away.
    opened = merge(
        open_windows.windows(schedule, resource_zone, first - 2 * _DAY, last=last + _DAY),
        touching=True,
    )
    closed = merge(off, touching=True)
    midnights = _midnights(first, last, zone)
    minutes: defaultdict[date, int] = defaultdict(int)
    for span in opened:
        for part in _without(span, closed):
            start, end = max(part.start, bounds.start), min(part.end, bounds.end)
            number = bisect_right(midnights, start) - 1
            while start < end:
                until = min(end, midnights[number + 1])
                minutes[first + number * _DAY] += (until - start) // _MINUTE
                start, number = until, number + 1
    return dict(minutes)


def _midnights(first: date, last: date, zone: str) -> list[int]:
    # Days on which the clock changes have 23 or 25 hours.
    days = (last - first).days + 2
    return [clock.epoch_ms(clock.moment_of(first + number * _DAY, zone)) for number in range(days)]


def _without(span: Span, closed: Sequence[Span]) -> list[Span]:
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
