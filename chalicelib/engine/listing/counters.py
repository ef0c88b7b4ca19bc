"""Sharded counters per workspace and noun: totals in O(1) without one hot item (data.md, Lists).

They change in the transaction of the records that they count. ``total`` and ``status:<value>`` lie
together, because every list reads them. Each value of a counted facet has rows of its own
(``category_id:<id>``), which go when what it stands for goes: no row grows with their number.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from chalicelib.engine.reading import Cost, Item, Partition
from chalicelib.engine.tables import ContentRow

SHARDS = 4
VALUE_SHARDS = 2
"""Of a facet's value: fewer write the same one at once, and a list of all values reads them all."""
TOTAL = "total"
_MAIN = "all"
_COUNT = "count"


class CounterRow(ContentRow):
    """One shard. Its counters are top-level number attributes."""


def name(facet: str, value: str) -> str:
    """Return the name of the counter of a facet's value."""
    return f"{facet}:{value}"


def shard_updates(
    workspace_id: str, noun: str, deltas: Mapping[str, int]
) -> list[tuple[CounterRow, list[Action]]]:
    """Return random shards, and the additions to make to each, for a transaction."""
    additions: defaultdict[str, list[Action]] = defaultdict(list)
    main = f"{_MAIN}#{random.randrange(SHARDS)}"  # noqa: S311  spread, no secret
    for counter, delta in sorted(deltas.items()):
        if delta:
            facet, _, value = counter.partition(":")
            if facet in {TOTAL, "status"}:
                additions[main].append(Path([counter]).add(delta))
            else:
                shard = random.randrange(VALUE_SHARDS)  # noqa: S311  as above
                additions[f"{facet}#{value}#{shard}"].append(Path([_COUNT]).add(delta))
    pk = _partition(workspace_id, noun)
    return [(CounterRow(pk, shard), actions) for shard, actions in additions.items()]


def whole_rows(workspace_id: str, noun: str, counts: Mapping[str, int]) -> list[Item]:
    """Return rows, as DynamoDB's JSON, that hold all counters of a noun which has none yet.

    For a workspace that is written as a whole; the same counters are always in the same rows.
    """
    rows: defaultdict[str, Item] = defaultdict(dict)
    for counter, number in counts.items():
        facet, _, value = counter.partition(":")
        is_main = facet in {TOTAL, "status"}
        shard = f"{_MAIN}#0" if is_main else f"{facet}#{value}#0"
        rows[shard][counter if is_main else _COUNT] = {"N": str(number)}
    pk = {"S": _partition(workspace_id, noun)}
    return [{"pk": pk, "sk": {"S": shard}, **row} for shard, row in rows.items()]


def read(workspace_id: str, noun: str, cost: Cost | None = None) -> Counter[str]:
    """Return the total and the counters of the status.

    Summed over the shards, read consistently; counters at zero are left out.
    """
    return _sum(workspace_id, noun, ContentRow.sk.startswith(f"{_MAIN}#"), cost)


def read_facet(workspace_id: str, noun: str, facet: str, cost: Cost | None = None) -> Counter[str]:
    """Return the counters of all values of a facet."""
    return _sum(workspace_id, noun, ContentRow.sk.startswith(f"{facet}#"), cost)


def read_value(
    workspace_id: str, noun: str, facet: str, value: str, cost: Cost | None = None
) -> int:
    """Return the counter of one value of a facet."""
    shards = ContentRow.sk.startswith(f"{facet}#{value}#")
    return _sum(workspace_id, noun, shards, cost)[name(facet, value)]


def read_all(workspace_id: str, noun: str, cost: Cost | None = None) -> Counter[str]:
    """Return all counters of a noun: the total, and those of every facet that is counted."""
    return _sum(workspace_id, noun, None, cost)


def value_rows(workspace_id: str, noun: str, facet: str, value: str) -> list[CounterRow]:
    """Return all rows that may hold the counter of a facet's value."""
    pk = _partition(workspace_id, noun)
    return [CounterRow(pk, f"{facet}#{value}#{shard}") for shard in range(VALUE_SHARDS)]


def _sum(workspace_id: str, noun: str, shards: Condition | None, cost: Cost | None) -> Counter[str]:
    partition = Partition(_partition(workspace_id, noun), cost or Cost())
    totals: Counter[str] = Counter()
    for item in partition.items(range_key_condition=shards, consistent_read=True):
        kind, _, value = item["sk"]["S"].rpartition("#")[0].partition("#")
        for counter, number in item.items():
            if "N" in number:
                totals[name(kind, value) if kind != _MAIN else counter] += int(number["N"])
    return +totals


def _partition(workspace_id: str, noun: str) -> str:
    return f"W#{workspace_id}#COUNT#{noun}"
