"""Raw reads of ``content`` and their cost."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from threading import Lock
from typing import Any, NamedTuple, Self, TypeVar, cast

from chalicelib.core import deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.engine.connection import batch_get, reaching
from chalicelib.engine.item_sizes import is_key
from chalicelib.engine.tables import ContentRow, Row

BATCH_GET_KEYS = 100  # in one BatchGetItem (DynamoDB quota)
PARALLEL_BATCHES = 8
PARALLEL_PARTITIONS = 8

Item = dict[str, Any]
R = TypeVar("R", bound=Row)
T = TypeVar("T")


@dataclass
class Cost:
    """Requests to DynamoDB of all threads, and the read units that the responses report."""

    round_trips: int = 0
    units: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def add(self, answer: Item) -> None:
        consumed = answer.get("ConsumedCapacity") or []
        entries = consumed if isinstance(consumed, list) else [consumed]
        with self._lock:
            self.round_trips += 1
            self.units += sum(entry.get("CapacityUnits", 0.0) for entry in entries)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition, of ``content`` by default, read in pages of raw items. Adds up the cost."""

    pk: str
    cost: Cost
    row: type[Row] = ContentRow

    def items(self, limit: int | None = None, **options: Any) -> Iterator[Item]:  # noqa: ANN401  PynamoDB's query options
        """Yield up to ``limit`` items over all pages. DynamoDB ends a page after 1 MB."""
        start = options.pop("exclusive_start_key", None)
        while limit is None or limit > 0:
            answer = self.query(limit=limit, exclusive_start_key=start, **options)
            yield from answer["Items"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return
            if limit is not None:
                limit -= len(answer["Items"])

    def first(self, limit: int, **options: Any) -> tuple[list[Item], Item | None]:  # noqa: ANN401  as above
        """Return the items among the first ``limit`` rows, and the key to continue from, if any."""
        answer = self.query(limit=limit, **options)
        return answer["Items"], answer.get("LastEvaluatedKey")

    def skip(self, count: int, **options: Any) -> Item | None:  # noqa: ANN401  as above
        """Skip rows without fetching them. Returns the key to continue from, or None at the end."""
        start: Item | None = None
        while count > 0:
            answer = self.query(limit=count, exclusive_start_key=start, select="COUNT", **options)
            count -= answer["Count"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return None
        return start

    def count(self, limit: int | None, **options: Any) -> int:  # noqa: ANN401  as above
        """Return the number of rows without fetching them. Counting stops soon after ``limit``."""
        start: Item | None = None
        count = 0
        while limit is None or count < limit:
            page_limit = {} if limit is None else {"limit": limit - count}
            answer = self.query(exclusive_start_key=start, select="COUNT", **page_limit, **options)
            count += answer["Count"]
            start = answer.get("LastEvaluatedKey")
            if start is None:
                break
        return count

    def query(self, **options: Any) -> Item:  # noqa: ANN401  as above
        if not is_key(self.pk):
            return {"Items": [], "Count": 0}
        # A PynamoDB model per row costs ten times the CPU, and lists read many rows.
        table = self.row._get_connection()  # noqa: SLF001  raw items, see above
        with reaching():
            answer: Item = table.query(self.pk, **options)
        self.cost.add(answer)
        return answer


@dataclass(frozen=True, slots=True)
class MergedPartitions:
    """Several partitions read as one, without skipping: a key to continue from belongs to one."""

    pks: Sequence[str]
    cost: Cost

    def items(self, limit: int | None = None, **options: Any) -> Iterator[Item]:  # noqa: ANN401  PynamoDB's query options
        """Yield up to ``limit`` items in the order of the index."""
        index, forward = options.get("index_name"), options.get("scan_index_forward", True)
        name = index.removeprefix("by_").replace("row", "r") if index else "sk"
        sorted_lists = self._each(lambda partition: list(partition.items(limit, **options)))
        merged = merge(*sorted_lists, key=lambda item: item[name]["S"], reverse=not forward)
        for number, item in enumerate(merged):
            if number == limit:
                return
            yield item

    def count(self, limit: int | None, **options: Any) -> int:  # noqa: ANN401  as above
        # Each partition stops soon after ``limit``.
        return sum(self._each(lambda partition: partition.count(limit, **options)))

    def _each(self, read: Callable[[Partition], T]) -> list[T]:
        partitions = [Partition(pk, self.cost) for pk in self.pks]
        return deadline.map_in_threads(read, partitions, PARALLEL_PARTITIONS)


class Place(NamedTuple):
    table: str
    pk: str
    sk: str

    @classmethod
    def from_row(cls, row: Row) -> Self:
        return cls(row.Meta.table_name, row.pk, row.sk)


class Key(NamedTuple):
    """The class and the full key of a row.

    >>> from chalicelib.engine.jobs import JobRow
    >>> Key(JobRow, "queue#1", "first").place[1:]
    ('queue#1', 'first')
    """

    row: type[Row]
    pk: str
    sk: str

    @property
    def place(self) -> Place:
        return Place(self.row.Meta.table_name, self.pk, self.sk)


def fetch(keys: Iterable[Key], cost: Cost | None = None, *, consistent: bool = True) -> list[Row]:
    """Return the rows with these keys of any tables, in their order, without missing ones.

    A read that is not ``consistent`` costs half the units, and may miss the last second.
    """
    # BatchGetItem refuses a request that contains a key twice.
    row_types = {key.place: key.row for key in keys if is_key(key.pk, key.sk)}
    places = list(row_types)
    if not places:
        return []
    batches = [places[i : i + BATCH_GET_KEYS] for i in range(0, len(places), BATCH_GET_KEYS)]
    if len(batches) > 1:
        read = partial(_batch_get, consistent=consistent)
        answers = deadline.map_in_threads(read, batches, PARALLEL_BATCHES)
    else:
        answers = [_batch_get(batch, consistent=consistent) for batch in batches]
    rows: dict[Place, Row] = {}
    for answer in (one for some in answers for one in some):
        if cost is not None:
            cost.add(answer)
        for table, items in answer["Responses"].items():
            for item in items:
                place = Place(table, item["pk"]["S"], item["sk"]["S"])
                rows[place] = row_types[place].from_raw_data(item)
    return [rows[place] for place in row_types if place in rows]


def fetch_of(row: type[R], places: Iterable[tuple[str, str]]) -> list[R]:
    """Return the rows of one class with these keys, in their order, without missing ones."""
    # PynamoDB's batch_get asks for unprocessed keys again without a pause and without end.
    return cast("list[R]", fetch(Key(row, *place) for place in places))


class Rows:
    """Rows of any tables, each read once, and results of queries. A unit of work has its own."""

    def __init__(self, *, consistent: bool = True) -> None:
        self._consistent = consistent
        self._rows: dict[Place, Row | None] = {}
        self._results: dict[Hashable, Any] = {}

    def __contains__(self, key: Key) -> bool:
        """Whether a row was read, even if it does not exist."""
        return key.place in self._rows

    def read(self, keys: Iterable[Key]) -> None:
        """Read the rows with these keys that were not read before."""
        missing = {key.place: key for key in keys if key.place not in self._rows}
        read = fetch(missing.values(), consistent=self._consistent)
        rows = {Place.from_row(row): row for row in read}
        self._rows |= {place: rows.get(place) for place in missing}

    def read_beside(self, keys: Iterable[Key], name: Hashable, query: Callable[[], T]) -> T:
        """Read rows side by side with a query, unless its result is known by this name."""
        if name in self._results:
            self.read(keys)
        else:
            with deadline.side_by_side() as start:
                task = start(query)
                self.read(keys)
                self._results[name] = task.result()
        result: T = self._results[name]
        return result

    def fetch(self, keys: Iterable[Key]) -> list[Row]:
        """Return the rows with these keys, in their order, without missing ones."""
        unique_keys = list(dict.fromkeys(keys))
        self.read(unique_keys)
        return [row for key in unique_keys if (row := self._rows[key.place]) is not None]

    def find(self, row: type[R], key: Key) -> R | None:
        rows = self.fetch([key])
        return rows[0] if rows and isinstance(rows[0], row) else None


def _batch_get(places: Sequence[Place], *, consistent: bool) -> list[Item]:
    pending = places
    answers: list[Item] = []
    futile = 0
    while pending:
        tables: Item = {}
        for table, pk, sk in pending:
            part = tables.setdefault(table, {"Keys": [], "ConsistentRead": consistent})
            part["Keys"].append({"pk": {"S": pk}, "sk": {"S": sk}})
        with reaching():
            answer = batch_get(tables)
        answers.append(answer)
        unprocessed = [
            Place(table, key["pk"]["S"], key["sk"]["S"])
            for table, part in answer.get("UnprocessedKeys", {}).items()
            for key in part["Keys"]
        ]
        futile = futile + 1 if len(unprocessed) == len(pending) else 0
        if futile == retry.MAX_ATTEMPTS:
            raise UnavailableError
        pending = unprocessed
        if pending:
            # DynamoDB leaves keys unprocessed when a table is throttled. AWS advises to pause.
            retry.backoff(futile)
    return answers
