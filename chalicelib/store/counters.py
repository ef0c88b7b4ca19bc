"""Sharded counters per workspace and noun: totals in O(1) without one hot item (data.md, Lists).

A shard is a record with a number per counter, changed in the same transaction as the records that
it counts. ``total`` and ``status:<value>`` lie together, because every list reads them; the
counters of a facet with any number of values (``category_id:<id>``) have shards of their own.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from chalicelib.store.reading import Cost, Partition
from chalicelib.store.tables import ContentRow

SHARDS = 4
TOTAL = "total"
_MAIN = "all"
"""The facet, so to say, of the counters that every list reads."""


class CounterRow(ContentRow):
    """One shard. Its counters are top-level number attributes, named by what they count."""


def name(facet: str, value: str) -> str:
    """Return the name of the counter of a facet's value."""
    return f"{facet}:{value}"


def shard_updates(
    workspace_id: str, noun: str, deltas: Mapping[str, int]
) -> list[tuple[CounterRow, list[Action]]]:
    """Return a random shard of each kind, and the additions to make to it, for a transaction."""
    additions: defaultdict[str, list[Action]] = defaultdict(list)
    for counter, delta in sorted(deltas.items()):
        if delta:
            facet = counter.partition(":")[0]
            kind = _MAIN if facet in {TOTAL, "status"} else facet
            additions[kind].append(Path([counter]).add(delta))
    shard = random.randrange(SHARDS)  # noqa: S311  spread, no secret
    pk = _partition(workspace_id, noun)
    return [(CounterRow(pk, f"{kind}#{shard}"), actions) for kind, actions in additions.items()]


def read(
    workspace_id: str, noun: str, facet: str = _MAIN, cost: Cost | None = None
) -> Counter[str]:
    """Return the total and the counters of the status, or those of another facet.

    Summed over the shards, read consistently; counters at zero are left out.
    """
    return _sum(workspace_id, noun, ContentRow.sk.startswith(f"{facet}#"), cost)


def read_all(workspace_id: str, noun: str) -> Counter[str]:
    """Return all counters of a noun: the total, and those of every facet that is counted."""
    return _sum(workspace_id, noun, None, None)


def _sum(workspace_id: str, noun: str, shards: Condition | None, cost: Cost | None) -> Counter[str]:
    partition = Partition(_partition(workspace_id, noun), cost or Cost())
    totals: Counter[str] = Counter()
    for item in partition.items(range_key_condition=shards, consistent_read=True):
        for counter, value in item.items():
            if "N" in value:
                totals[counter] += int(value["N"])
    return +totals


def _partition(workspace_id: str, noun: str) -> str:
    return f"W#{workspace_id}#COUNT#{noun}"
