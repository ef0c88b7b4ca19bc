"""Queries of trees that are stored as the parent of each record."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal

# The id of the parent of every id, or None. A record whose parent is missing, because the parent is
# being deleted, counts as a root.
Parents = Mapping[str, str | None]


def ancestors(parents: Parents, node: str) -> list[str]:
    """Return the ids above a node, its parent first."""
    path: list[str] = []
    above = parents.get(node)
    while above is not None and above in parents:
        path.append(above)
        above = parents[above]
    return path


def depth(parents: Parents, node: str | None) -> int:
    """Return the level of a node: 1 for a root, and 0 for None, which is above the roots."""
    return 0 if node is None else len(ancestors(parents, node)) + 1


def height(parents: Parents, node: str) -> int:
    """Return the number of levels in the subtree of a node, 1 without children."""
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    levels, level = 0, [node]
    while level:
        level = [child for parent in level for child in children[parent]]
        levels += 1
    return levels


def is_cycle(parents: Parents, node: str, parent: str | None) -> bool:
    """Whether moving a node under a parent would place it below itself."""
    return parent is not None and (parent == node or node in ancestors(parents, parent))


def problem(
    parents: Parents, node: str | None, *, parent: str | None, max_depth: int
) -> Literal["missing", "cycle", "depth"] | None:
    """Return why a node with its descendants, or a new one (None), cannot be under a parent."""
    if parent is not None and parent not in parents:
        return "missing"
    if node is not None and is_cycle(parents, node, parent):
        return "cycle"
    levels = height(parents, node) if node else 1
    return "depth" if depth(parents, parent) + levels > max_depth else None


def descendants(parents: Parents, node: str) -> list[str]:
    """Return the ids below a node, on any level."""
    return [node_id for node_id in parents if node in ancestors(parents, node_id)]
