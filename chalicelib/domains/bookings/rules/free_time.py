"""Free time of a resource within its opening hours, for people who look for a gap.

It ignores buffers, notice and steps, which only slots of a service consider (``rules.slots``).
Spans are in milliseconds since 1970 UTC, and half-open.
"""

from collections.abc import Iterable, Sequence

from chalicelib.lib.spans import Span, merge


def within(spans: Iterable[Span], bounds: Span) -> list[Span]:
    """Return the parts of spans inside the bounds, merged and sorted."""
    cut = (Span(max(each.start, bounds.start), min(each.end, bounds.end)) for each in spans)
    return merge((each for each in cut if each.start < each.end), touching=True)


def gaps(
    opened: Sequence[Span], busy: Iterable[Span], capacity: int, closed: Iterable[Span] = ()
) -> list[Span]:
    """Return the parts of opening hours with a free seat that are not closed.

    ``capacity`` is the number of seats. Each span in ``busy`` takes one of them.
    """
    changes = sorted(change for span in busy for change in ((span.start, 1), (span.end, -1)))
    full, taken, since = list[Span](), 0, 0
    for moment, change in changes:
        if taken < capacity <= taken + change:
            since = moment
        elif taken >= capacity > taken + change:
            full.append(Span(since, moment))
        taken += change
    return _without(opened, merge([*full, *closed], touching=True))


def _without(spans: Iterable[Span], removed: Sequence[Span]) -> list[Span]:
    found = []
    for span in spans:
        start = span.start
        for hole in removed:
            if hole.end <= start or hole.start >= span.end:
                continue
            if hole.start > start:
                found.append(Span(start, hole.start))
            start = max(start, hole.end)
        if start < span.end:
            found.append(Span(start, span.end))
    return found
