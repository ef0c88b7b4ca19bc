"""Sharded counters per workspace and noun: totals in O(1) without one hot item (data.md, Lists).

A shard is one record with a number per counter (``total``, ``status:active``, ``category_id:...``),
changed in the same transaction as the records it counts.
"""

import random
from collections import Counter
from collections.abc import Mapping

from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from chalicelib.store.tables import ContentRow, reaching

SHARDS = 4


class CounterRow(ContentRow):
    """One shard. Its counters are top-level number attributes, named by what they count."""


def _partition(workspace_id: str, noun: str) -> str:
    return f"W#{workspace_id}#COUNT#{noun}"


def shard_update(
    workspace_id: str, noun: str, deltas: Mapping[str, int]
) -> tuple[CounterRow, list[Action]]:
    """Return a random shard and the additions to make to it, for a transaction."""
    row = CounterRow(_partition(workspace_id, noun), str(random.randrange(SHARDS)))  # noqa: S311  spread, no secret
    return row, [Path([name]).add(delta) for name, delta in sorted(deltas.items()) if delta]


def read(workspace_id: str, noun: str) -> Counter[str]:
    """Return all counters of a noun, summed over the shards, read consistently."""
    table = CounterRow._get_connection()  # noqa: SLF001  raw items: counter names are not model attributes
    with reaching():
        answer = table.query(_partition(workspace_id, noun), consistent_read=True)
    totals: Counter[str] = Counter()
    for item in answer["Items"]:
        for name, value in item.items():
            if "N" in value:
                totals[name] += int(value["N"])
    return +totals
