"""Sparse sort positions, so that a record can move without a change of its neighbours."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

STEP = 2**20
"""The distance between neighbours. Twenty insertions in the middle fit into it."""


class SortPosition(NamedTuple):
    """A position in a list: a number, then the id among equal numbers."""

    number: int
    id: str


def between(low: int | None, high: int | None, count: int) -> list[int] | None:
    """Return ``count`` rising numbers between two others, spread evenly.

    Returns None if there is no room. Without a bound on one side, the numbers continue from the
    other bound in steps of ``STEP``.
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
    """Return the new numbers that put records into this order, before all others.

    ``rest`` is the first of the others. As many records as possible keep their numbers and are left
    out of the result. If the room between two kept numbers is too small, all get new ones.
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
            return _renumber_all(wanted, rest)
        numbers |= zip(moved, room, strict=True)
        low, moved = high, []
    return numbers


def _renumber_all(wanted: Sequence[SortPosition], rest: SortPosition | None) -> dict[str, int]:
    numbers = between(None, None if rest is None else rest.number, len(wanted)) or []
    return dict(zip((position.id for position in wanted), numbers, strict=True))


def _longest_rising(positions: Sequence[SortPosition]) -> list[SortPosition]:
    """Return a longest subsequence of the positions that rises already."""
    runs: list[list[SortPosition]] = []  # the best run of each length: the one with the lowest end
    for position in positions:
        length = bisect_left([run[-1] for run in runs], position)
        runs[length : length + 1] = [[*(runs[length - 1] if length else []), position]]
    return runs[-1] if runs else []
