"""Sparse sort orders: records move, and their neighbours keep their numbers."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

STEP = 2**20
"""The room between neighbours: twenty times something can be put in the middle."""


class SortPosition(NamedTuple):
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


def first_in_order(wanted: Sequence[SortPosition], rest: SortPosition | None) -> dict[str, int]:
    """Return the new numbers that make records stand in this order, before all others.

    ``rest`` is the first of the others. As many as can keep their numbers do, and are left out of
    the answer; where the room between them is too small, all get new ones.
    """
    kept = _longest_rising([position for position in wanted if rest is None or position < rest])
    stay = {position.id for position in kept}
    numbers: dict[str, int] = {}
    low: int | None = None
    moved: list[str] = []
    for position in [*wanted, rest]:
        if position is not None and position is not rest and position.id not in stay:
            moved.append(position.id)
            continue
        high = None if position is None else position.number
        room = between(low, high, len(moved)) if moved else []
        if room is None:
            return _all_anew(wanted, rest)
        numbers |= zip(moved, room, strict=True)
        low, moved = high, []
    return numbers


def _all_anew(wanted: Sequence[SortPosition], rest: SortPosition | None) -> dict[str, int]:
    numbers = between(None, None if rest is None else rest.number, len(wanted)) or []
    return dict(zip((position.id for position in wanted), numbers, strict=True))


def _longest_rising(positions: Sequence[SortPosition]) -> list[SortPosition]:
    """Return a longest selection of the positions, in their sequence, that already rises."""
    runs: list[list[SortPosition]] = []  # the best run of each length: the one with the lowest end
    for position in positions:
        length = bisect_left([run[-1] for run in runs], position)
        runs[length : length + 1] = [[*(runs[length - 1] if length else []), position]]
    return runs[-1] if runs else []
