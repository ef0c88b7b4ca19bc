"""Daily counters for statistics, by subject and by value.

A subject is a site, a bot or ``crm``. It has a few shard rows a day, each with one number per
counter, so that an increment updates a single row. Values that visitors send, such as a page or a
source, are counted by value. One row a day lists them in order of arrival, and the name of a
counter contains the value's position in the list. The number of values of a dimension per day is
limited; further ones count as ``other``. The position of a value never changes, so increments can
be subtracted again (ADR 14).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache, partial

from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition, size
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.engine.connection import (
    CONDITION_FAILED,
    CONFLICTS,
    error_code,
    raise_failure,
    reaching,
)
from chalicelib.engine.reading import Cost, Item, Partition
from chalicelib.engine.tables import ConversationRow
from chalicelib.engine.unit import UnitOfWork

SHARDS = 4
MAX_VALUES = 100
MAX_VALUE_BYTES = 512
OTHER = "other"
_VALUES = "values"
_ANYHOW = ConversationRow.pk.exists() | ConversationRow.pk.does_not_exist()


class MetricsRow(ConversationRow):
    """A shard of a subject's day, or the list of the day's values.

    The attribute ``##<measure>`` is the total of a measure. ``<dimension>#<place>#<measure>`` is
    the part for the value at that position of the list, or for ``other``.
    """


@dataclass(slots=True)
class DayCounts:
    """Totals by measure, and ``by[dimension][value]`` with the same measures. Zeros are absent."""

    totals: Counter[str] = field(default_factory=Counter)
    by: defaultdict[str, defaultdict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )

    def include(self, other: "DayCounts") -> None:
        """Add the counts of another day."""
        self.totals.update(other.totals)
        for dimension, values in other.by.items():
            for value, measures in values.items():
                self.by[dimension][value].update(measures)


class Increments:
    """Increments of an operation, to be staged in its unit of work or written at once."""

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self._of: defaultdict[tuple[str, date], Counter[tuple[str, str, str]]] = defaultdict(
            Counter
        )
        self._limits: dict[tuple[str, str], int] = {}

    def add(
        self,
        subject: str,
        day: date,
        measures: Mapping[str, int],
        *,
        max_values: int = MAX_VALUES,
        **values: str | None,
    ) -> None:
        """Add to the measures of a subject, in total and for each given value.

        Negative numbers subtract what was counted on that day. The first ``max_values`` different
        values of a dimension are counted separately each day, by their first 512 bytes.
        """
        counts = self._of[subject, day]
        counts.update({("", "", measure): number for measure, number in measures.items()})
        for dimension, value in values.items():
            if value is not None:
                self._limits[subject, dimension] = max_values
                cut = value.encode(errors="replace")[:MAX_VALUE_BYTES].decode(errors="ignore")
                for measure, number in measures.items():
                    counts[dimension, cut, measure] += number

    def stage(self, unit: UnitOfWork) -> None:
        """Stage all increments: one row of the transaction for each subject and day.

        Call it once per unit, because a transaction cannot write a row twice.
        """
        for row, actions in self._rows():
            unit.update(row, actions, _ANYHOW)

    def write(self) -> None:
        """Write all increments at once: one request for each subject and day.

        The result may be inexact: a request whose answer is lost is repeated, although it may have
        been counted.
        """
        for row, actions in self._rows():
            retry_on_conflict(partial(_write, row, actions))

    def _rows(self) -> Iterator[tuple[MetricsRow, list[Action]]]:
        for (subject, day), counts in self._of.items():
            pk = _partition(self._workspace_id, subject)
            named: Counter[str] = Counter()
            for (dimension, value, measure), number in counts.items():
                limit = self._limits.get((subject, dimension), MAX_VALUES)
                place = _position(pk, day, dimension, value, limit) if dimension else ""
                named[f"{dimension}#{place}#{measure}"] += number
            actions: list[Action] = [Path([name]).add(n) for name, n in named.items() if n]
            if actions:
                shard = random.randrange(SHARDS)  # noqa: S311  load spreading, not a secret
                yield MetricsRow(pk, f"{day}#{shard}"), actions


def read(
    workspace_id: str, subject: str, first: date, last: date, cost: Cost | None = None
) -> dict[date, DayCounts]:
    """Return the counts of each day from the first to the last, empty days included.

    It takes one query as long as the rows fit into one megabyte.
    """
    sums: Counter[tuple[str, str]] = Counter()
    lists: dict[str, dict[str, list[str]]] = {}
    rows = Partition(_partition(workspace_id, subject), cost or Cost(), MetricsRow)
    span = MetricsRow.sk.between(f"{first}#", f"{last}$")
    for item in rows.items(range_key_condition=span, consistent_read=True):
        day, _, part = item["sk"]["S"].partition("#")
        if part == _VALUES:
            lists[day] = _lists(item)
        else:
            sums.update({(day, k): int(v["N"]) for k, v in item.items() if "#" in k})
    days = {first + timedelta(n): DayCounts() for n in range((last - first).days + 1)}
    for (day, name), number in sums.items():
        if number:
            dimension, place, measure = name.split("#", 2)
            counts = days[date.fromisoformat(day)]
            if not dimension:
                counts.totals[measure] = number
            else:
                value = OTHER if place == OTHER else lists[day][dimension][int(place)]
                counts.by[dimension][value][measure] = number
    return days


def total(days: Iterable[DayCounts]) -> DayCounts:
    """Return the sum of several days."""
    whole = DayCounts()
    for counts in days:
        whole.include(counts)
    return whole


def _write(row: MetricsRow, actions: list[Action]) -> None:
    table = MetricsRow._get_connection()  # noqa: SLF001  ``update`` would read the row again
    try:
        table.update_item(row.pk, row.sk, actions=actions)
    except UpdateError as error:
        if error_code(error) in CONFLICTS:
            raise ConcurrentUpdateError from None
        raise_failure(error)


@lru_cache(maxsize=128)
def _known(pk: str, day: date) -> dict[str, list[str]]:  # noqa: ARG001  the cache's key
    """Return the process's cached values of a day. Callers update it; lists only ever grow."""
    return {}


def forget_values() -> None:
    """Clear the cached values of all days. For tests, which replace the tables."""
    _known.cache_clear()


def _position(pk: str, day: date, dimension: str, value: str, limit: int) -> int | str:
    """Return the position of a value in the day's list. Appends the value if there is room."""
    if value == OTHER:
        return OTHER
    known = _known(pk, day)
    if not _is_decided(known, dimension, value, limit):
        known.update(_read_values(pk, day))
    if not _is_decided(known, dimension, value, limit):
        known.update(_append(pk, day, dimension, value, limit))
    values = known[dimension]
    return values.index(value) if value in values else OTHER


def _is_decided(known: Mapping[str, list[str]], dimension: str, value: str, limit: int) -> bool:
    values = known.get(dimension, ())
    return value in values or len(values) >= limit


def _append(pk: str, day: date, dimension: str, value: str, limit: int) -> dict[str, list[str]]:
    """Append a value to a day's list, unless it is there or the list is full. Returns the lists."""
    values = Path([dimension])
    short: Condition = size(values) < limit  # type: ignore[no-untyped-call]  # PynamoDB's own
    room = values.does_not_exist() | (short & ~values.contains(value))
    longer = values.set((values | []).append([value]))
    table = MetricsRow._get_connection()  # noqa: SLF001  as above
    try:
        answer = table.update_item(
            pk, f"{day}#{_VALUES}", actions=[longer], condition=room, return_values="ALL_NEW"
        )
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return _read_values(pk, day)  # another process was first
    return _lists(answer["Attributes"])


def _read_values(pk: str, day: date) -> dict[str, list[str]]:
    table = MetricsRow._get_connection()  # noqa: SLF001  as above
    with reaching():
        answer = table.get_item(pk, f"{day}#{_VALUES}", consistent_read=True)
    return _lists((answer or {}).get("Item", {}))


def _lists(item: Item) -> dict[str, list[str]]:
    return {k: [one["S"] for one in v["L"]] for k, v in item.items() if "L" in v}


def _partition(workspace_id: str, subject: str) -> str:
    return f"W#{workspace_id}#METRICS#{subject}"
