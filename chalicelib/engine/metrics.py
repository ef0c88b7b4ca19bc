"""Daily counters for statistics, by subject (a site, a bot or ``crm``) and by value (ADR 14).

A measure, such as ``views``, is counted in total and by the values of dimensions, such as each
``page``. A subject has ``SHARDS`` rows per day, each with all counters, so an increment updates a
single row. One more row per day lists the values of each dimension. The name of a counter contains
the position of its value in that list, which never changes, so increments can be subtracted again.
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
_ALWAYS_TRUE = ConversationRow.pk.exists() | ConversationRow.pk.does_not_exist()


class MetricsRow(ConversationRow):
    """A shard of a subject's counters of a day, or the lists of the day's values.

    The attribute ``##<measure>`` is the total of a measure. ``<dimension>#<position>#<measure>`` is
    the part for the value at that position of the list. The position of other values is ``other``.
    """


@dataclass(slots=True, eq=False, repr=False)
class DayCounts:
    """Counts by measure, without zeros: ``totals``, and ``by_dimension[dimension][value]``."""

    totals: Counter[str] = field(default_factory=Counter)
    by_dimension: defaultdict[str, defaultdict[str, Counter[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Counter))
    )

    def include(self, other: "DayCounts") -> None:
        self.totals.update(other.totals)
        for dimension, values in other.by_dimension.items():
            for value, measures in values.items():
                self.by_dimension[dimension][value].update(measures)


class Increments:
    """Increments of one operation. ``stage`` adds them to a unit of work, ``write`` sends them."""

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self._counts: defaultdict[tuple[str, date], Counter[tuple[str, str, str]]] = defaultdict(
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
        """Add to the measures of a subject, in total and for each of ``values`` by dimension.

        The first ``max_values`` different values of a dimension per day are counted separately, the
        others as ``other``. Only the first ``MAX_VALUE_BYTES`` bytes of a value are kept.
        """
        counts = self._counts[subject, day]
        counts.update({("", "", measure): number for measure, number in measures.items()})
        for dimension, value in values.items():
            if value is not None:
                self._limits[subject, dimension] = max_values
                # A lone surrogate, which JSON can contain as an escape, has no bytes of UTF-8.
                truncated = value.encode(errors="replace")[:MAX_VALUE_BYTES].decode(errors="ignore")
                for measure, number in measures.items():
                    counts[dimension, truncated, measure] += number

    def stage(self, unit: UnitOfWork) -> None:
        """Stage all increments, once per unit of work: a transaction cannot write a row twice."""
        for row, actions in self._rows():
            unit.update(row, actions, _ALWAYS_TRUE)

    def write(self) -> None:
        """Write all increments now, in one request for each subject and day."""
        for row, actions in self._rows():
            # Counts may be too high: a request whose response is lost is sent again, even if the
            # database had counted it.
            retry_on_conflict(partial(_write, row, actions))

    def _rows(self) -> Iterator[tuple[MetricsRow, list[Action]]]:
        for (subject, day), counts in self._counts.items():
            pk = partition(self._workspace_id, subject=subject)
            by_attribute: Counter[str] = Counter()
            for (dimension, value, measure), number in counts.items():
                limit = self._limits.get((subject, dimension), MAX_VALUES)
                position = (
                    _position(pk, day, dimension, value=value, limit=limit) if dimension else ""
                )
                by_attribute[f"{dimension}#{position}#{measure}"] += number
            actions: list[Action] = [Path([name]).add(n) for name, n in by_attribute.items() if n]
            if actions:
                shard = random.randrange(SHARDS)  # noqa: S311  load spreading, not a secret
                yield MetricsRow(pk, f"{day}#{shard}"), actions


def read(
    workspace_id: str, *, subject: str, first: date, last: date, cost: Cost | None = None
) -> dict[date, DayCounts]:
    """Return the counts of each day from ``first`` to ``last``, including days without counts."""
    sums: Counter[tuple[str, str]] = Counter()
    lists: dict[str, dict[str, list[str]]] = {}
    # One query is enough if the rows fit into one megabyte.
    rows = Partition(partition(workspace_id, subject=subject), cost or Cost(), MetricsRow)
    # The character "$" follows "#", so the range includes all rows of the last day.
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
            dimension, position, measure = name.split("#", 2)
            counts = days[date.fromisoformat(day)]
            if not dimension:
                counts.totals[measure] = number
            else:
                value = OTHER if position == OTHER else lists[day][dimension][int(position)]
                counts.by_dimension[dimension][value][measure] = number
    return days


def total(days: Iterable[DayCounts]) -> DayCounts:
    """Return the sum of several days."""
    result = DayCounts()
    for counts in days:
        result.include(counts)
    return result


def _write(row: MetricsRow, actions: list[Action]) -> None:
    table = MetricsRow._get_connection()  # noqa: SLF001  ``update`` would read the row again
    try:
        table.update_item(row.pk, row.sk, actions=actions)
    except UpdateError as error:
        if error_code(error) in CONFLICTS:
            raise ConcurrentUpdateError from None
        raise_failure(error)


@lru_cache(maxsize=128)
def _cached_values(pk: str, day: date) -> dict[str, list[str]]:  # noqa: ARG001  the cache's key
    # Callers update the dictionary.
    return {}


def clear_value_cache() -> None:
    """Clear the cached values of all days. For tests, which replace the tables."""
    _cached_values.cache_clear()


def _position(pk: str, day: date, dimension: str, *, value: str, limit: int) -> int | str:
    if value == OTHER:
        return OTHER
    # Lists only grow, so a cached position does not change.
    known_values = _cached_values(pk, day)
    if not _position_is_known(known_values, dimension, value=value, limit=limit):
        known_values.update(_read_values(pk, day))
    if not _position_is_known(known_values, dimension, value=value, limit=limit):
        known_values.update(_append(pk, day, dimension, value=value, limit=limit))
    values = known_values[dimension]
    return values.index(value) if value in values else OTHER


def _position_is_known(
    known_values: Mapping[str, list[str]], dimension: str, *, value: str, limit: int
) -> bool:
    values = known_values.get(dimension, ())
    return value in values or len(values) >= limit


def _append(pk: str, day: date, dimension: str, *, value: str, limit: int) -> dict[str, list[str]]:
    values = Path([dimension])
    is_not_full: Condition = size(values) < limit  # type: ignore[no-untyped-call]  # PynamoDB's own
    can_append = values.does_not_exist() | (is_not_full & ~values.contains(value))
    append = values.set((values | []).append([value]))
    table = MetricsRow._get_connection()  # noqa: SLF001  as in ``_write``
    try:
        answer = table.update_item(
            pk, f"{day}#{_VALUES}", actions=[append], condition=can_append, return_values="ALL_NEW"
        )
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return _read_values(pk, day)  # full, or another process appended the value
    return _lists(answer["Attributes"])


def _read_values(pk: str, day: date) -> dict[str, list[str]]:
    table = MetricsRow._get_connection()  # noqa: SLF001  as in ``_write``
    with reaching():
        answer = table.get_item(pk, f"{day}#{_VALUES}", consistent_read=True)
    return _lists((answer or {}).get("Item", {}))


def _lists(item: Item) -> dict[str, list[str]]:
    return {k: [one["S"] for one in v["L"]] for k, v in item.items() if "L" in v}


def partition(workspace_id: str, *, subject: str) -> str:
    """Return the partition key of a subject's counters."""
    return f"W#{workspace_id}#METRICS#{subject}"
