"""Sparse sort positions, so that a record can move without a change of its neighbours."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

STEP = 2**20  # between neighbours; twenty insertions in the middle fit into it


class SortPosition(NamedTuple):
    """A position in a list, a number and then the id among equal numbers."""

    number: int
    id: str


def between(low: int | None, *, high: int | None, count: int) -> list[int] | None:
    """Return ``count`` rising numbers between two others, spread evenly, or None if none fit."""
    if low is None:
        end = STEP if high is None else high - STEP * count
        return [end + STEP * i for i in range(count)]
    if high is None:
        return [low + STEP * i for i in range(1, count + 1)]
    if high - low <= count:
        return None
    return [low + (high - low) * i // (count + 1) for i in range(1, count + 1)]


def first_in_order(
    positions: Sequence[SortPosition], next_position: SortPosition | None
) -> dict[str, int]:
    """Return the new numbers that put records into this order, before ``next_position``.

    As many records as possible keep their numbers and are left out. If the room between two of them
    is too small, all records get new numbers.
    """
    unmoved = _longest_rising(
        [position for position in positions if next_position is None or position < next_position]
    )
    stay = {position.id for position in unmoved}
    numbers: dict[str, int] = {}
    low: int | None = None
    moved_ids: list[str] = []
    for position in [*positions, next_position]:
        if position is not None and position is not next_position and position.id not in stay:
            moved_ids.append(position.id)
            continue
        high = None if position is None else position.number
        room = between(low, high=high, count=len(moved_ids)) if moved_ids else []
        if room is None:
            return _renumber_all(positions, next_position)
        numbers |= zip(moved_ids, room, strict=True)
        low, moved_ids = high, []
    return numbers


def _renumber_all(
    positions: Sequence[SortPosition], next_position: SortPosition | None
) -> dict[str, int]:
    numbers = (
        between(
            None, high=None if next_position is None else next_position.number, count=len(positions)
        )
        or []
    )
    return dict(zip((position.id for position in positions), numbers, strict=True))


def _longest_rising(positions: Sequence[SortPosition]) -> list[SortPosition]:
    runs: list[list[SortPosition]] = []  # the best run of each length: the one with the lowest end
    for position in positions:
        length = bisect_left([run[-1] for run in runs], position)
        runs[length : length + 1] = [[*(runs[length - 1] if length else []), position]]
    return runs[-1] if runs else []
