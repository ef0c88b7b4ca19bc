"""Bookings of a period, found along the index of starts, for the calendar of the console.

A period with hundreds of bookings costs few read units: its index entries have the time, the status
and the resource, and only the records that are shown are read.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple, Self

from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.store.bookings import BLOCKING, BOOKINGS, MAX_LENGTH, BookingRow
from chalicelib.engine.listing.index_entries import BY_ROW, partition_of
from chalicelib.engine.listing.index_ranges import IndexRange, key_bounds
from chalicelib.engine.reading import Cost, Item, Partition
from chalicelib.engine.tables import ContentRow
from chalicelib.lib.spans import Span

_RESOURCE = BOOKINGS.facet_slots["resource_id"]


class BookingEntry(NamedTuple):
    """The index entry of a booking: its id, its time in ms since 1970, and its resource."""

    id: str
    span: Span
    status: str
    resource_id: str

    @classmethod
    def read(cls, item: Item) -> Self:
        """Read a raw item of the compact index."""
        span = Span(int(item["n1"]["N"]), int(item["n2"]["N"]))
        return cls(item["sk"]["S"], span, item["s"]["S"], item[_RESOURCE]["S"])

    @classmethod
    def of(cls, row: BookingRow) -> Self:
        """Return the entry of a booking."""
        span = Span(epoch_ms(row.starts_at), epoch_ms(row.ends_at))
        return cls(row.id, span, row.status, row.resource_id)


def overlapping(
    workspace_id: str, period: Span, resource_id: str | None = None
) -> list[BookingEntry]:
    """Return the bookings that occupy time in a period, by start, read consistently.

    Cancelled bookings and no-shows are left out.
    """
    place = BOOKINGS.partition(workspace_id)
    if resource_id is not None:
        place = partition_of(workspace_id, BOOKINGS.noun, "resource_id", resource_id)
    starts = (period.start - MAX_LENGTH // timedelta(milliseconds=1), period.end - 1)
    found = Partition(place, Cost()).items(
        filter_condition=ContentRow.s.is_in(*BLOCKING) & (ContentRow.n2 > period.start),
        consistent_read=True,
        **IndexRange(BY_ROW, "", *key_bounds(starts)).options(descending=False),
    )
    return [BookingEntry.read(item) for item in found]


def records_of(workspace_id: str, entries: Sequence[BookingEntry]) -> list[BookingRow]:
    """Return the bookings of index entries, in their order.

    The entries are consistent. So the records are read eventually consistently, at half the units,
    and those that differ from their entry are read again.
    """
    ids = [entry.id for entry in entries]
    found = {row.id: row for row in BOOKINGS.fetch(workspace_id, ids, consistent=False)}
    stale = [
        entry.id
        for entry in entries
        if (row := found.get(entry.id)) is None or BookingEntry.of(row) != entry
    ]
    found |= {row.id: row for row in BOOKINGS.fetch(workspace_id, stale)}
    return [found[each] for each in ids if each in found]
