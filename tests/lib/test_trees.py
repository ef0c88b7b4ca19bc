"""Levels, heights and cycles of trees equal the results of a plain traversal."""

from hypothesis import given
from hypothesis import strategies as st

from chalicelib.lib.trees import ancestors, depth, descendants, height, is_cycle

FAMILY: dict[str, str | None] = {"a": None, "b": "a", "c": "b", "d": "a", "e": None, "f": "gone"}


@st.composite
def any_tree(draw: st.DrawFn) -> dict[str, str | None]:
    """Each node's parent is an earlier one, or None."""
    parents: dict[str, str | None] = {}
    for number in range(draw(st.integers(1, 12))):
        parents[str(number)] = draw(st.sampled_from([None, *parents]))
    return parents


def test_levels_count_from_the_roots() -> None:
    assert [depth(FAMILY, node) for node in (None, "a", "b", "c", "d", "e")] == [0, 1, 2, 3, 2, 1]
    assert ancestors(FAMILY, "c") == ["b", "a"]


def test_all_nodes_below_a_node_are_found_on_any_level() -> None:
    assert [descendants(FAMILY, node) for node in "abcx"] == [["b", "c", "d"], ["c"], [], []]


def test_a_node_without_its_parent_counts_as_a_root() -> None:
    assert depth(FAMILY, "f") == 1


def test_the_height_is_the_longest_path_down() -> None:
    assert [height(FAMILY, node) for node in ("a", "b", "c", "e")] == [3, 2, 1, 1]


def test_only_a_move_below_itself_is_a_cycle() -> None:
    assert is_cycle(FAMILY, "a", "a")
    assert is_cycle(FAMILY, "a", "c")
    assert not is_cycle(FAMILY, "c", "a")
    assert not is_cycle(FAMILY, "a", None)
    assert not is_cycle(FAMILY, "a", "e")


@given(any_tree(), st.data())
def test_a_move_without_a_cycle_leaves_a_tree(
    parents: dict[str, str | None], data: st.DataObject
) -> None:
    node = data.draw(st.sampled_from(sorted(parents)))
    parent = data.draw(st.sampled_from([None, *sorted(parents)]))
    if is_cycle(parents, node, parent):
        assert parent == node or node in ancestors(parents, str(parent))
        return
    levels = depth(parents, parent) + height(parents, node)
    new_parents = parents | {node: parent}
    assert all(len(ancestors(new_parents, one)) < len(new_parents) for one in new_parents)
    below = [one for one in new_parents if one == node or node in ancestors(new_parents, one)]
    assert max(depth(new_parents, one) for one in below) == levels
