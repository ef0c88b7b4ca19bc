"""Sparse sort orders: records move, and their neighbours keep their numbers."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

STEP = 2**20
"""The room between neighbours: twenty times something can be put in the middle."""


class Place(NamedTuple):
    """Where a record stands: by its number and, among equal ones, by its id."""

    number: int
    id: str


def between(low: int | None, high: int | None, count: int) -> list[int] | None:
    """Return rising numbers between two others, spread evenly; None if there is no room for them.

    Without an end on a side, they go on from the other end by steps.
    """
    if low is None:
        end = STEP if high is None else high - STEP * count
        return [end + STEP * i for i in range(count)]
    if high is None:
        return [low + STEP * i for i in range(1, count + 1)]
    if high - low <= count:
        return None
    return [low + (high - low) * i // (count + 1) for i in range(1, count + 1)]


def first_in_order(wanted: Sequence[Place], rest: Place | None) -> dict[str, int]:
    """Return the new numbers that make records stand in this order, before all others.

    ``rest`` is the first of the others. As many as can keep their numbers do, and are left out of
    the answer; where the room between them is too small, all get new ones.
    """
    kept = _longest_rising([place for place in wanted if rest is None or place < rest])
    stay = {place.id for place in kept}
    numbers: dict[str, int] = {}
    low: int | None = None
    moved: list[str] = []
    for place in [*wanted, rest]:
        if place is not None and place is not rest and place.id not in stay:
            moved.append(place.id)
            continue
        high = None if place is None else place.number
        room = between(low, high, len(moved)) if moved else []
        if room is None:
            return _all_anew(wanted, rest)
        numbers |= zip(moved, room, strict=True)
        low, moved = high, []
    return numbers


def _all_anew(wanted: Sequence[Place], rest: Place | None) -> dict[str, int]:
    numbers = between(None, None if rest is None else rest.number, len(wanted)) or []
    return dict(zip((place.id for place in wanted), numbers, strict=True))


def _longest_rising(places: Sequence[Place]) -> list[Place]:
    """Return a longest selection of the places, in their sequence, that already rises."""
    runs: list[list[Place]] = []  # the best run of each length: the one with the lowest end
    for place in places:
        length = bisect_left([run[-1] for run in runs], place)
        runs[length : length + 1] = [[*(runs[length - 1] if length else []), place]]
    return runs[-1] if runs else []
