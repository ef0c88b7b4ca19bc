"""Moving records to the front rewrites few sort positions."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.engine.listing.ordering import STEP, SortPosition, between, first_in_order

NUMBERS = st.one_of(st.integers(-5, 5), st.integers(-(10**12), 10**12))


@st.composite
def moves(draw: st.DrawFn) -> tuple[list[SortPosition], list[str]]:
    """A list of positions, and the records to move to the front."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=12))
    positions = sorted(SortPosition(number, f"{i:02}") for i, number in enumerate(numbers))
    ids = draw(st.permutations([position.id for position in positions]))
    return positions, ids[: draw(st.integers(1, len(ids)))]


def move_to_front(
    positions: list[SortPosition], ids: list[str]
) -> tuple[list[str], dict[str, int]]:
    """Move some records to the front. Return the new order and the rewritten records."""
    by_id = {position.id: position for position in positions}
    next_position = min(
        (position for position in positions if position.id not in ids), default=None
    )
    numbers = first_in_order([by_id[i] for i in ids], next_position)
    positions_after = sorted(
        SortPosition(numbers.get(position.id, position.number), position.id)
        for position in positions
    )
    return [position.id for position in positions_after], numbers


@given(moves())
def test_moved_records_come_first_and_the_rest_keep_their_order(
    move: tuple[list[SortPosition], list[str]],
) -> None:
    positions, ids = move
    order, numbers = move_to_front(positions, ids)
    assert order == ids + [position.id for position in positions if position.id not in ids]
    assert numbers.keys() <= set(ids)


@given(moves())
def test_repeating_a_move_rewrites_nothing(
    move: tuple[list[SortPosition], list[str]],
) -> None:
    positions, ids = move
    _, numbers = move_to_front(positions, ids)
    second_move = [
        SortPosition(numbers.get(position.id, position.number), position.id)
        for position in positions
    ]
    assert move_to_front(second_move, ids)[1] == {}


@given(st.integers(0, 29), st.integers(0, 28))
def test_one_move_rewrites_one_record_if_there_is_room(source: int, target: int) -> None:
    positions = [SortPosition(i * STEP, f"{i:02}") for i in range(30)]
    ids = [position.id for position in positions]
    ids.insert(target, ids.pop(source))
    order, numbers = move_to_front(positions, ids)
    assert order == ids
    assert len(numbers) == (source != target)


def test_without_room_all_moved_records_get_new_positions() -> None:
    positions = [SortPosition(n, f"{n}") for n in (1, 2, 3, 4)]
    order, numbers = move_to_front(positions, ["1", "3", "2"])
    assert order == ["1", "3", "2", "4"]
    assert numbers.keys() == {"1", "3", "2"}


@given(NUMBERS, st.integers(0, 200), st.integers(1, 90))
def test_positions_between_two_rise_strictly_or_there_is_no_room(
    low: int, room: int, count: int
) -> None:
    new_positions = between(low, high=low + room + 1, count=count)
    if count > room:
        assert new_positions is None
    else:
        assert new_positions is not None
        line = [low, *new_positions, low + room + 1]
        assert line == sorted(set(line))
        assert len(new_positions) == count
