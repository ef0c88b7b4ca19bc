"""Store bookings with their events, and requested bookings that wait for an e-mail's link.

A requested booking is found by the hash of the link's token. Its row is deleted when the link has
booked, and expires soon after the link has ended.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.contacts.store.clients import NAMED, contact_lookup
from chalicelib.engine.claims import exact_hash
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.declaration import INDEX_SLOTS, SortIndex, changes, is_new
from chalicelib.engine.listing.index_entries import (
    BY_ROW,
    IndexRange,
    group,
    key_bounds,
    partition_of,
)
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import PARALLEL_PARTITIONS, Cost, Key, Partition, Rows
from chalicelib.engine.tables import ContentRow, ControlRow, JsonAttribute, Record
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails, tokens

BookingStatus = Literal["pending_payment", "confirmed", "cancelled", "completed", "no_show"]
PUBLIC, CHAT, AGENT = "public", "chat", "agent"
VISITOR_SOURCES = frozenset({PUBLIC, CHAT, AGENT})
"""Sources of bookings that visitors make: over the public API and page, in a chat, and on the page
with a link that their own assistant has prepared."""
STATUSES: tuple[BookingStatus, ...] = get_args(BookingStatus)
BLOCKING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed", "completed")
"""Statuses in which a booking occupies its time."""
UPCOMING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed")
"""Statuses of bookings that have not taken place yet."""
MAX_LENGTH = timedelta(days=1)
"""Maximum length of a service, and therefore of a booking."""
VISITOR_BOOKINGS_KEPT_FOR = timedelta(days=2)
"""Time for which the list of a visitor's bookings is kept.

Visitors' hashes change daily, so the list cannot be found later.
"""


class BookingRow(Record):
    """A booking.

    It has copies of the names, price, length, buffers, zone and contacts at the time of booking.
    Later changes of the service, the resource or the client do not affect them. ``phone_digits`` is
    the phone number in national format, for search. ``hold_expires_at`` is when an unpaid hold
    expires. ``named_contacts`` are contacts found in the notes. ``sequence`` increases with changes
    that a calendar shows. ``visitor_moves`` counts how often the client has moved it. ``is_proved``
    is set if the link in an e-mail to the client's address has booked. ``language`` is the language
    of the page on which the client has booked. When the client is erased,
    all contacts are removed.

    ``due`` is what has to be paid in advance, in kopecks. The client's cancellation is refunded
    until ``refund_until_min`` minutes before the start. ``payment_ids`` are its payments, the
    latest last. ``paid_by`` is the payment that has paid the booking, and ``paid`` its amount.
    ``has_lapsed`` is set while the booking is cancelled because its hold has expired.
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
    phone_entered = UnicodeAttribute(null=True)
    client_email = UnicodeAttribute(null=True)
    phone_digits = UnicodeAttribute(null=True)
    notes = UnicodeAttribute(null=True)
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    source = UnicodeAttribute()
    hold_expires_at = UTCDateTimeAttribute(null=True)
    sequence = NumberAttribute(default=0)
    visitor_moves = NumberAttribute(default=0)
    token_secret = UnicodeAttribute(null=True)
    is_proved = BooleanAttribute(null=True)
    language = UnicodeAttribute(null=True)
    due = NumberAttribute(null=True)
    refund_until_min = NumberAttribute(null=True)
    payment_ids: ListAttribute[str] = ListAttribute(null=True)
    paid_by = UnicodeAttribute(null=True)
    paid = NumberAttribute(null=True)
    has_lapsed = BooleanAttribute(null=True)

    @property
    def latest_payment_id(self) -> str | None:
        """Id of the latest payment, or None."""
        return self.payment_ids[-1] if self.payment_ids else None

    @property
    def is_payable(self) -> bool:
        """Whether the client can pay the booking now, if the workspace takes payments."""
        expires = self.hold_expires_at
        is_held = self.status == "pending_payment" and (expires is None or expires > clock.now())
        return is_held and bool(self.due) and self.paid_by is None

    @property
    def is_unproved(self) -> bool:
        """Whether somebody who has proved nothing has typed the address."""
        return self.source in VISITOR_SOURCES and not self.is_proved

    @property
    def blocks(self) -> bool:
        """Whether the booking occupies its time.

        For an unpaid booking, that ends with its hold.
        """
        return self.status in BLOCKING

    @property
    def busy(self) -> BusyEntry:
        """The booking's entry in its resource's calendar while it blocks."""
        return BusyEntry(
            self.id,
            epoch_ms(self.starts_at),
            epoch_ms(self.ends_at),
            int(self.buffer_before_min),
            int(self.buffer_after_min),
            epoch_ms(self.hold_expires_at) if self.hold_expires_at else None,
        )


def _hold_expired(old_row: BookingRow | None, new_row: BookingRow) -> bool:
    """Whether an unpaid booking is cancelled at the end of its hold."""
    return (
        old_row is not None
        and (old_row.status, new_row.status) == ("pending_payment", "cancelled")
        and old_row.hold_expires_at is not None
        and old_row.hold_expires_at <= clock.now()
    )


BOOKINGS = register_listing(
    Listing(
        row=BookingRow,
        noun="BOOKING",
        listed_by="svc_list_bookings",
        unavailable_message="This booking does not exist. Use the link of the confirmation.",
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
            contact_lookup("email", lambda booking: booking.client_email),
            Lookup("phone", lambda booking: booking.client_phone),
            contact_lookup(NAMED, lambda booking: booking.named_contacts),
        ),
        events={
            "booking.created": is_new,
            "booking.paid": changes("paid_by"),
            "booking.moved": changes("starts_at", "resource_id"),
            "booking.status_changed": changes("status"),
            "booking.hold_expired": _hold_expired,
        },
    )
)


class EventRow(HistoryRow):
    """An entry of a booking's history. ``move`` has the previous and new place, if it was moved.

    An entry with ``mail`` says what became of an e-mail to the client: its kind, state and reason.
    """

    noun = "BOOKING"

    status = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    move: JsonAttribute = JsonAttribute(null=True)
    mail: JsonAttribute = JsonAttribute(null=True)


def read_with_history(workspace_id: str, booking_id: str) -> tuple[BookingRow, list[EventRow]]:
    """Return a booking and its history, read side by side.

    Raises:
        NotFoundError: no live booking of the workspace has this id.
    """
    with deadline.side_by_side() as start:
        events = start(lambda: EventRow.newest(workspace_id, booking_id))
        return BOOKINGS.require(workspace_id, booking_id), events.result()


def new_event(
    unit: UnitOfWork,
    booking: BookingRow,
    by: str,
    *,
    reason: str | None = None,
    move: dict[str, Any] | None = None,
) -> EventRow:
    """Stage and return an entry of a booking's history, with the current status and its author."""
    event = EventRow.new(
        unit.workspace_id, booking.id, by, status=booking.status, reason=reason, move=move
    )
    unit.create(event)
    return event


def mail_entry(
    workspace_id: str, booking: BookingRow, mail_id: str, **mail: str | None
) -> EventRow:
    """Return the entry of an e-mail to the client, to save.

    An e-mail has one entry, the latest.
    """
    entry = EventRow.new(workspace_id, booking.id, "job", status=booking.status, mail=mail)
    entry.sk = group(booking.id) + mail_id
    return entry


def wipe(booking: BookingRow) -> None:
    """Remove personal data from a booking, and the values by which it can be found."""
    booking.client_name = booking.client_phone = booking.client_email = None
    booking.phone_entered = None
    booking.phone_digits = booking.notes = booking.token_secret = booking.named_contacts = None


def reasons(workspace_id: str, booking_id: str) -> list[EventRow]:
    """Return the history entries of a booking that have a reason as free text."""
    events = EventRow.newest(workspace_id, booking_id, limit=None)
    return [event for event in events if event.reason is not None]


def wipe_reasons(unit: UnitOfWork, events: Iterable[EventRow]) -> None:
    """Stage the removal of reasons from history entries.

    A reason may contain a client's name.
    """
    for event in events:
        unit.update(event, [EventRow.reason.remove()])


def is_upcoming(booking: BookingRow) -> bool:
    """Return whether a booking has not begun.

    A booking with an expired hold does not count.
    """
    now, expires = clock.now(), booking.hold_expires_at
    has_expired = expires is not None and expires <= now
    return booking.status in UPCOMING and booking.starts_at > now and not has_expired


def upcoming(workspace_id: str, ids: Iterable[str], rows: Rows) -> list[BookingRow]:
    """Return the bookings with these ids that have not begun."""
    booking_rows = rows.fetch(BOOKINGS.key(workspace_id, booking_id) for booking_id in ids)
    return [row for row in booking_rows if isinstance(row, BookingRow) and is_upcoming(row)]


class VisitorBookingsRow(ContentRow):
    """Upcoming bookings that one visitor has made for one contact.

    The key is a hash of both. A visitor's hash changes daily, so the row expires soon after. One
    more row, without a contact, has the unpaid bookings of the visitor.
    """

    version = VersionAttribute()
    ids: ListAttribute[str] = ListAttribute(default=list)


def visitor_keys(workspace_id: str, visitor: str, contacts: Iterable[str | None]) -> list[Key]:
    """Return the keys of the rows of a visitor's bookings, one for each contact."""
    pk = f"W#{workspace_id}#BOOKING#VISITOR"
    hashes = [exact_hash(emails.key(contact), visitor) for contact in contacts if contact]
    return [Key(VisitorBookingsRow, pk, contact_hash) for contact_hash in hashes]


def holds_key(workspace_id: str, visitor: str) -> Key:
    """Return the key of the row of a visitor's unpaid bookings."""
    return Key(VisitorBookingsRow, f"W#{workspace_id}#BOOKING#VISITOR", exact_hash("", visitor))


def made_by_visitor(keys: Iterable[Key], rows: Rows) -> list[VisitorBookingsRow]:
    """Return the rows of a visitor's bookings for each contact, to save with the new booking."""
    visitor_rows = []
    for key in keys:
        row = rows.find(VisitorBookingsRow, key) or VisitorBookingsRow(key.pk, key.sk)
        row.expires = clock.now() + VISITOR_BOOKINGS_KEPT_FOR
        visitor_rows.append(row)
    return visitor_rows


class Upcoming(NamedTuple):
    """Start times of upcoming bookings in a period, in ms since 1970, and the next ids."""

    starts: list[int]
    ids: list[str]


def upcoming_until(workspace_id: str, until: datetime, limit: int) -> Upcoming:
    """Return the start times of upcoming bookings until a moment, and the next ids.

    If there are fewer than ``limit``, later confirmed bookings are added.
    """
    now, partition = clock.now(), Partition(BOOKINGS.partition(workspace_id), Cost())
    bounds = IndexRange(BY_ROW, "", *key_bounds((now, until)))
    items = partition.items(
        filter_condition=ContentRow.s.is_in(*UPCOMING),
        consistent_read=True,
        **bounds.options(descending=False),
    )
    entries = [(int(item["n1"]["N"]), item["sk"]["S"]) for item in items]
    ids = [booking_id for _, booking_id in entries[:limit]]
    if len(ids) < limit:
        slot = INDEX_SLOTS[BOOKINGS.indexes.index(SortIndex("startAt", partition_by="status"))]
        later_bounds = key_bounds((until + timedelta(milliseconds=1), None))
        bounds = IndexRange(f"by_{slot}", group("confirmed"), *later_bounds)
        later = partition.items(
            limit - len(ids), consistent_read=True, **bounds.options(descending=False)
        )
        ids += [item["sk"]["S"] for item in later]
    return Upcoming([start for start, _ in entries], ids)


class Blocking(NamedTuple):
    """First ids of bookings in a period, by start, and the total number of these bookings."""

    ids: list[str]
    total: int


def future_count(
    workspace_id: str, *, service_id: str | None = None, resource_id: str | None = None
) -> int:
    """Return the number of bookings of a service or a resource that have not begun."""
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
    """Return the bookings that occupy time in ``[first_ms, last_ms)``, without their buffers.

    None means all resources of the workspace. Cancelled bookings and no-shows do not count.
    """
    if resource_ids is None:
        places = [BOOKINGS.partition(workspace_id)]
    else:
        places = [
            partition_of(workspace_id, BOOKINGS.noun, "resource_id", resource_id)
            for resource_id in resource_ids
        ]
    # A booking that began before the period may still run, for at most ``MAX_LENGTH``.
    starts = (first_ms - MAX_LENGTH // timedelta(milliseconds=1), last_ms - 1)
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


LINK_WORKS_FOR = timedelta(minutes=30)
AWAITED_KEPT_FOR = timedelta(hours=1)


class AwaitedBookingRow(ControlRow):
    """A requested booking.

    ``request`` is the visitor's, with the exact start, and ``booking`` what visitors see of the
    booking to be. ``contacts`` are all contacts in the request. ``proposal`` is a bot's proposal,
    which the visitor has confirmed.
    """

    request_id = UnicodeAttribute()
    request: JsonAttribute = JsonAttribute()
    booking: JsonAttribute = JsonAttribute()
    contacts: ListAttribute[str] = ListAttribute(default=list)
    source = UnicodeAttribute()
    proposal = UnicodeAttribute(null=True)
    language = UnicodeAttribute(null=True)
    link_ends_at = UTCDateTimeAttribute()

    @property
    def email(self) -> str:
        """The address that the link is mailed to."""
        return str(self.request["client"]["email"])


def find_awaited(workspace_id: str, token: str) -> AwaitedBookingRow | None:
    """Return the requested booking of a link, or None if the link is unknown, used or ended."""
    row = AwaitedBookingRow.find(_partition(workspace_id), tokens.digest(token))
    return row if row is not None and clock.now() < row.link_ends_at else None


def new_awaited(workspace_id: str, token: str, contacts: Iterable[str | None]) -> AwaitedBookingRow:
    """Return the row of a link.

    The caller sets the request, and stages the row.
    """
    now = clock.now()
    return AwaitedBookingRow(
        _partition(workspace_id),
        tokens.digest(token),
        # An address and its other spelling must find the same request when a client is erased.
        contacts=[emails.key(contact) for contact in contacts if contact],
        link_ends_at=now + LINK_WORKS_FOR,
        expires=now + AWAITED_KEPT_FOR,
    )


def naming_awaited(workspace_id: str, contacts: Collection[str]) -> list[AwaitedBookingRow]:
    """Return the requested bookings with one of these contacts, to erase them."""
    keys = set(map(emails.key, contacts))
    rows = AwaitedBookingRow.partition(_partition(workspace_id))
    return [row for row in rows if keys.intersection(row.contacts)]


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#AWAITED-BOOKING"
