"""Sharded counters per workspace and noun, which give totals in O(1) without a hot item."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from chalicelib.engine.reading import Cost, Item, Partition
from chalicelib.engine.tables import ContentRow

SHARDS = 4
# Fewer: a value has fewer writers, and ``read_facet`` reads all shards of all values.
VALUE_SHARDS = 2
TOTAL = "total"
_MAIN = "all"
_COUNT = "count"


ReadCounts = Callable[[], Counter[str]]  # returns all counters of a noun


class CounterRow(ContentRow):
    """One shard of counters. Each counter is a top-level number attribute."""


def name(facet: str, *, value: str) -> str:
    """Return the name of the counter of a facet's value."""
    return f"{facet}:{value}"


def shard_updates(
    workspace_id: str, *, noun: str, deltas: Mapping[str, int]
) -> list[tuple[CounterRow, list[Action]]]:
    """Choose random shards, and return the additions to each, for a transaction."""
    additions: defaultdict[str, list[Action]] = defaultdict(list)
    main = f"{_MAIN}#{random.randrange(SHARDS)}"  # noqa: S311  load spreading, not a secret
    for counter, delta in sorted(deltas.items()):
        if delta:
            facet, _, value = counter.partition(":")
            # Every list reads these, so they share rows. Each value of a counted facet has its own
            # rows, so that no row grows with the number of values.
            if facet in {TOTAL, "status"}:
                additions[main].append(Path([counter]).add(delta))
            else:
                shard = random.randrange(VALUE_SHARDS)  # noqa: S311  as above
                additions[f"{facet}#{value}#{shard}"].append(Path([_COUNT]).add(delta))
    pk = _partition(workspace_id, noun=noun)
    return [(CounterRow(pk, shard), actions) for shard, actions in additions.items()]


def whole_rows(workspace_id: str, *, noun: str, counts: Mapping[str, int]) -> list[Item]:
    """Return a noun's counters as new rows in DynamoDB's JSON, to import a workspace."""
    rows: defaultdict[str, Item] = defaultdict(dict)
    for counter, number in counts.items():
        facet, _, value = counter.partition(":")
        is_main = facet in {TOTAL, "status"}
        # Not random: the same counters always return the same rows.
        shard = f"{_MAIN}#0" if is_main else f"{facet}#{value}#0"
        rows[shard][counter if is_main else _COUNT] = {"N": str(number)}
    pk = {"S": _partition(workspace_id, noun=noun)}
    return [{"pk": pk, "sk": {"S": shard}, **row} for shard, row in rows.items()]


def read(workspace_id: str, *, noun: str, cost: Cost | None = None) -> Counter[str]:
    """Return the total and the counters of each status, read consistently, without zeros."""
    return _sum(workspace_id, noun=noun, shards=ContentRow.sk.startswith(f"{_MAIN}#"), cost=cost)


def read_facet(
    workspace_id: str, *, noun: str, facet: str, cost: Cost | None = None
) -> Counter[str]:
    """Return the counters of all values of a facet."""
    return _sum(workspace_id, noun=noun, shards=ContentRow.sk.startswith(f"{facet}#"), cost=cost)


def read_value(
    workspace_id: str, *, noun: str, facet: str, value: str, cost: Cost | None = None
) -> int:
    """Return the counter of one value of a facet."""
    shards = ContentRow.sk.startswith(f"{facet}#{value}#")
    return _sum(workspace_id, noun=noun, shards=shards, cost=cost)[name(facet, value=value)]


def read_all(workspace_id: str, *, noun: str, cost: Cost | None = None) -> Counter[str]:
    """Return all counters of a noun: the total, the statuses and the values of counted facets."""
    return _sum(workspace_id, noun=noun, shards=None, cost=cost)


def value_rows(workspace_id: str, *, noun: str, facet: str, value: str) -> list[CounterRow]:
    """Return all rows that may hold the counter of a facet's value."""
    pk = _partition(workspace_id, noun=noun)
    return [CounterRow(pk, f"{facet}#{value}#{shard}") for shard in range(VALUE_SHARDS)]


# The part of a facet value's counter that each of its rows holds, by sort key.
Shards = dict[str, int]


def read_shards(workspace_id: str, *, noun: str, facet: str, value: str) -> Shards:
    """Return the rows of the counter of one value of a facet."""
    shards = ContentRow.sk.startswith(f"{facet}#{value}#")
    rows = Partition(_partition(workspace_id, noun=noun), Cost()).items(
        range_key_condition=shards, consistent_read=True
    )
    return {row["sk"]["S"]: int(row[_COUNT]["N"]) for row in rows}


def is_unchanged(row: CounterRow, shards: Shards) -> Condition:
    """Return the condition that a row of a counter is as it was read."""
    if row.sk not in shards:
        return CounterRow.pk.does_not_exist()
    unchanged: Condition = Path([_COUNT]) == shards[row.sk]
    return unchanged


class NounCounts:
    """The counters of a noun, read once, or by ``all_counts`` if they are read elsewhere."""

    def __init__(
        self,
        workspace_id: str,
        *,
        noun: str,
        status: str | None,
        cost: Cost,
        all_counts: ReadCounts | None = None,
    ) -> None:
        self._workspace_id, self._noun = workspace_id, noun
        self._status = status
        self._cost = cost
        self._all_counts = all_counts
        self._main: Counter[str] | None = None

    def total(self) -> int:
        return self._shared()[TOTAL]

    def count_value(self, facet: str, *, value: str) -> int:
        """Return the number of the records with a value of a counted facet or of the status."""
        if facet == self._status:
            return self._shared()[name("status", value=value)]
        if self._all_counts is None:
            return read_value(
                self._workspace_id, noun=self._noun, facet=facet, value=value, cost=self._cost
            )
        return self._shared()[name(facet, value=value)]

    def read_all(self) -> None:
        """Read the counters of all values, so that later calls send no request."""
        if self._all_counts is None:
            counts = read_all(self._workspace_id, noun=self._noun, cost=self._cost)
            self._all_counts = lambda: counts

    def _shared(self) -> Counter[str]:
        if self._main is None:
            read_counts = self._all_counts or partial(
                read, self._workspace_id, noun=self._noun, cost=self._cost
            )
            self._main = read_counts()
        return self._main


def _sum(
    workspace_id: str, *, noun: str, shards: Condition | None, cost: Cost | None
) -> Counter[str]:
    partition = Partition(_partition(workspace_id, noun=noun), cost or Cost())
    totals: Counter[str] = Counter()
    for item in partition.items(range_key_condition=shards, consistent_read=True):
        kind, _, value = item["sk"]["S"].rpartition("#")[0].partition("#")
        for counter, number in item.items():
            if "N" in number:
                totals[name(kind, value=value) if kind != _MAIN else counter] += int(number["N"])
    return +totals


def _partition(workspace_id: str, *, noun: str) -> str:
    return f"W#{workspace_id}#COUNT#{noun}"
