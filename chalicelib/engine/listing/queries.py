"""Reading one page of a noun in the cheapest way that is exact (ADR 8).

A *look-up* fetches the few records that are named by ids or by a look-up, then filters and sorts
them in memory. For other queries, the first step is to choose a partition: the noun's own, or that
of a requested value if the noun is partitioned by it. For several values, their partitions are
merged, unless that reads more than the noun's own partition. There are then three ways:

- *index scan*: read the page along an index in the requested order. Bounds along the index limit
  it. The total comes from the counters, or from counting the range. The cost does not depend on
  the size of the partition; it grows by about one read unit per 40 entries before the page.
- *range scan*: read the records in a narrow range along an index, then sort and filter in memory.
- *full scan*: read all entries of the partition, filtered by DynamoDB and sorted in memory. It
  serves small partitions, and queries without a suitable index: searches and combinations of
  filters. If the entries lie along a number (``scan_along``), only those in its range are read.

Index scans, and full scans of up to ``CONSISTENT_ROWS``, are consistent: the next list includes a
record that was just created. Full scans of larger partitions, and the entries that an index scan of
them skips, are read eventually consistently at half the units. They may miss changes of the last
second.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from chalicelib.engine.listing import counters, lookups
from chalicelib.engine.listing.declaration import INDEX_SLOTS, Declaration, SortIndex
from chalicelib.engine.listing.filters import Filters
from chalicelib.engine.listing.index_entries import (
    BY_ROW,
    SEPARATOR,
    IndexEntry,
    TextRow,
    contains,
    entries,
    fold_search,
    group,
    may_contain,
    partition_of,
    texts_partition,
)
from chalicelib.engine.listing.index_ranges import (
    IndexRange,
    id_bounds,
    key_bounds,
)
from chalicelib.engine.listing.query import Plan, Query, ResultPage
from chalicelib.engine.reading import Cost, Key, MergedPartitions, Partition, fetch
from chalicelib.engine.tables import Record

SMALL_ROWS = 500
"""Partitions up to this size are scanned whole, for about 25 read units."""
CONSISTENT_ROWS = 10_000
FETCHED_SKIP = 500
"""Up to this many skipped entries are fetched with the page, which saves a request for counting."""
ROWS_A_RECORD = 50
"""Reading a record by its key costs as much as this many entries of a full scan."""
ROWS_A_QUERY = 28
"""A partition costs at least one read unit, as much as this many entries of a full scan."""
FETCHED_TEXTS = 100
"""Up to this many long texts are fetched by their keys. For more, all of them are searched."""

R = TypeVar("R", bound=Record)


def read(
    listing: Declaration[R], workspace_id: str, query: Query, counts: Counter[str] | None
) -> ResultPage[R]:
    """Return one page. Pass ``counts``, all counters of the noun, if you have already read them.

    Raises:
        ValueError: the noun does not declare a filter, a range or the sort.
    """
    return _PageReader(listing, workspace_id, query, Cost(), counts).page()


@dataclass(slots=True)
class _PageReader(Generic[R]):
    """The state of reading one page."""

    listing: Declaration[R]
    workspace_id: str
    query: Query
    cost: Cost
    all_counts: Counter[str] | None
    counts: Counter[str] = field(init=False)
    partition: Partition | MergedPartitions = field(init=False)
    filters: Filters[R] = field(init=False)

    def __post_init__(self) -> None:
        self.filters = Filters.of(self.listing, self.query)
        self.partition = Partition(self.listing.partition(self.workspace_id), self.cost)

    def page(self) -> ResultPage[R]:
        if self.filters.excludes_all:
            return ResultPage([], 0, "range scan", self.cost)
        if self.filters.lookups or self.query.ids is not None:
            return self._look_up()
        if not self.listing.indexes and not self.listing.partitioned:
            return self._full_scan(consistent=True)
        rows = self._choose_partition()
        consistent = rows <= CONSISTENT_ROWS
        if rows > SMALL_ROWS:
            if self._only_sorts() and (found := self._range_in_order()) is not None:
                return self._index_scan(found, rows, consistent=consistent)
            if self.listing.scan_along in self.filters.ranges:
                rows = self._count_along(rows)
                consistent = rows <= CONSISTENT_ROWS
            elif (narrow := self._narrow_range(rows, consistent=consistent)) is not None:
                return self._range_scan(narrow)
            if self.query.search and self.query.charge and not consistent:
                self.query.charge(rows // CONSISTENT_ROWS)
        return self._full_scan(consistent=consistent)

    def _choose_partition(self) -> int:
        """Switch to the partition of a requested value, if any. Returns its number of rows."""
        for facet in self.listing.partitioned:
            if (value := self.filters.equal.get(facet)) is not None:
                del self.filters.equal[facet]
                noun = self.listing.noun
                place = partition_of(self.workspace_id, noun, facet, value)
                self.partition = Partition(place, self.cost)
                if self.all_counts is not None:
                    return self.all_counts[counters.name(facet, value)]
                return counters.read_value(self.workspace_id, noun, facet, value, self.cost)
            if facet in self.filters.any_of:
                return self._choose_partitions(facet)
        noun = self.listing.noun
        self.counts = self.all_counts or counters.read(self.workspace_id, noun, self.cost)
        return self.counts[counters.TOTAL]

    def _choose_partitions(self, facet: str) -> int:
        """Switch to the partitions of several values if that reads less. Returns their rows.

        If an index serves the order, each partition is read at most up to the page's end. Counting
        the rows reads the counters of all values: one read unit per twenty values.
        """
        noun, values = self.listing.noun, self.filters.any_of.pop(facet)
        self.counts = self.all_counts or counters.read_all(self.workspace_id, noun, self.cost)
        rows = {v: n for v in sorted(values) if (n := self.counts[counters.name(facet, v)])}
        total = self.counts[counters.TOTAL]
        in_order = self._only_sorts() and self._range_in_order() is not None
        most = self.query.offset + self.query.size if in_order else total
        if sum(ROWS_A_QUERY + min(n, most) for n in rows.values()) >= total:
            self.filters.any_of[facet] = values
            return total
        places = [partition_of(self.workspace_id, noun, facet, value) for value in rows]
        self.partition = MergedPartitions(places, self.cost)
        return sum(rows.values())

    @property
    def _is_own_partition(self) -> bool:
        """Whether the partition is the noun's own, which holds records rather than entries."""
        own = Partition(self.listing.partition(self.workspace_id), self.cost)
        return self.partition == own

    def _only_sorts(self) -> bool:
        """Whether the query has only a sort order, at most one filter and at most one range."""
        return (
            not (self.query.search or self.filters.present or self.filters.any_of)
            and max(len(self.filters.equal), len(self.filters.ranges)) <= 1
        )

    def _range_in_order(self) -> IndexRange | None:
        """Return the index and its range that contain the result in the requested order, if any."""
        facet, value = next(iter(self.filters.equal.items()), (None, ""))
        number, bounds = next(iter(self.filters.ranges.items()), (None, (None, None)))
        sort = self.listing.sorts[self.query.sort]
        by_creation = sort == "id" and number in {None, "created_at"}
        if facet is None and by_creation and not self.listing.scan_along:
            return IndexRange(None, "", *id_bounds(bounds))
        for slot, index in self._indexes():
            if (index.sort, index.partition_by) != (self.query.sort, facet):
                continue
            if number is None or self.listing.number_slots.get(number) == sort:
                return IndexRange(f"by_{slot}", group(value) if facet else "", *key_bounds(bounds))
        return None

    def _count_along(self, rows: int) -> int:
        """Count the entries in the scanned range. Returns ``rows`` if there are many.

        If the entries are few, they can be read consistently. The count costs a fourth of that
        scan, and callers are not charged for it.
        """
        name = self.listing.scan_along or ""
        slot = self.listing.number_slots[name]
        ((order, _),) = [
            each
            for each in self._indexes()
            if each[1].partition_by is None and self.listing.sorts[each[1].sort] == slot
        ]
        found = IndexRange(f"by_{order}", "", *key_bounds(self.filters.ranges[name]))
        most = CONSISTENT_ROWS + 1
        options = found.options(descending=False)
        counted = self.partition.count(most, consistent_read=False, **options)
        return counted if counted < most else rows

    def _narrow_range(self, rows: int, *, consistent: bool) -> IndexRange | None:
        """Return a range along an index whose records cost less to read than a full scan."""
        affordable = rows // ROWS_A_RECORD * (2 if consistent else 1)
        for number, bounds in self.filters.ranges.items():
            if number == "created_at":
                found = IndexRange(None, "", *id_bounds(bounds))
            else:
                wanted = self.listing.number_slots[number]
                sorts = {name for name, slot in self.listing.sorts.items() if slot == wanted}
                slots = [
                    slot
                    for slot, index in self._indexes()
                    if index.partition_by is None and index.sort in sorts
                ]
                if not slots:
                    continue
                found = IndexRange(f"by_{slots[0]}", "", *key_bounds(bounds))
            options = found.options(descending=False)
            if self.partition.count(affordable, consistent_read=False, **options) < affordable:
                return found
        return None

    def _indexes(self) -> Iterable[tuple[str, SortIndex]]:
        return zip(INDEX_SLOTS, self.listing.indexes, strict=False)

    def _index_scan(self, found: IndexRange, rows: int, *, consistent: bool) -> ResultPage[R]:
        """Read the page along an index. The entries before it are counted, not fetched."""
        options = found.options(descending=self.query.descending)
        skipping = self._counting_range(found).options(descending=self.query.descending)
        total = self._total(rows, skipping, consistent=consistent)
        offset, size = self.query.offset, self.query.size
        if offset >= total:
            return ResultPage([], total, "index scan", self.cost)
        partition, start, skipped = self.partition, None, 0
        if isinstance(partition, Partition):
            if found.index is None and self._is_own_partition:
                records = self._from_table(partition, options, skipping, consistent)
                return ResultPage(records, total, "index scan", self.cost)
            skipped = offset if offset > FETCHED_SKIP else 0
            start = partition.skip(skipped, consistent_read=consistent, **options)
        if skipped and start is None:
            return ResultPage([], total, "index scan", self.cost)
        limit = offset - skipped + size
        items = partition.items(limit, exclusive_start_key=start, consistent_read=True, **options)
        ids = [item["sk"]["S"] for item in items]
        return ResultPage(self._records(ids[offset - skipped :]), total, "index scan", self.cost)

    def _counting_range(self, found: IndexRange) -> IndexRange:
        """Return the smallest index with the same order, for counting.

        For the table's own order, that is the keys-only index by creation, if the noun has one.
        """
        if found.index is None and self._is_own_partition:
            for slot, index in self._indexes():
                if index.partition_by is None and self.listing.sorts[index.sort] == "id":
                    return IndexRange(f"by_{slot}", SEPARATOR, found.least, found.most)
        return found

    def _total(self, rows: int, options: dict[str, Any], *, consistent: bool) -> int:
        """Return the number of records in the scanned part of an index."""
        if self.filters.ranges:
            return self.partition.count(None, consistent_read=consistent, **options)
        if not self.filters.equal:
            return rows
        ((facet, value),) = self.filters.equal.items()
        if facet == self.listing.status and self._is_own_partition:
            return self.counts[counters.name("status", value)]
        if self._is_own_partition and self.all_counts is not None:
            return self.all_counts[counters.name(facet, value)]
        if self._is_own_partition:
            noun = self.listing.noun
            return counters.read_value(self.workspace_id, noun, facet, value, self.cost)
        return self.partition.count(None, consistent_read=consistent, **options)

    def _from_table(
        self,
        partition: Partition,
        options: dict[str, Any],
        skipping: dict[str, Any],
        consistent: bool,  # noqa: FBT001  internal
    ) -> list[R]:
        """Read the records in the order of creation, which is the order of the table.

        The rows before the page are counted in a smaller index. That is the keys-only index if the
        noun has one, else the compact index. If the query has a range, ``skipping`` decides.
        """
        offset, size = self.query.offset, self.query.size
        way = {"index_name": BY_ROW, **skipping} if not self.filters.ranges else skipping
        start = partition.skip(offset, consistent_read=consistent, **way)
        if offset and start is None:
            return []
        key = start and {name: start[name] for name in ("pk", "sk")}
        items = partition.items(size, exclusive_start_key=key, consistent_read=True, **options)
        return [self.listing.row.from_raw_data(item) for item in items]

    def _range_scan(self, found: IndexRange) -> ResultPage[R]:
        """Read all records in a range, then filter, search and sort them in memory."""
        options = found.options(descending=False)
        items = self.partition.items(consistent_read=True, **options)
        return self._page_of(self._records(item["sk"]["S"] for item in items), "range scan")

    def _look_up(self) -> ResultPage[R]:
        """Read the records of the ids and the look-ups, without those that no longer match."""
        wanted = {self.listing.lookup(n): value for n, value in self.filters.lookups.items()}
        found: list[Collection[str]] = [] if self.query.ids is None else [self.query.ids]
        found += [
            lookups.find(lookup, self.workspace_id, self.listing.noun, value, cost=self.cost)
            for lookup, value in wanted.items()
        ]
        ids = set(found[0]).intersection(*found[1:])
        keys = {lookup: lookup.key(value) for lookup, value in wanted.items()}
        records = [
            record
            for record in self._records(ids)
            if all(key in map(each.key, each.values(record)) for each, key in keys.items())
        ]
        return self._page_of(records, "look-up")

    def _page_of(self, candidates: Iterable[R], plan: Plan) -> ResultPage[R]:
        """Return the page from the candidates that meet the filters and the search."""
        records = {record.id: record for record in candidates if self.filters.fits(record)}
        rows = self._search(map(_entry, records.values()), consistent=True)
        page = [records[row.id] for row in self._sorted_page(rows)]
        return ResultPage(page, len(rows), plan, self.cost)

    def _full_scan(self, *, consistent: bool) -> ResultPage[R]:
        """Read every entry that passes DynamoDB's filter."""
        query, wanted = self.query, fold_search(self.query.search)
        keys = IndexRange(
            BY_ROW, "" if query.parent is None else group(query.parent), *self.filters.scan_bounds()
        )
        let_through = entries(
            self.partition,
            keys.condition,
            self.filters.where(wanted),
            consistent=consistent,
            any_of={self.listing.facet_slots[n]: v for n, v in self.filters.any_of.items()},
        )
        found = self._search(let_through, consistent=consistent)
        ids = [entry.id for entry in self._sorted_page(found)]
        return ResultPage(self._records(ids), len(found), "full scan", self.cost)

    def _sorted_page(self, found: list[IndexEntry]) -> list[IndexEntry]:
        query, sort = self.query, self.listing.sorts[self.query.sort]
        found.sort(key=lambda entry: entry.sort_key(sort), reverse=query.descending)
        return found[query.offset : query.offset + query.size]

    def _search(self, rows: Iterable[IndexEntry], *, consistent: bool) -> list[IndexEntry]:
        """Return the entries that match the search. Whole texts of cut entries are read."""
        found, wanted = list(rows), fold_search(self.query.search)
        if not wanted:
            return found
        unsure = [entry.id for entry in found if entry.cut and not entry.matches(wanted)]
        long = self._search_long_texts(wanted, unsure, consistent=consistent) if unsure else set()
        return [entry for entry in found if entry.matches(wanted) or entry.id in long]

    def _search_long_texts(self, wanted: str, ids: list[str], *, consistent: bool) -> set[str]:
        place = texts_partition(self.workspace_id, self.listing.noun)
        if len(ids) <= FETCHED_TEXTS:
            rows = fetch((Key(TextRow, place, each) for each in ids), self.cost)
            return {
                row.sk for row in rows if isinstance(row, TextRow) and contains(row.whole, wanted)
            }
        texts = Partition(place, self.cost).items(
            filter_condition=may_contain(TextRow.whole, wanted), consistent_read=consistent
        )
        return {item["sk"]["S"] for item in texts if contains(item["whole"]["S"], wanted)}

    def _records(self, ids: Iterable[str]) -> list[R]:
        return self.listing.fetch(self.workspace_id, ids, self.cost)


def _entry(record: Record) -> IndexEntry:
    n1, n2 = (int(number or 0) for number in (record.n1, record.n2))
    return IndexEntry(record.id, (n1, n2), record.t or "", cut=record.x is not None)
