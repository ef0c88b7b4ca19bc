"""Trees that are stored as each record's parent: how deep they are, and what may go where.

``parents`` maps every id to its parent's, or to None. A record whose parent is not there (its
deletion is under way) stands at the root.
"""

from collections import defaultdict
from collections.abc import Mapping

Parents = Mapping[str, str | None]


def ancestors(parents: Parents, node: str) -> list[str]:
    """Return the ids above a node, the nearest first."""
    found: list[str] = []
    above = parents.get(node)
    while above is not None and above in parents:
        found.append(above)
        above = parents[above]
    return found


def depth(parents: Parents, node: str | None) -> int:
    """Return on which level a node is: a root on the first, None (above the roots) on level 0."""
    return 0 if node is None else len(ancestors(parents, node)) + 1


def height(parents: Parents, node: str) -> int:
    """Return how many levels a node and what is below it take: 1 without children."""
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    levels, level = 0, [node]
    while level:
        level = [child for one in level for child in children[one]]
        levels += 1
    return levels


def is_cycle(parents: Parents, node: str, parent: str | None) -> bool:
    """Whether a node would come to stand below itself under a parent."""
    return parent is not None and (parent == node or node in ancestors(parents, parent))


def below(parents: Parents, node: str) -> list[str]:
    """Return the ids below a node, on any level."""
    return [each for each in parents if node in ancestors(parents, each)]
