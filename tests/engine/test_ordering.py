"""Sparse orders: what is put first comes first, and few records are rewritten."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.engine.listing.ordering import STEP, SortPosition, between, first_in_order

NUMBERS = st.one_of(st.integers(-5, 5), st.integers(-(10**12), 10**12))


@st.composite
def moves(draw: st.DrawFn) -> tuple[list[SortPosition], list[str]]:
    """A list of positions, and which of them are to come first."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=12))
    positions = sorted(SortPosition(number, f"{i:02}") for i, number in enumerate(numbers))
    ids = draw(st.permutations([position.id for position in positions]))
    return positions, ids[: draw(st.integers(1, len(ids)))]


def moved(positions: list[SortPosition], ids: list[str]) -> tuple[list[str], dict[str, int]]:
    """Put some first; return the order of all after it, and what was rewritten."""
    by_id = {position.id: position for position in positions}
    rest = min((position for position in positions if position.id not in ids), default=None)
    numbers = first_in_order([by_id[i] for i in ids], rest)
    after = sorted(
        SortPosition(numbers.get(position.id, position.number), position.id)
        for position in positions
    )
    return [position.id for position in after], numbers


@given(moves())
def test_the_listed_come_first_and_the_rest_keep_their_order(
    move: tuple[list[SortPosition], list[str]],
) -> None:
    positions, ids = move
    order, numbers = moved(positions, ids)
    assert order == ids + [position.id for position in positions if position.id not in ids]
    assert numbers.keys() <= set(ids)


@given(moves())
def test_putting_them_first_again_rewrites_nothing(
    move: tuple[list[SortPosition], list[str]],
) -> None:
    positions, ids = move
    _, numbers = moved(positions, ids)
    again = [
        SortPosition(numbers.get(position.id, position.number), position.id)
        for position in positions
    ]
    assert moved(again, ids)[1] == {}


@given(st.integers(0, 29), st.integers(0, 28))
def test_where_there_is_room_one_move_rewrites_one_record(source: int, target: int) -> None:
    positions = [SortPosition(i * STEP, f"{i:02}") for i in range(30)]
    ids = [position.id for position in positions]
    ids.insert(target, ids.pop(source))
    order, numbers = moved(positions, ids)
    assert order == ids
    assert len(numbers) == (source != target)


def test_without_room_between_them_all_of_the_listed_get_new_numbers() -> None:
    positions = [SortPosition(n, f"{n}") for n in (1, 2, 3, 4)]
    order, numbers = moved(positions, ["1", "3", "2"])
    assert order == ["1", "3", "2", "4"]
    assert numbers.keys() == {"1", "3", "2"}


@given(NUMBERS, st.integers(0, 200), st.integers(1, 90))
def test_numbers_between_rise_strictly_or_there_is_no_room(low: int, room: int, count: int) -> None:
    found = between(low, low + room + 1, count)
    if count > room:
        assert found is None
    else:
        assert found is not None
        line = [low, *found, low + room + 1]
        assert line == sorted(set(line))
        assert len(found) == count
