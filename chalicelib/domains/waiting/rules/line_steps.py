"""Decide who of a line is offered a free time, and until when (ADR 142).

A line is of one service on one day. Times are in milliseconds since 1970 UTC.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

MAX_IN_LINE = 30
_MINUTE = 60_000
LONGEST_OFFER = 120 * _MINUTE
# A shorter offer would end before most people have read the message.
SHORTEST_OFFER = 5 * _MINUTE
# Hours and time off may change without a booking. A line is looked at this often for them.
CHECKED_EVERY = 60 * _MINUTE

# The ids of the free resources, by start. Only starts that can be booked now.
FreeTimes = Mapping[int, Collection[str]]


class Waiting(NamedTuple):
    """One who waits."""

    id: str
    resource_id: str | None = None  # None: any resource will do


class Offer(NamedTuple):
    """A free time of the day is offered to one of the line. It is not held."""

    waiting_id: str
    until: int


class Line(NamedTuple):
    """Those who wait, the first first. At most one of them has an offer."""

    waiting: tuple[Waiting, ...]
    offer: Offer | None = None


class Step(NamedTuple):
    """What becomes of a line."""

    line: Line
    is_new_offer: bool = False
    check_at: int | None = None  # when to look again; None: the line has ended


def attend(  # noqa: PLR0913  what decides
    line: Line,
    free: FreeTimes,
    *,
    booked: Collection[str],
    now: int,
    ends: int,
    notice: int = 0,
) -> Step:
    """Return the next state of a line.

    ``booked`` are the ids of those who have booked since they began to wait, so they leave. The day
    ends at ``ends``, and a time must be booked ``notice`` before its start.

    Nobody is passed over: an offer goes to the first for whom a time is free. While it stands,
    nobody else gets one. Whoever lets an offer end although a time is free leaves the line. If none
    is free at its end, the place stays.
    """
    if now >= ends:
        return Step(Line(()))
    waiting = tuple(each for each in line.waiting if each.id not in booked)
    offer = line.offer
    holder = next((each for each in waiting if offer and each.id == offer.waiting_id), None)
    if offer is not None and holder is not None and now < offer.until:
        return _step(waiting, offer, now=now, ends=ends)
    if holder is not None and starts_for(holder, free):
        waiting = tuple(each for each in waiting if each is not holder)
    new_offer = _offer(waiting, free, now=now, notice=notice)
    step = _step(waiting, new_offer, now=now, ends=ends)
    return step._replace(is_new_offer=new_offer is not None)


def starts_for(waiting: Waiting, free: FreeTimes) -> list[int]:
    """Return the free starts for one who waits."""
    return [
        start
        for start, ids in free.items()
        if waiting.resource_id is None or waiting.resource_id in ids
    ]


def offer_end(starts: Sequence[int], *, now: int, notice: int = 0) -> int | None:
    """Return until when times are offered, or None if it is too late to offer them.

    An offer lasts two hours, or half of what is left to book the last of the times.

    >>> offer_end([40 * 60_000], now=0) == 20 * 60_000
    True
    """
    left = max(starts, default=now) - notice - now
    length = min(LONGEST_OFFER, left // 2)
    return now + length if length >= SHORTEST_OFFER else None


def _offer(waiting: Sequence[Waiting], free: FreeTimes, *, now: int, notice: int) -> Offer | None:
    for each in waiting:
        if starts := starts_for(each, free):
            until = offer_end(starts, now=now, notice=notice)
            return None if until is None else Offer(each.id, until)
    return None


def _step(waiting: tuple[Waiting, ...], offer: Offer | None, *, now: int, ends: int) -> Step:
    if not waiting:
        return Step(Line(()))
    return Step(
        Line(waiting, offer), check_at=offer.until if offer else min(now + CHECKED_EVERY, ends)
    )
