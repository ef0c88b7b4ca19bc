"""Bookings: who comes when, to whom, for what."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.contacts.store.named_contacts import NAMED
from chalicelib.engine.claims import name_hash
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.declaration import INDEX_SLOTS, SortIndex
from chalicelib.engine.listing.index_entries import BY_ROW, group, partition_of
from chalicelib.engine.listing.index_ranges import IndexRange, key_bounds
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.reading import PARALLEL_PARTITIONS, Cost, Partition
from chalicelib.engine.tables import ContentRow, JsonAttribute, Record
from chalicelib.engine.unit import UnitOfWork

BookingStatus = Literal["pending_payment", "confirmed", "cancelled", "completed", "no_show"]
STATUSES: tuple[BookingStatus, ...] = get_args(BookingStatus)
BLOCKING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed", "completed")
"""The statuses of bookings that take their time (bookings.md, rule 7)."""
UPCOMING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed")
"""Those of bookings that are still to take place."""
LONGEST = timedelta(days=1)
"""No service, and so no booking, takes longer."""
VISITOR_KEPT = timedelta(days=2)
"""How long it is kept what a visitor has booked: until the visitor's hash of the day is over."""


class BookingRow(Record):
    """A booking.

    The names, price, length, buffers, zone and contacts are those of the moment it was made: what
    becomes of the service, the resource or the client later changes none of them. ``phone_digits``
    is the number as people of its country dial it, to be found by. ``hold_expires_at`` is when an
    unpaid hold lapses. ``named_contacts`` are those in the notes. ``sequence`` rises with every
    change that a calendar shows. An erased client leaves no contacts.
    """

    status = UnicodeAttribute()
    service_id = UnicodeAttribute()
    service_name = UnicodeAttribute()
    resource_id = UnicodeAttribute()
    resource_name = UnicodeAttribute()
    starts_at = UTCDateTimeAttribute()
    ends_at = UTCDateTimeAttribute()
    duration_min = NumberAttribute()
    buffer_before_min = NumberAttribute(default=0)
    buffer_after_min = NumberAttribute(default=0)
    timezone = UnicodeAttribute()
    price = NumberAttribute()
    client_id = UnicodeAttribute(null=True)
    client_name = UnicodeAttribute(null=True)
    client_phone = UnicodeAttribute(null=True)
    client_email = UnicodeAttribute(null=True)
    phone_digits = UnicodeAttribute(null=True)
    notes = UnicodeAttribute(null=True)
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    source = UnicodeAttribute()
    hold_expires_at = UTCDateTimeAttribute(null=True)
    sequence = NumberAttribute(default=0)
    token_secret = UnicodeAttribute(null=True)

    @property
    def blocks(self) -> bool:
        """Whether it takes its time, or will until its hold lapses."""
        return self.status in BLOCKING

    @property
    def busy(self) -> BusyEntry:
        """What it takes of its resource's calendar while it blocks."""
        return BusyEntry(
            self.id,
            epoch_ms(self.starts_at),
            epoch_ms(self.ends_at),
            int(self.buffer_before_min),
            int(self.buffer_after_min),
            epoch_ms(self.hold_expires_at) if self.hold_expires_at else None,
        )


BOOKINGS = listed(
    Listing(
        row=BookingRow,
        noun="BOOKING",
        listed_by="svc_list_bookings",
        unavailable_message="There is no such booking. Use the link or token of the confirmation.",
        text=lambda booking: [
            booking.client_name or "",
            booking.client_email or "",
            booking.client_phone or "",
            booking.phone_digits or "",
        ],
        sorts={"startAt": "n1", "createdAt": "id"},
        status="status",
        facets=("service_id", "resource_id", "client_id"),
        counted=("service_id", "resource_id", "client_id"),
        partitioned=("client_id", "resource_id", "service_id"),
        numbers=("starts_at", "ends_at"),
        scan_along="starts_at",
        indexes=(
            SortIndex("startAt"),
            SortIndex("createdAt"),
            SortIndex("startAt", partition_by="status"),
            SortIndex("createdAt", partition_by="status"),
        ),
        lookups=(
            Lookup("email", lambda booking: booking.client_email),
            Lookup("phone", lambda booking: booking.client_phone),
            Lookup(NAMED, lambda booking: booking.named_contacts),
        ),
    )
)


class EventRow(HistoryRow):
    """A change of a booking. ``move`` says from where to where, if it was moved."""

    noun = "BOOKING"

    status = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    move: JsonAttribute = JsonAttribute(null=True)


def new_event(
    unit: UnitOfWork,
    booking: BookingRow,
    by: str,
    *,
    reason: str | None = None,
    move: dict[str, Any] | None = None,
) -> EventRow:
    """Stage, and return, a line of a booking's history: its status from now on, and who set it."""
    event = EventRow.new(
        unit.workspace_id, booking.id, by, status=booking.status, reason=reason, move=move
    )
    unit.create(event)
    return event


def wipe(booking: BookingRow) -> None:
    """Take from a booking what a person has said, and what it was found by."""
    booking.client_name = booking.client_phone = booking.client_email = None
    booking.phone_digits = booking.notes = booking.token_secret = booking.named_contacts = None


def reasons(workspace_id: str, booking_id: str) -> list[EventRow]:
    """Return the changes of a booking that somebody has given a reason for, in words of theirs."""
    events = EventRow.newest(workspace_id, booking_id, limit=None)
    return [event for event in events if event.reason is not None]


def wipe_reasons(unit: UnitOfWork, events: Iterable[EventRow]) -> None:
    """Stage that changes lose their reasons, which may name a person."""
    for event in events:
        unit.update(event, [EventRow.reason.remove()])


def is_upcoming(booking: BookingRow) -> bool:
    """Whether a booking is still to begin; one whose hold has lapsed is not."""
    now, lapses = clock.now(), booking.hold_expires_at
    return booking.status in UPCOMING and booking.starts_at > now and not (lapses and lapses <= now)


def upcoming(workspace_id: str, ids: Iterable[str]) -> list[BookingRow]:
    """Return those of some bookings that are still to begin."""
    return [row for row in BOOKINGS.fetch(workspace_id, ids) if is_upcoming(row)]


class VisitorBookingsRow(ContentRow):
    """The bookings to come that one visitor has made for one contact.

    Its key is a hash of both. A visitor's own hash changes daily, so the row expires soon after.
    """

    version = VersionAttribute()
    ids: ListAttribute[str] = ListAttribute(default=list)


def made_by_visitor(
    workspace_id: str, visitor: str, contacts: Iterable[str]
) -> list[VisitorBookingsRow]:
    """Return what a visitor has booked for each of some contacts, to be saved with one more."""
    pk, rows = f"W#{workspace_id}#BOOKING#VISITOR", []
    for contact in contacts:
        name = name_hash(contact, visitor)
        row = VisitorBookingsRow.find(pk, name) or VisitorBookingsRow(pk, name)
        row.expires = clock.now() + VISITOR_KEPT
        rows.append(row)
    return rows


class Upcoming(NamedTuple):
    """Bookings to come: when those of a period begin, in ms since 1970, and the next ones' ids."""

    starts: list[int]
    ids: list[str]


def next_ones(workspace_id: str, until: datetime, limit: int) -> Upcoming:
    """Return when the bookings begin that are to come until then, and the ids of the next ones.

    If those are fewer than ``limit``, confirmed ones that begin later are next.
    """
    now, partition = clock.now(), Partition(BOOKINGS.partition(workspace_id), Cost())
    bounds = IndexRange(BY_ROW, "", *key_bounds((now, until)))
    found = partition.items(
        filter_condition=ContentRow.s.is_in(*UPCOMING),
        consistent_read=True,
        **bounds.options(descending=False),
    )
    entries = [(int(item["n1"]["N"]), item["sk"]["S"]) for item in found]
    ids = [booking_id for _, booking_id in entries[:limit]]
    if len(ids) < limit:
        slot = INDEX_SLOTS[BOOKINGS.indexes.index(SortIndex("startAt", partition_by="status"))]
        after = key_bounds((until + timedelta(milliseconds=1), None))
        bounds = IndexRange(f"by_{slot}", group("confirmed"), *after)
        later = partition.items(
            limit - len(ids), consistent_read=True, **bounds.options(descending=False)
        )
        ids += [item["sk"]["S"] for item in later]
    return Upcoming([start for start, _ in entries], ids)


class Blocking(NamedTuple):
    """Bookings in a stretch of time: the first ids, by start, and how many there are."""

    ids: list[str]
    total: int


def future_count(
    workspace_id: str, *, service_id: str | None = None, resource_id: str | None = None
) -> int:
    """Return how many bookings of a service or a resource are still to begin."""
    facet, value = ("service_id", service_id) if service_id else ("resource_id", resource_id)
    place = partition_of(workspace_id, BOOKINGS.noun, facet, value or "")
    bounds = IndexRange(BY_ROW, "", *key_bounds((clock.now(), None)))
    return Partition(place, Cost()).count(
        None,
        filter_condition=ContentRow.s.is_in(*UPCOMING),
        consistent_read=True,
        **bounds.options(descending=False),
    )


def blocking_between(
    workspace_id: str, resource_ids: Sequence[str] | None, first_ms: int, last_ms: int, limit: int
) -> Blocking:
    """Return the bookings that take time in ``[first_ms, last_ms)``, buffers aside.

    Those of some resources, or of the whole workspace; cancelled ones and no-shows take none.
    """
    if resource_ids is None:
        places = [BOOKINGS.partition(workspace_id)]
    else:
        places = [
            partition_of(workspace_id, BOOKINGS.noun, "resource_id", each) for each in resource_ids
        ]
    starts = (first_ms - LONGEST // timedelta(milliseconds=1), last_ms - 1)
    bounds = IndexRange(BY_ROW, "", *key_bounds(starts))
    where = ContentRow.s.is_in(*BLOCKING) & (ContentRow.n2 > first_ms)

    def read(place: str) -> list[tuple[int, str]]:
        items = Partition(place, Cost()).items(
            filter_condition=where, consistent_read=True, **bounds.options(descending=False)
        )
        return [(int(item["n1"]["N"]), item["sk"]["S"]) for item in items]

    found = sorted(
        each for some in deadline.map_in_threads(read, places, PARALLEL_PARTITIONS) for each in some
    )
    return Blocking([booking_id for _, booking_id in found[:limit]], len(found))
