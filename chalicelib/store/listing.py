"""The list engine: pages by number, exact totals, orders, filters and search over one noun.

DynamoDB has none of these. A noun declares a ``Listing``; its rows are stamped with the compact
attributes when a unit of work writes them, and counted in the same transaction. ``page`` then takes
the cheapest way that is exact (ADR 0008):

- *walk*: an index in the order asked for, straight to the page; the total comes from the counters.
  It costs the same whatever the collection's size, and about a unit per 40 rows of depth.
- *pass*: the compact index from end to end, filtered by DynamoDB and sorted here. For small
  collections, and for what no order serves: searches, ranges, and filters without an order.

Walks, and passes over up to ``CONSISTENT_ROWS``, are read consistently: what was created is in the
very next list. Passes over larger collections, and the rows that a walk skips there, are read
eventually consistently, at half the units: they may miss the last second's changes.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any, Generic, Literal, TypeVar

from pynamodb.expressions.condition import Condition

from chalicelib.core.clock import epoch_ms
from chalicelib.core.ids import new_id
from chalicelib.core.text import cut_bytes, fold
from chalicelib.rules.ordering import Place
from chalicelib.store import counters
from chalicelib.store.index_entries import (
    BY_ROW,
    INLINE_TEXT_BYTES,
    IndexEntry,
    SortKey,
    group,
    number_in,
    rows,
)
from chalicelib.store.reading import Cost, Key, Partition, fetch
from chalicelib.store.tables import ContentRow, Facets, Record

SMALL_ROWS = 500
"""Collections up to this size are passed over whole, for about 25 units."""
CONSISTENT_ROWS = 10_000
FETCHED_SKIP = 500
"""A walk that skips no more rows fetches their keys, too, and saves the round trip of counting."""

R = TypeVar("R", bound=Record)

log = logging.getLogger(__name__)

_FACET_SLOTS = ("s", "f1", "f2", "f3")
_NUMBER_SLOTS = ("n1", "n2")
_ORDER_SLOTS = ("o1", "o2", "o3", "o4")


@dataclass(frozen=True, slots=True)
class SortIndex:
    """An order to walk large collections in.

    By a sort and, if ``within`` names a facet, apart for each of its values.
    """

    sort: str
    partition_by: str | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """How a noun is listed.

    ``text`` gives the searched texts, the first of which is also the name to sort by. ``status``
    and up to three ``facets`` are attributes to filter by; records are counted by their status, and
    by the facets in ``counted``. ``numbers`` are up to two attributes, integers or times, to sort
    or to filter by. ``sorts`` maps wire names to ``id`` (creation), ``t`` (the name) or the slot of
    a number, ``n1`` or ``n2``. ``parent`` is the attribute that groups rows, such as a page's site;
    lists of such a noun are those of one parent. ``orders``, up to four, are for nouns that grow
    large, and cost a write each when their sort changes; creation is an order by itself. A noun
    without them is passed over whole, whatever its size.
    """

    row: type[R]
    noun: str
    text: Callable[[R], Sequence[str]]
    sorts: Mapping[str, SortKey]
    status: str | None = None
    facets: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    parent: str | None = None
    orders: tuple[SortIndex, ...] = ()

    def partition(self, workspace_id: str) -> str:
        """Return the partition key of the noun's live records."""
        return f"W#{workspace_id}#{self.noun}"

    def trash(self, workspace_id: str) -> str:
        """Return the partition key of soft-deleted records, which expire by time-to-live."""
        return f"W#{workspace_id}#{self.noun}#TRASH"

    @property
    def facet_slots(self) -> dict[str, str]:
        """The slot of each attribute to filter by."""
        names = (self.status, *self.facets)
        return {name: slot for name, slot in zip(names, _FACET_SLOTS, strict=False) if name}

    def set_index_keys(self, record: R) -> None:
        """Set the compact attributes, and the keys in the orders, from the record's own."""
        text = self.folded(record)
        record.t = cut_bytes(text, INLINE_TEXT_BYTES)
        record.x = None if record.t == text else 1
        record.r = (group(getattr(record, self.parent)) if self.parent else "") + record.id
        for name, slot in self.facet_slots.items():
            setattr(record, slot, getattr(record, name))
        numbers = [_whole(getattr(record, name)) for name in self.numbers]
        for slot, number in zip(_NUMBER_SLOTS, numbers, strict=False):
            setattr(record, slot, number)
        n1, n2, *_ = (*(number or 0 for number in numbers), 0, 0)
        row = IndexEntry(record.id, (n1, n2), text, cut=False)
        for slot, order in zip(_ORDER_SLOTS, self.orders, strict=False):
            within = group(getattr(record, order.partition_by)) if order.partition_by else ""
            setattr(record, slot, within + row.sort_key(self.sorts[order.sort]))

    def counters(self, facets: Facets) -> list[str]:
        """Return the names of the counters that a record with these facets is in."""
        values = dict(zip(_FACET_SLOTS, facets, strict=True))
        kept = {self.status, *self.counted}
        return [
            counters.TOTAL,
            *(
                counters.name(name, value)
                for name, slot in self.facet_slots.items()
                if name in kept and (value := values[slot])
            ),
        ]

    def new(self, workspace_id: str, **attributes: Any) -> R:  # noqa: ANN401  the noun's attributes
        """Return a new record with an id of its own, to be staged."""
        return self.row(self.partition(workspace_id), new_id(), **attributes)

    def find(self, workspace_id: str, record_id: str) -> R | None:
        """Return a live record by id, read consistently, or None.

        Another workspace's id is None, too.
        """
        return self.row.find(self.partition(workspace_id), record_id)

    def key(self, workspace_id: str, record_id: str) -> Key:
        """Return the record's key, for ``fetch``."""
        return Key(self.row, self.partition(workspace_id), record_id)

    def fetch(self, workspace_id: str, ids: Iterable[str], cost: Cost | None = None) -> list[R]:
        """Return the live records with these ids, in their order; missing ones are left out."""
        found = fetch((self.key(workspace_id, record_id) for record_id in ids), cost)
        return [record for record in found if isinstance(record, self.row)]

    def compact(
        self, workspace_id: str, parent: str | None = None, **filters: str
    ) -> list[IndexEntry]:
        """Return the noun's compact rows, in the order of creation.

        Or those under one parent, or with these values; a filter passes over all.
        """
        partition = Partition(self.partition(workspace_id), Cost())
        return list(rows(partition, parent, self.having(filters), consistent=True))

    def having(self, filters: Mapping[str, str]) -> Condition | None:
        """Return the condition that a compact row has these values."""
        slots = self.facet_slots
        conditions = [getattr(ContentRow, slots[name]) == value for name, value in filters.items()]
        return reduce(and_, conditions) if conditions else None

    def along(
        self,
        workspace_id: str,
        order: SortIndex,
        limit: int,
        *,
        after: R | None = None,
        descending: bool = False,
    ) -> list[Place]:
        """Return the places of the first records in an order by a number, or of the next ones.

        Read consistently, for changes that place a record beside others.
        """
        slot = _ORDER_SLOTS[self.orders.index(order)]
        key = getattr(ContentRow, slot)
        items = Partition(self.partition(workspace_id), Cost()).items(
            limit,
            index_name=f"by_{slot}",
            range_key_condition=after and key > getattr(after, slot),
            scan_index_forward=not descending,
            consistent_read=True,
        )
        return [Place(number_in(item[slot]["S"]), item["sk"]["S"]) for item in items]

    def page(
        self, workspace_id: str, query: "Query", counts: Counter[str] | None = None
    ) -> "Page[R]":
        """Return one page of records and the exact number of all that match.

        ``counts`` are all counters of the noun, from a caller that has read them.
        """
        partition = Partition(self.partition(workspace_id), Cost())
        page = _Reading(self, workspace_id, partition, query, counts).page()
        spent = {"units": page.cost.units, "roundTrips": page.cost.round_trips}
        log.debug("listed", extra={"noun": self.noun, "plan": page.plan, **spent})
        return page

    def folded(self, record: R) -> str:
        """Return the searched texts as they compare, a line each."""
        return "\n".join(fold(part) for part in self.text(record))


def _whole(value: int | datetime | None) -> int | None:
    return epoch_ms(value) if isinstance(value, datetime) else value


@dataclass(frozen=True, slots=True)
class Query:
    """What a list operation asks for.

    ``page`` counts from 1. ``filters`` maps attributes to wanted values and ``ranges`` numbers to
    their bounds, both inclusive; None means any. ``parent`` is the wanted parent's id.
    """

    page: int
    size: int
    sort: str
    descending: bool = False
    filters: Mapping[str, str | None] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    search: str | None = None
    parent: str | None = None

    @property
    def offset(self) -> int:
        """How many rows come before the page."""
        return (self.page - 1) * self.size


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list, and how many records match over all pages.

    ``plan`` says how it was read, and ``cost`` what that took.
    """

    records: list[R]
    total: int
    plan: Literal["index scan", "full scan"]
    cost: Cost


@dataclass(frozen=True, slots=True)
class _IndexScan:
    """An index in the order asked for (None: the table), where in it, and which counter counts."""

    index: str | None
    prefix: str
    counter: str


@dataclass(slots=True)
class _Reading(Generic[R]):
    """One page being read."""

    listing: Listing[R]
    workspace_id: str
    partition: Partition
    query: Query
    all_counts: Counter[str] | None

    def page(self) -> Page[R]:
        cost = self.partition.cost
        if not self.listing.orders:
            return Page(*self._full_scan(consistent=True), "full scan", cost)
        counts = self.all_counts
        if counts is None:
            counts = counters.read(self.workspace_id, self.listing.noun, cost=cost)
        size = counts[counters.TOTAL]
        consistent = size <= CONSISTENT_ROWS
        walk = self._index_scan_for_query() if size > SMALL_ROWS else None
        if walk is None:
            return Page(*self._full_scan(consistent=consistent), "full scan", cost)
        total = self._total(walk, counts)
        if self.query.offset >= total:
            return Page([], total, "index scan", cost)
        return Page(self._index_scan(walk, consistent=consistent), total, "index scan", cost)

    def _index_scan_for_query(self) -> _IndexScan | None:
        """Return the order that serves the query, if one does."""
        query, listing = self.query, self.listing
        filters = self._filters()
        if query.search or self._ranges() or len(filters) > 1:
            return None
        facet, value = next(iter(filters.items()), (None, None))
        counter = counters.name(facet, value) if facet and value else counters.TOTAL
        if facet is None and listing.sorts[query.sort] == "id":
            return _IndexScan(None, "", counter)
        for slot, order in zip(_ORDER_SLOTS, listing.orders, strict=False):
            if order == SortIndex(query.sort, facet):
                return _IndexScan(f"by_{slot}", group(value) if facet else "", counter)
        return None

    def _total(self, walk: _IndexScan, counts: Counter[str]) -> int:
        """Return how many rows a walk leads past; a facet's counters lie apart from the others."""
        facet = walk.counter.partition(":")[0]
        apart = facet not in {counters.TOTAL, self.listing.status}
        if apart and self.all_counts is None:
            noun, cost = self.listing.noun, self.partition.cost
            counts = counters.read(self.workspace_id, noun, facet, cost)
        return counts[walk.counter]

    def _index_scan(self, walk: _IndexScan, *, consistent: bool) -> list[R]:
        """Go to the page along an order; the rows before it are counted rather than fetched."""
        way: dict[str, Any] = {"scan_index_forward": not self.query.descending}
        if walk.index is None:
            return self._scan_table(way, consistent=consistent)
        way["index_name"] = walk.index
        if walk.prefix:
            slot = getattr(ContentRow, walk.index.removeprefix("by_"))
            way["range_key_condition"] = slot.startswith(walk.prefix)
        offset = self.query.offset
        skipped = offset if offset > FETCHED_SKIP else 0
        start = self.partition.skip(skipped, consistent_read=consistent, **way)
        if skipped and start is None:
            return []
        limit = offset - skipped + self.query.size
        items = self.partition.items(limit, exclusive_start_key=start, consistent_read=True, **way)
        ids = [item["sk"]["S"] for item in items]
        return self._records(ids[offset - skipped :])

    def _scan_table(self, way: dict[str, Any], *, consistent: bool) -> list[R]:
        """Read the records in the order of creation, which the table itself has.

        The rows before the page are counted in the compact index, which is ten times smaller.
        """
        offset, size = self.query.offset, self.query.size
        start = self.partition.skip(offset, index_name=BY_ROW, consistent_read=consistent, **way)
        if offset and start is None:
            return []
        key = start and {name: start[name] for name in ("pk", "sk")}
        items = self.partition.items(size, exclusive_start_key=key, consistent_read=True, **way)
        return [self.listing.row.from_raw_data(item) for item in items]

    def _full_scan(self, *, consistent: bool) -> tuple[list[R], int]:
        """Look at every row that DynamoDB's filter lets through; return the page and the total."""
        query = self.query
        sort = self.listing.sorts[query.sort]
        wanted = fold(query.search or "")
        found = list(rows(self.partition, query.parent, self._where(wanted), consistent=consistent))
        if wanted or sort == "t":
            found = self._with_whole_texts(found)
        if wanted:
            found = [row for row in found if any(wanted in part for part in row.texts)]
        found.sort(key=lambda row: row.sort_key(sort), reverse=query.descending)
        ids = [row.id for row in found[query.offset : query.offset + query.size]]
        return self._records(ids), len(found)

    def _where(self, wanted: str) -> Condition | None:
        """Return the filter that DynamoDB applies to a pass."""
        having = self.listing.having(self._filters())
        conditions = [*([] if having is None else [having]), *self._ranges()]
        if wanted:
            conditions.append(ContentRow.t.contains(wanted) | ContentRow.x.exists())
        return reduce(and_, conditions) if conditions else None

    def _filters(self) -> dict[str, str]:
        return {name: value for name, value in self.query.filters.items() if value is not None}

    def _ranges(self) -> list[Condition]:
        """Return a condition per bound."""
        slots = dict(zip(self.listing.numbers, _NUMBER_SLOTS, strict=False))
        conditions = []
        for name, (least, most) in self.query.ranges.items():
            number = getattr(ContentRow, slots[name])
            if least is not None:
                conditions.append(number >= least)
            if most is not None:
                conditions.append(number <= most)
        return conditions

    def _with_whole_texts(self, found: list[IndexEntry]) -> list[IndexEntry]:
        """Fetch the records whose texts are too long for the index, and put the whole text in."""
        whole = {
            record.id: self.listing.folded(record)
            for record in self._records(row.id for row in found if row.cut)
        }
        return [replace(row, text=whole.get(row.id, row.text)) if row.cut else row for row in found]

    def _records(self, ids: Iterable[str]) -> list[R]:
        return self.listing.fetch(self.workspace_id, ids, self.partition.cost)
