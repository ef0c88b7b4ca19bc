"""Raw reads of ``content``, and what they cost: queries of one partition, and records by key.

Raw, because a PynamoDB model per row costs ten times the CPU, and lists look at many rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge
from typing import Any, NamedTuple, TypeVar, cast

from chalicelib.core import deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.connection import connection, reaching
from chalicelib.engine.tables import ContentRow, Row, is_key

BATCH_GET_KEYS = 100
"""Keys in one BatchGetItem (DynamoDB quota)."""
PARALLEL_BATCHES = 8
PARALLEL_PARTITIONS = 8

Item = dict[str, Any]
T = TypeVar("T")


@dataclass
class Cost:
    """Requests sent to DynamoDB, and the read units they took by its own account."""

    round_trips: int = 0
    units: float = 0.0

    def add(self, answer: Item) -> None:
        """Add a request by its answer."""
        self.round_trips += 1
        consumed = answer.get("ConsumedCapacity") or []
        for entry in consumed if isinstance(consumed, list) else [consumed]:
            self.units += entry.get("CapacityUnits", 0.0)

    def include(self, other: "Cost") -> None:
        """Add what was counted separately, such as in another thread."""
        self.round_trips += other.round_trips
        self.units += other.units


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition, of ``content`` by default, read by pages of raw items, its cost added up."""

    pk: str
    cost: Cost
    row: type[Row] = ContentRow

    def items(self, limit: int | None = None, **options: Any) -> Iterator[Item]:  # noqa: ANN401  PynamoDB's query options
        """Yield items, at most ``limit``, over all pages (DynamoDB ends one after 1 MB)."""
        start = options.pop("exclusive_start_key", None)
        while limit is None or limit > 0:
            answer = self._query(limit=limit, exclusive_start_key=start, **options)
            yield from answer["Items"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return
            if limit is not None:
                limit -= len(answer["Items"])

    def skip(self, count: int, **options: Any) -> Item | None:  # noqa: ANN401  as above
        """Pass over ``count`` rows without fetching them.

        Return the key to go on from, or None if nothing follows.
        """
        start: Item | None = None
        while count > 0:
            answer = self._query(limit=count, exclusive_start_key=start, select="COUNT", **options)
            count -= answer["Count"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return None
        return start

    def count(self, limit: int | None, **options: Any) -> int:  # noqa: ANN401  as above
        """Return how many rows there are, without fetching them; beyond ``limit``, about that."""
        start: Item | None = None
        found = 0
        while limit is None or found < limit:
            rest = {} if limit is None else {"limit": limit - found}
            answer = self._query(exclusive_start_key=start, select="COUNT", **rest, **options)
            found += answer["Count"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                break
        return found

    def _query(self, **options: Any) -> Item:  # noqa: ANN401  as above
        if not is_key(self.pk):
            return {"Items": [], "Count": 0}
        table = self.row._get_connection()  # noqa: SLF001  raw items, see above
        with reaching():
            answer: Item = table.query(self.pk, **options)
        self.cost.add(answer)
        return answer


@dataclass(frozen=True, slots=True)
class MergedPartitions:
    """Several partitions of ``content`` read as if they were one, some at a time.

    There is no passing over rows that are not fetched: a key to go on from is one partition's.
    """

    pks: Sequence[str]
    cost: Cost

    def items(self, limit: int | None = None, **options: Any) -> Iterator[Item]:  # noqa: ANN401  PynamoDB's query options
        """Yield items in the order of the index that is read, at most ``limit``."""
        index, forward = options.get("index_name"), options.get("scan_index_forward", True)
        name = index.removeprefix("by_").replace("row", "r") if index else "sk"
        found = self._each(lambda partition: list(partition.items(limit, **options)))
        merged = merge(*found, key=lambda item: item[name]["S"], reverse=not forward)
        for number, item in enumerate(merged):
            if number == limit:
                return
            yield item

    def count(self, limit: int | None, **options: Any) -> int:  # noqa: ANN401  as above
        """Return how many rows there are, without fetching them; beyond ``limit``, about that."""
        return sum(self._each(lambda partition: partition.count(limit, **options)))

    def _each(self, read: Callable[[Partition], T]) -> list[T]:
        partitions = [Partition(pk, Cost()) for pk in self.pks]
        answers = deadline.map_in_threads(read, partitions, PARALLEL_PARTITIONS)
        for partition in partitions:
            self.cost.include(partition.cost)
        return answers


class Key(NamedTuple):
    """A row's class and full key."""

    row: type[Row]
    pk: str
    sk: str


def fetch(keys: Iterable[Key], cost: Cost | None = None) -> list[Row]:
    """Return the rows of one table with these keys, in their order; missing ones are left out.

    Read consistently, whatever the nouns, a hundred keys a request and some requests at a time.
    """
    wanted = {(key.pk, key.sk): key.row for key in keys if is_key(key.pk, key.sk)}
    places = list(wanted)
    if not places:
        return []
    # Asking for it makes the table known to the connection, too.
    table = next(iter(wanted.values()))._get_connection().table_name  # noqa: SLF001
    batch_get = partial(_batch_get, table)
    batches = [places[i : i + BATCH_GET_KEYS] for i in range(0, len(places), BATCH_GET_KEYS)]
    if len(batches) > 1:
        answers = deadline.map_in_threads(batch_get, batches, PARALLEL_BATCHES)
    else:
        answers = [batch_get(batch) for batch in batches]
    found: dict[tuple[str, str], Row] = {}
    for answer in (one for some in answers for one in some):
        if cost is not None:
            cost.add(answer)
        for items in answer["Responses"].values():
            for item in items:
                place = (item["pk"]["S"], item["sk"]["S"])
                found[place] = wanted[place].from_raw_data(item)
    return [found[place] for place in wanted if place in found]


def _batch_get(table: str, keys: Sequence[tuple[str, str]]) -> list[Item]:
    """Ask for up to a hundred keys; what DynamoDB leaves unprocessed is asked for again.

    Pauses between, as AWS advises: keys are left when the table is throttled.

    Raises:
        UnavailableError: it keeps leaving keys without serving one.
    """
    pending: list[Any] = [{"pk": pk, "sk": sk} for pk, sk in keys]
    answers: list[Item] = []
    futile = 0
    while pending:
        with reaching():
            answer = connection().batch_get_item(table, cast("Any", pending), consistent_read=True)
        answers.append(answer)
        left = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ())
        futile = futile + 1 if len(left) == len(pending) else 0
        if futile == retry.MAX_ATTEMPTS:
            raise UnavailableError
        pending = [{"pk": key["pk"]["S"], "sk": key["sk"]["S"]} for key in left]
        if pending:
            retry.backoff(futile)
    return answers
