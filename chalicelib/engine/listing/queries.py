"""Read one page of a noun in the cheapest way that is exact (ADR 8): by one of four plans.

A *look-up* fetches few records by ids or a look-up, and filters and sorts them in memory. An *index
scan* reads the page along an index in the requested order. A *range scan* reads the records in a
narrow range along an index. A *full scan* reads all entries of a partition: of small ones, and for
searches and combinations of filters without a suitable index. Lists include a record that was just
created; those of more than ``CONSISTENT_ROWS`` entries may miss changes of the last second.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from chalicelib.core import deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.core.text import search_words
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.engine.listing import lookups
from chalicelib.engine.listing.counters import NounCounts, ReadCounts
from chalicelib.engine.listing.declaration import INDEX_SLOTS, Declaration, SortIndex
from chalicelib.engine.listing.filters import Filters, is_within
from chalicelib.engine.listing.index_entries import (
    BY_ROW,
    SEPARATOR,
    IndexEntry,
    entry_options,
    group,
    partition_of,
    read_entries,
    texts_partition,
)
from chalicelib.engine.listing.index_ranges import IndexRange, id_bounds, key_bounds
from chalicelib.engine.listing.parallel_scan import ID_DIGITS, NUMBER_DIGITS, ParallelScan
from chalicelib.engine.listing.query import Plan, Query, ResultPage
from chalicelib.engine.listing.text_search import matches
from chalicelib.engine.reading import Cost, Item, MergedPartitions, Partition
from chalicelib.engine.tables import Record

SMALL_ROWS = 500  # are scanned whole, for about 25 read units
CONSISTENT_ROWS = 10_000
# Fetching up to this many skipped entries with the page saves a request for counting.
FETCHED_SKIP = 500
ROWS_A_RECORD = 50  # Reading a record by its key costs as much as this many entries of a full scan.
# A partition costs at least one read unit, as much as this many entries of a full scan.
ROWS_A_QUERY = 28
R = TypeVar("R", bound=Record)


def read(
    listing: Declaration[R], workspace_id: str, query: Query, counts: ReadCounts | None
) -> ResultPage[R]:
    """Return one page, or raise ValueError if the noun does not declare a filter or the sort."""
    cost = Cost()
    noun_counts = NounCounts(
        workspace_id, noun=listing.noun, status=listing.status, cost=cost, all_counts=counts
    )
    return _PageReader(listing, workspace_id, query, cost, noun_counts).page()


@dataclass(slots=True, eq=False, repr=False)
class _PageReader(Generic[R]):
    listing: Declaration[R]
    workspace_id: str
    query: Query
    cost: Cost
    counts: NounCounts
    # The facet value whose partition is read, if not the noun's own.
    value: tuple[str, str] | None = None
    # The first entries, if they have been read, and the key of the last one if there are more.
    begun: tuple[list[Item], Item | None] | None = None
    partition: Partition | MergedPartitions = field(init=False)
    filters: Filters[R] = field(init=False)

    def __post_init__(self) -> None:
        self.filters = Filters.from_query(self.listing, self.query)
        self.partition = Partition(self.listing.partition(self.workspace_id), self.cost)

    def page(self) -> ResultPage[R]:
        if self.filters.excludes_all:
            return ResultPage([], 0, "range scan", self.cost)
        if self.filters.lookups or self.query.ids is not None:
            return self._look_up()
        if not self.listing.indexes and not self.listing.partitioned:
            return self._full_scan(consistent=True)
        self._choose_partition()
        index_range = self._range_in_order() if self._only_sorts else None
        is_near = self.query.offset <= FETCHED_SKIP
        if index_range is not None and is_near and self._has_counter:
            return self._index_scan(index_range, None, consistent=True)
        # Most partitions are small, so their entries are read while the counter is. This saves a
        # round trip.
        with deadline.side_by_side() as start:
            counting = start(self._count_rows)
            is_whole = (index_range is None or is_near) and self._begin_scan()
            rows = counting.result()
        if is_whole:
            return self._full_scan(consistent=True)
        return self._page_by_rows(self._merge_partitions(rows))

    def _page_by_rows(self, rows: int) -> ResultPage[R]:
        # A larger full scan, and the entries that an index scan of a larger partition skips, are
        # read eventually consistently at half the units. They may miss changes of the last second.
        consistent = rows <= CONSISTENT_ROWS
        if rows > SMALL_ROWS:
            if self._only_sorts and (index_range := self._range_in_order()) is not None:
                return self._index_scan(index_range, rows, consistent=consistent)
            if self.listing.scan_along in self.filters.ranges:
                rows = self._count_along(rows)
                consistent = rows <= CONSISTENT_ROWS
            elif (narrow := self._narrow_range(rows, consistent=consistent)) is not None:
                return self._range_scan(narrow)
            reads_all = bool(self.query.search) or self._needs_update_times
            if reads_all and self.query.charge and not consistent:
                self.query.charge(rows // CONSISTENT_ROWS)
        if consistent or not isinstance(self.partition, Partition):
            return self._full_scan(consistent=consistent)
        return self._parallel_scan(self.partition, rows)

    # The noun's own partition, or that of a requested value if the noun is partitioned by the
    # facet. For several values, their partitions are merged, unless that reads more than the noun's
    # own.
    def _choose_partition(self) -> None:
        # Only the noun's own partition has the times of changes.
        for facet in () if self._needs_update_times else self.listing.partitioned:
            if (value := self.filters.equal.get(facet)) is not None:
                del self.filters.equal[facet]
                self.value = (facet, value)
                place = partition_of(
                    self.workspace_id, noun=self.listing.noun, facet=facet, value=value
                )
                self.partition = Partition(place, self.cost)
                return

    @property
    def _several_values(self) -> str | None:
        several = (
            facet
            for facet in self.listing.partitioned
            if facet in self.listing.counted and facet in self.filters.any_of
        )
        return None if self.value or self._needs_update_times else next(several, None)

    @property
    def _needs_update_times(self) -> bool:
        return self.query.sort == UPDATED_AT or "updated_at" in self.filters.ranges

    def _count_rows(self) -> int:
        if self._several_values is not None:
            # The counters of all values tell which partitions to merge.
            self.counts.read_all()
        if not self.value:
            return self.counts.total()
        facet, value = self.value
        is_counted = facet in self.listing.counted
        return self.counts.count_value(facet, value=value) if is_counted else 0

    def _merge_partitions(self, total: int) -> int:
        facet = self._several_values
        if facet is None:
            return total
        noun, values = self.listing.noun, self.filters.any_of.pop(facet)
        rows = {v: n for v in sorted(values) if (n := self.counts.count_value(facet, value=v))}
        places = [
            partition_of(self.workspace_id, noun=noun, facet=facet, value=value) for value in rows
        ]
        own, self.partition = self.partition, MergedPartitions(places, self.cost)
        # If an index serves the order, each partition is read at most up to the page's end.
        # Counting the rows reads the counters of all values: one read unit per twenty values.
        in_order = self._only_sorts and self._range_in_order() is not None
        max_rows = self.query.offset + self.query.size if in_order else total
        if sum(ROWS_A_QUERY + min(n, max_rows) for n in rows.values()) >= total:
            self.filters.any_of[facet], self.partition = values, own
            return total
        # The entries that were read first are from the noun's own partition.
        self.begun = None
        return sum(rows.values())

    @property
    def _is_own_partition(self) -> bool:
        return self.partition == Partition(self.listing.partition(self.workspace_id), self.cost)

    @property
    def _only_sorts(self) -> bool:
        return not self.query.search and self.filters.are_few

    def _range_in_order(self) -> IndexRange | None:
        facet, value = next(iter(self.filters.equal.items()), (None, ""))
        number, bounds = next(iter(self.filters.ranges.items()), (None, (None, None)))
        sort = self.listing.sorts[self.query.sort]
        scan_along, is_own = self.listing.scan_along, self._is_own_partition
        by_creation = sort == "id" and number in {None, "created_at"}
        if facet is None and by_creation and not (scan_along and is_own):
            return IndexRange(None, "", *id_bounds(bounds))
        # The entries of one value are in one index, which may have the requested order.
        along = self.listing.number_slots.get(scan_along or "") == sort and not is_own
        if facet is None and along and number in {None, scan_along}:
            return IndexRange(BY_ROW, "", *key_bounds(bounds))
        for slot, index in self._indexes():
            if (index.sort, index.partition_by) != (self.query.sort, facet):
                continue
            if number is None or self.listing.number_slots.get(number) == sort:
                return IndexRange(f"by_{slot}", group(value) if facet else "", *key_bounds(bounds))
        return None

    def _count_along(self, rows: int) -> int:
        # If the entries are few, they can be read consistently. The count costs a fourth of that
        # scan, and callers are not charged for the count.
        index_range = self._along_number(self.listing.scan_along or "")
        if index_range is None:
            return rows
        options, max_rows = index_range.options(descending=False), CONSISTENT_ROWS + 1
        count = self.partition.count(max_rows, consistent_read=False, **options)
        return count if count < max_rows else rows

    def _narrow_range(self, rows: int, *, consistent: bool) -> IndexRange | None:
        affordable = rows // ROWS_A_RECORD * (2 if consistent else 1)
        for index_range in filter(None, map(self._along_number, self.filters.ranges)):
            options = index_range.options(descending=False)
            if self.partition.count(affordable, consistent_read=False, **options) < affordable:
                return index_range
        return None

    def _along_number(self, number: str) -> IndexRange | None:
        bounds = self.filters.ranges[number]
        if number == "created_at":
            return IndexRange(None, "", *id_bounds(bounds))
        number_slot = self.listing.number_slots[number]
        for slot, index in self._indexes():
            if index.partition_by is None and self.listing.sorts[index.sort] == number_slot:
                return IndexRange(f"by_{slot}", "", *key_bounds(bounds))
        return None

    def _indexes(self) -> Iterable[tuple[str, SortIndex]]:
        indexes = self.listing.indexes if self._is_own_partition else ()
        return zip(INDEX_SLOTS, indexes, strict=False)

    # The total comes from the counters, or from counting the range. The cost does not depend on the
    # size of the partition; it grows by about one read unit per 40 entries before the page.
    def _index_scan(
        self, index_range: IndexRange, rows: int | None, *, consistent: bool
    ) -> ResultPage[R]:
        read_total = partial(self._total, index_range, rows, consistent=consistent)
        if self.query.offset > FETCHED_SKIP:
            total = read_total()
            records = (
                self._read_along(index_range, consistent=consistent)
                if self.query.offset < total
                else []
            )
        else:
            with deadline.side_by_side() as start:
                counting = start(read_total)
                records = self._read_along(index_range, consistent=consistent)
                total = counting.result()
        return ResultPage(records, total, "index scan", self.cost)

    def _read_along(self, index_range: IndexRange, *, consistent: bool) -> list[R]:
        options = index_range.options(descending=self.query.descending)
        offset, size = self.query.offset, self.query.size
        partition, start, skipped = self.partition, None, 0
        if isinstance(partition, Partition):
            if index_range.index is None and self._is_own_partition:
                return self._from_table(partition, index_range, consistent=consistent)
            skipped = offset if offset > FETCHED_SKIP else 0
            start = partition.skip(skipped, consistent_read=consistent, **options)
        if skipped and start is None:
            return []
        limit = offset - skipped + size
        items = partition.items(limit, exclusive_start_key=start, consistent_read=True, **options)
        ids = [item["sk"]["S"] for item in items]
        return self._records(ids[offset - skipped :])

    def _counting_range(self, index_range: IndexRange) -> IndexRange:
        # The smallest index: for the table's own order, the keys-only one by creation, if any.
        if index_range.index is None and self._is_own_partition:
            for slot, index in self._indexes():
                if index.partition_by is None and self.listing.sorts[index.sort] == "id":
                    return IndexRange(f"by_{slot}", SEPARATOR, index_range.lower, index_range.upper)
        return index_range

    @property
    def _has_counter(self) -> bool:
        if self.value is not None and self.value[0] not in self.listing.counted:
            return False
        return not self.filters.ranges and (self._is_own_partition or not self.filters.equal)

    def _total(self, index_range: IndexRange, rows: int | None, *, consistent: bool) -> int:
        if not self._has_counter:
            options = self._counting_range(index_range).options(descending=False)
            return self.partition.count(None, consistent_read=consistent, **options)
        for facet, value in self.filters.equal.items():
            return self.counts.count_value(facet, value=value)
        return self._count_rows() if rows is None else rows

    def _from_table(
        self, partition: Partition, index_range: IndexRange, *, consistent: bool
    ) -> list[R]:
        # The rows before the page are counted in a smaller index. That is the keys-only index if
        # the noun has one, else the compact index.
        offset, size = self.query.offset, self.query.size
        way = self._counting_range(index_range).options(descending=self.query.descending)
        if not self.filters.ranges:
            way = {"index_name": BY_ROW, **way}
        start = partition.skip(offset, consistent_read=consistent, **way)
        if offset and start is None:
            return []
        key = start and {name: start[name] for name in ("pk", "sk")}
        options = index_range.options(descending=self.query.descending)
        items = partition.items(size, exclusive_start_key=key, consistent_read=True, **options)
        return [self.listing.row.from_raw_data(item) for item in items]

    def _range_scan(self, index_range: IndexRange) -> ResultPage[R]:
        options = index_range.options(descending=False)
        items = self.partition.items(consistent_read=True, **options)
        return self._page_of(self._records(item["sk"]["S"] for item in items), "range scan")

    def _look_up(self) -> ResultPage[R]:
        values = {self.listing.lookup(n): value for n, value in self.filters.lookups.items()}
        id_sets: list[Collection[str]] = [] if self.query.ids is None else [self.query.ids]
        id_sets += [
            lookups.find(
                lookup, self.workspace_id, noun=self.listing.noun, value=value, cost=self.cost
            )
            for lookup, value in values.items()
        ]
        ids = set(id_sets[0]).intersection(*id_sets[1:])
        keys = {lookup: lookup.key(value) for lookup, value in values.items()}
        records = [
            record
            for record in self._records(ids)
            if all(key in map(lookup.key, lookup.values(record)) for lookup, key in keys.items())
        ]
        return self._page_of(records, "look-up")

    def _page_of(self, candidates: Iterable[R], plan: Plan) -> ResultPage[R]:
        records = {record.id: record for record in candidates if self.filters.fits(record)}
        rows = self._search(map(IndexEntry.from_record, records.values()), consistent=True)
        page = [records[row.id] for row in self._sorted_page(rows)]
        return ResultPage(page, len(rows), plan, self.cost)

    def _full_scan(self, *, consistent: bool) -> ResultPage[R]:
        options = self._scan_options(consistent=consistent)
        begun, start = self.begun or ([], None)
        is_complete = self.begun is not None and start is None
        remaining_rows = (
            () if is_complete else self.partition.items(exclusive_start_key=start, **options)
        )
        entries = self._entries(chain(begun, remaining_rows))
        return self._page_of_entries(entries, consistent=consistent)

    def _parallel_scan(self, partition: Partition, rows: int) -> ResultPage[R]:
        digits = NUMBER_DIGITS if self.listing.scan_along else ID_DIGITS
        bounds, options = self.filters.scanned(self.query), self._scan_options(consistent=False)
        scan = ParallelScan(partition, bounds, rows, digits, options, self._entries)
        return self._page_of_entries(scan.entries(), consistent=False)

    def _begin_scan(self) -> bool:
        if isinstance(self.partition, Partition):
            options = self._scan_options(consistent=True)
            self.begun = self.partition.first(SMALL_ROWS + 1, **options)
        return self.begun is not None and self.begun[1] is None

    def _scan_options(self, *, consistent: bool) -> dict[str, Any]:
        where = self.filters.where(search_words(self.query.search or ""))
        return entry_options(
            self.filters.scanned(self.query).condition, where=where, consistent=consistent
        )

    def _entries(self, items: Iterable[Item]) -> Iterable[IndexEntry]:
        any_of = {self.listing.facet_slots[n]: v for n, v in self.filters.any_of.items()}
        return read_entries(items, any_of)

    def _page_of_entries(self, entries: Iterable[IndexEntry], *, consistent: bool) -> ResultPage[R]:
        matches = self._search(entries, consistent=consistent)
        if self._needs_update_times:
            matches = self._add_update_times(matches)
        ids = [entry.id for entry in self._sorted_page(matches)]
        return ResultPage(self._records(ids), len(matches), "full scan", self.cost)

    # Entries that an earlier release wrote lack the time of the last change. Their records have it.
    def _add_update_times(self, entries: list[IndexEntry]) -> list[IndexEntry]:
        unknown = [entry.id for entry in entries if entry.updated_ms is None]
        if not unknown:
            return entries
        times = {record.id: epoch_ms(record.updated_at) for record in self._records(unknown)}
        bounds = self.filters.ranges.get("updated_at", (None, None))
        complete = (
            entry
            if entry.updated_ms is not None
            else entry._replace(updated_ms=times.get(entry.id))
            for entry in entries
        )
        return [entry for entry in complete if is_within(entry.updated_ms, bounds)]

    def _sorted_page(self, entries: list[IndexEntry]) -> list[IndexEntry]:
        query, sort = self.query, self.listing.sorts[self.query.sort]
        entries.sort(key=lambda entry: entry.sort_key(sort), reverse=query.descending)
        return entries[query.offset : query.offset + query.size]

    def _search(self, rows: Iterable[IndexEntry], *, consistent: bool) -> list[IndexEntry]:
        words = search_words(self.query.search or "")
        if not words:
            return list(rows)
        place = Partition(texts_partition(self.workspace_id, noun=self.listing.noun), self.cost)
        return matches(rows, words, place, consistent=consistent)

    def _records(self, ids: Iterable[str]) -> list[R]:
        return self.listing.fetch(self.workspace_id, ids, self.cost)
