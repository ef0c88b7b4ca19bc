"""Half-open spans of whole numbers, and how many of them lie over one another.

Touching is not overlapping. The numbers are minutes of a day for opening hours, and milliseconds
since 1970-01-01 UTC (``clock.epoch_ms``) for everything that happens at a moment.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple


class Span(NamedTuple):
    """All numbers from ``start`` up to, and without, ``end``."""

    start: int
    end: int


def merge(spans: Iterable[Span], *, touching: bool) -> list[Span]:
    """Return the spans in order, overlapping ones as one; touching ones as one, too, if asked."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end + touching:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def peaks(
    starts: Sequence[int], before: int, after: int, spans: Iterable[tuple[int, int]]
) -> Iterator[int]:
    """Yield, for each start, the most spans at once anywhere in [start - before, start + after).

    ``starts`` rise. One pass over both: while the stretch looked at moves on, a queue keeps the
    levels that may still be its highest, each behind its end, in falling order.
    """
    changes: defaultdict[int, int] = defaultdict(int)
    for begin, end in spans:
        changes[begin] += 1
        changes[end] -= 1
    times = sorted(changes)
    # Each level lasts until the next change; the last is zero, so it does not matter where it ends.
    levels = zip(
        times, times[1:] + times[-1:], accumulate(map(changes.__getitem__, times)), strict=True
    )
    entering = next(levels, None)
    queue: deque[tuple[int, int]] = deque()
    for start in starts:
        while entering and entering[0] < start + after:
            _, end, level = entering
            while queue and queue[-1][1] <= level:
                queue.pop()
            queue.append((end, level))
            entering = next(levels, None)
        while queue and queue[0][0] <= start - before:
            queue.popleft()
        yield queue[0][1] if queue else 0
