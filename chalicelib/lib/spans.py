"""Merging and counting of half-open spans of whole numbers."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple


# Spans that only touch do not overlap. The unit is minutes of a day for opening hours, and
# milliseconds since 1970-01-01 UTC (``clock.epoch_ms``) for everything else.
class Span(NamedTuple):
    """All numbers from ``start`` to ``end``, excluding ``end``."""

    start: int
    end: int


def merge(spans: Iterable[Span], *, touching: bool) -> list[Span]:
    """Return the spans in order, with overlapping ones merged, and touching ones on request."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end + touching:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def peaks(
    starts: Sequence[int],
    minutes_before: int,
    *,
    minutes_after: int,
    spans: Iterable[tuple[int, int]],
) -> Iterator[int]:
    """Yield for each of ascending starts the most spans in [start - before, start + after)."""
    changes: defaultdict[int, int] = defaultdict(int)
    for begin, end in spans:
        changes[begin] += 1
        changes[end] -= 1
    times = sorted(changes)
    # Each level lasts until the next change. The last level is zero, so its end does not matter.
    levels = zip(
        times, times[1:] + times[-1:], accumulate(map(changes.__getitem__, times)), strict=True
    )
    entering = next(levels, None)
    # This is the sliding-window maximum in one pass: the queue holds (end, level) pairs that can
    # still be the maximum, with falling levels.
    queue: deque[tuple[int, int]] = deque()
    for start in starts:
        while entering and entering[0] < start + minutes_after:
            _, end, level = entering
            while queue and queue[-1][1] <= level:
                queue.pop()
            queue.append((end, level))
            entering = next(levels, None)
        while queue and queue[0][0] <= start - minutes_before:
            queue.popleft()
        yield queue[0][1] if queue else 0
