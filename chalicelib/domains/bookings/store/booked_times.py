"""Find the bookings that take up time in a period, by the index of starts.

An index entry has the time, the status and the resource, so only shown records are read. It also
has the folded name and contacts, so it changes with all that a calendar feed shows.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice
from typing import NamedTuple, Self

from pynamodb.expressions.condition import Condition

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.store.bookings import (
    BLOCKING,
    BOOKINGS,
    MAX_LENGTH,
    UPCOMING,
    BookingRow,
)
from chalicelib.engine.listing.declaration import INDEX_SLOTS, SortIndex
from chalicelib.engine.listing.index_entries import BY_ROW, group, partition_of
from chalicelib.engine.listing.index_ranges import IndexRange, key_bounds
from chalicelib.engine.reading import PARALLEL_PARTITIONS, Cost, Item, Partition
from chalicelib.engine.tables import ContentRow
from chalicelib.lib.spans import Span

_RESOURCE = BOOKINGS.facet_slots["resource_id"]
# The index sorts by the start, and a booking may begin this long before a period in which it still
# runs.
_LONGEST_MS = MAX_LENGTH // timedelta(milliseconds=1)


class DayAndNext(NamedTuple):
    """Index entries of a day, by start, and the ids of the next bookings after it."""

    of_day: list["BookingEntry"]
    next_ids: list[str]


def day_and_next(workspace_id: str, day: Span, until_ms: int, limit: int) -> DayAndNext:
    """Return the bookings that occupy time on a day, and the ids of the next upcoming ones.

    Those until ``until_ms`` come from the same query as the day.
    """
    partition = Partition(BOOKINGS.partition(workspace_id), Cost())
    starts = (day.start - _LONGEST_MS, until_ms - 1)
    items = partition.items(
        filter_condition=ContentRow.s.is_in(*BLOCKING),
        consistent_read=True,
        **IndexRange(BY_ROW, "", *key_bounds(starts)).options(descending=False),
    )
    entries = list(map(BookingEntry.read, items))
    of_day = [each for each in entries if each.span.start < day.end and each.span.end > day.start]
    next_ids = [
        each.id for each in entries if each.span.start >= day.end and each.status in UPCOMING
    ][:limit]
    # Later confirmed bookings are added.
    if len(next_ids) < limit:
        slot = INDEX_SLOTS[BOOKINGS.indexes.index(SortIndex("startAt", partition_by="status"))]
        bounds = IndexRange(f"by_{slot}", group("confirmed"), *key_bounds((until_ms, None)))
        later = partition.items(
            limit - len(next_ids), consistent_read=True, **bounds.options(descending=False)
        )
        next_ids += [item["sk"]["S"] for item in later]
    return DayAndNext(of_day, next_ids)


def upcoming_ids(workspace_id: str, limit: int) -> list[str]:
    """Return the ids of the first bookings that have not begun."""
    bounds = IndexRange(BY_ROW, "", *key_bounds((clock.now(), None)))
    items = Partition(BOOKINGS.partition(workspace_id), Cost()).items(
        filter_condition=ContentRow.s.is_in(*UPCOMING),
        consistent_read=True,
        **bounds.options(descending=False),
    )
    return [item["sk"]["S"] for item in islice(items, limit)]


class Blocking(NamedTuple):
    """First ids of bookings in a period, by start, and the total number of these bookings."""

    ids: list[str]
    total: int


def future_count(
    workspace_id: str, *, service_id: str | None = None, resource_id: str | None = None
) -> int:
    """Return the number of bookings of a service or a resource that have not begun."""
    facet, value = ("service_id", service_id) if service_id else ("resource_id", resource_id)
    place = partition_of(workspace_id, noun=BOOKINGS.noun, facet=facet, value=value or "")
    bounds = IndexRange(BY_ROW, "", *key_bounds((clock.now(), None)))
    return Partition(place, Cost()).count(
        None,
        filter_condition=ContentRow.s.is_in(*UPCOMING),
        consistent_read=True,
        **bounds.options(descending=False),
    )


def blocking_between(
    workspace_id: str,
    resource_ids: Sequence[str] | None,
    first_ms: int,
    *,
    last_ms: int,
    limit: int,
) -> Blocking:
    """Return the bookings that occupy time in ``[first_ms, last_ms)``, without their buffers.

    Cancelled bookings and no-shows do not count. None means all resources of the workspace.
    """
    if resource_ids is None:
        places = [BOOKINGS.partition(workspace_id)]
    else:
        places = [
            partition_of(workspace_id, noun=BOOKINGS.noun, facet="resource_id", value=resource_id)
            for resource_id in resource_ids
        ]
    starts = (first_ms - _LONGEST_MS, last_ms - 1)
    bounds = IndexRange(BY_ROW, "", *key_bounds(starts))
    where = ContentRow.s.is_in(*BLOCKING) & (ContentRow.n2 > first_ms)

    def read(place: str) -> list[tuple[int, str]]:
        items = Partition(place, Cost()).items(
            filter_condition=where, consistent_read=True, **bounds.options(descending=False)
        )
        return [(int(item["n1"]["N"]), item["sk"]["S"]) for item in items]

    pairs = sorted(
        pair
        for partition in deadline.map_in_threads(read, places, PARALLEL_PARTITIONS)
        for pair in partition
    )
    return Blocking([booking_id for _, booking_id in pairs[:limit]], len(pairs))


class BookingEntry(NamedTuple):
    """Index entry of a booking, with times in ms since 1970."""

    id: str
    span: Span
    status: str
    resource_id: str

    @classmethod
    def read(cls, item: Item) -> Self:
        span = Span(int(item["n1"]["N"]), int(item["n2"]["N"]))
        return cls(item["sk"]["S"], span, item["s"]["S"], item[_RESOURCE]["S"])

    @classmethod
    def from_record(cls, row: BookingRow) -> Self:
        span = Span(epoch_ms(row.starts_at), epoch_ms(row.ends_at))
        return cls(row.id, span, row.status, row.resource_id)


def overlapping(
    workspace_id: str, period: Span, resource_id: str | None = None
) -> list[BookingEntry]:
    """Return the bookings that occupy time in a period, by start, read consistently."""
    place = BOOKINGS.partition(workspace_id)
    if resource_id is not None:
        place = partition_of(
            workspace_id, noun=BOOKINGS.noun, facet="resource_id", value=resource_id
        )
    starts = (period.start - _LONGEST_MS, period.end - 1)
    items = Partition(place, Cost()).items(
        filter_condition=ContentRow.s.is_in(*BLOCKING) & (ContentRow.n2 > period.start),
        consistent_read=True,
        **IndexRange(BY_ROW, "", *key_bounds(starts)).options(descending=False),
    )
    return [BookingEntry.read(item) for item in items]


def of_service(workspace_id: str, service_id: str, period: Span) -> list[BookingRow]:
    """Return the bookings of a service that occupy time and begin in a period, by start."""
    place = partition_of(workspace_id, noun=BOOKINGS.noun, facet="service_id", value=service_id)
    items = Partition(place, Cost()).items(
        filter_condition=ContentRow.s.is_in(*BLOCKING),
        consistent_read=True,
        **IndexRange(BY_ROW, "", *key_bounds((period.start, period.end - 1))).options(
            descending=False
        ),
    )
    return records_of(workspace_id, [BookingEntry.read(item) for item in items])


def records_of(
    workspace_id: str, entries: "Sequence[BookingEntry | BookingState]"
) -> list[BookingRow]:
    """Return the bookings of index entries, in their order, none older than its entry."""
    # The entries are consistent. So the records are read eventually consistently, at half the
    # units, and records that differ from their entry are read again.
    ids = [entry.id for entry in entries]
    rows_by_id = {row.id: row for row in BOOKINGS.fetch(workspace_id, ids, consistent=False)}
    stale = [
        entry.id
        for entry in entries
        if (row := rows_by_id.get(entry.id)) is None or entry.from_record(row) != entry
    ]
    rows_by_id |= {row.id: row for row in BOOKINGS.fetch(workspace_id, stale)}
    return [rows_by_id[calendar_entry] for calendar_entry in ids if calendar_entry in rows_by_id]


_SHOWN_SLOTS = ("sk", "s", "f1", "f2", "f3", "n1", "n2", "t")


class BookingState(NamedTuple):
    """What an index entry says about a booking, to find whether anything has changed."""

    id: str
    values: tuple[str | None, ...]

    @classmethod
    def read(cls, item: Item) -> Self:
        values = (
            (item[slot].get("S") or item[slot].get("N")) if slot in item else None
            for slot in _SHOWN_SLOTS
        )
        return cls(item["sk"]["S"], tuple(values))

    @classmethod
    def from_record(cls, row: BookingRow) -> Self:
        return cls.read(row.stored or row.serialize())


def nearest(
    workspace_id: str, period: Span, now: int, *, limit: int, resource_id: str | None = None
) -> list[BookingState]:
    """Return the bookings that occupy time in a period: those after ``now``, then those before.

    Both are the nearest ones first, ``limit`` at most, and read consistently.
    """
    place = BOOKINGS.partition(workspace_id)
    if resource_id is not None:
        place = partition_of(
            workspace_id, noun=BOOKINGS.noun, facet="resource_id", value=resource_id
        )

    def read(starts: tuple[int, int], where: Condition, *, descending: bool) -> list[BookingState]:
        items = Partition(place, Cost()).items(
            limit,
            filter_condition=ContentRow.s.is_in(*BLOCKING) & where,
            consistent_read=True,
            **IndexRange(BY_ROW, "", *key_bounds(starts)).options(descending=descending),
        )
        return [BookingState.read(item) for item in items]

    with deadline.side_by_side() as start:
        past_task = start(
            lambda: read(
                (period.start - _LONGEST_MS, now),
                (ContentRow.n2 > period.start) & (ContentRow.n2 <= now),
                descending=True,
            )
        )
        coming = read((now - _LONGEST_MS, period.end - 1), ContentRow.n2 > now, descending=False)
        return [*coming, *past_task.result()][:limit]
