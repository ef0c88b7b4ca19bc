"""Store bookings with their events."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.clients.store.contact_lookups import NAMED, contact_lookup
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.event_rules import changes, is_new
from chalicelib.engine.listing.index_entries import group
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Rows
from chalicelib.engine.tables import JsonAttribute, ProgramRecord
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import phones
from chalicelib.lib.spans import Span

BookingStatus = Literal["pending_payment", "confirmed", "cancelled", "completed", "no_show"]
PUBLIC, CHAT, AGENT = "public", "chat", "agent"
# Visitors make them over the public API and page, in a chat, and on the page with a link that their
# own assistant has prepared.
VISITOR_SOURCES = frozenset({PUBLIC, CHAT, AGENT})
STATUSES: tuple[BookingStatus, ...] = get_args(BookingStatus)
# Statuses in which a booking occupies its time.
BLOCKING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed", "completed")
# A part of a visit may take place, and another one not. Any other status is one of the visit.
VISITED = frozenset({"confirmed", "completed", "no_show"})
UPCOMING: tuple[BookingStatus, ...] = ("pending_payment", "confirmed")  # not taken place yet
MAX_LENGTH = timedelta(days=1)  # of a service, and therefore of a booking
MAX_IN_VISIT = 5  # bookings of one visit, which one transaction of 100 items can hold


class BookingRow(ProgramRecord):
    """A booking with copies of the names, price, length, buffers, zone and contacts at booking.

    Later changes of the service, the resource or the client do not affect them. When the client is
    erased, all contacts are removed.
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
    phone_digits = UnicodeAttribute(null=True)  # in national format, for search
    notes = UnicodeAttribute(null=True)
    named_contacts: ListAttribute[str] = ListAttribute(null=True)  # found in the notes
    source = UnicodeAttribute()
    hold_expires_at = UTCDateTimeAttribute(null=True)  # of an unpaid hold
    sequence = NumberAttribute(default=0)  # increases with changes that a calendar shows
    visitor_moves = NumberAttribute(default=0)  # how often the client has moved it
    token_secret = UnicodeAttribute(null=True)
    # The link in an e-mail to the client's address has booked.
    is_proved = BooleanAttribute(null=True)
    language = UnicodeAttribute(null=True)  # of the page on which the client has booked
    due = NumberAttribute(null=True)  # to pay in advance, in minor units
    # The client's cancellation is refunded until ``refundable_until``, which is
    # ``refund_until_min`` minutes before the start that the client has chosen.
    refund_until_min = NumberAttribute(null=True)
    refundable_until = UTCDateTimeAttribute(null=True)
    payment_ids: ListAttribute[str] = ListAttribute(null=True)  # the latest last
    paid_by = UnicodeAttribute(null=True)  # the payment that has paid the booking
    paid = NumberAttribute(null=True)  # its amount
    has_lapsed = BooleanAttribute(null=True)  # Cancelled because its hold has expired.
    # The subjects of the shares of the visitor who has booked, for the e-mails that follow.
    visitor_shares: ListAttribute[str] = ListAttribute(null=True)
    # The ids of all bookings of its visit, in order, and the minutes that its resource keeps free
    # before and after it for the visit. A booking of one service has neither (ADR 139).
    visit: ListAttribute[str] = ListAttribute(null=True)
    visit_buffers: ListAttribute[int] = ListAttribute(null=True)

    kept_when_erased = ProgramRecord.kept_when_erased | {
        *("status", "source", "hold_expires_at", "sequence", "visitor_moves", "is_proved"),
        *("service_id", "service_name", "resource_id", "resource_name", "client_id"),
        *("starts_at", "ends_at", "timezone", "duration_min"),
        *("buffer_before_min", "buffer_after_min"),
        *("price", "due", "paid", "payment_ids", "paid_by", "has_lapsed"),
        *("refund_until_min", "refundable_until", "visit", "visit_buffers"),
    }

    @property
    def visit_id(self) -> str | None:
        """The id of the first booking of its visit, which has the money and the links of all."""
        return self.visit[0] if self.visit else None

    @property
    def latest_payment_id(self) -> str | None:
        return self.payment_ids[-1] if self.payment_ids else None

    @property
    def is_payable(self) -> bool:
        """Whether the client can pay the booking now, if the workspace takes payments."""
        expires = self.hold_expires_at
        now = clock.now()
        is_held = self.status == "pending_payment" and (expires is None or expires > now)
        return is_held and self.starts_at > now and bool(self.due) and self.paid_by is None

    @property
    def refund_limit(self) -> datetime:
        # Until when the client's cancellation is refunded.
        return self.refundable_until or self.refund_limit_by_start

    @property
    def refund_limit_by_start(self) -> datetime:
        # Until when a cancellation would be refunded if the client chose the start now.
        starts_at: datetime = self.starts_at
        return starts_at - timedelta(minutes=int(self.refund_until_min or 0))

    @property
    def is_unproved(self) -> bool:
        # Somebody who has proved nothing has typed the address. A payment is a proof.
        return self.source in VISITOR_SOURCES and not self.is_proved and self.paid_by is None

    @property
    def blocks(self) -> bool:
        # For an unpaid booking, that ends with its hold.
        return self.status in BLOCKING

    @property
    def busy(self) -> BusyEntry:
        # The entry in its resource's calendar while it blocks.
        before, after = self.visit_buffers or (self.buffer_before_min, self.buffer_after_min)
        return BusyEntry(
            self.id,
            epoch_ms(self.starts_at),
            epoch_ms(self.ends_at),
            int(before),
            int(after),
            epoch_ms(self.hold_expires_at) if self.hold_expires_at else None,
        )

    @property
    def widest(self) -> Span:
        # What its resource may keep free for it, whatever the other bookings of a visit are.
        before, after = int(self.buffer_before_min), int(self.buffer_after_min)
        own = self.busy._replace(buffer_before_min=before, buffer_after_min=after).buffered
        kept = self.busy.buffered
        return Span(min(own.start, kept.start), max(own.end, kept.end))


def _hold_expired(old_row: BookingRow | None, new_row: BookingRow) -> bool:
    return (
        old_row is not None
        and (old_row.status, new_row.status) == ("pending_payment", "cancelled")
        and old_row.hold_expires_at is not None
        and old_row.hold_expires_at <= clock.now()
    )


def _is_paid(old_row: BookingRow | None, new_row: BookingRow) -> bool:
    # A reactivated booking may become unpaid again.
    return (
        old_row is not None and new_row.paid_by is not None and old_row.paid_by != new_row.paid_by
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
            phones.searched_text(booking.client_phone, entered=booking.phone_entered),
            booking.phone_digits or "",
        ],
        sorts={"startAt": "n1", "createdAt": "id"},
        status="status",
        facets=("service_id", "resource_id", "client_id"),
        counted=("service_id", "resource_id"),
        partitioned=("client_id", "resource_id", "service_id"),
        numbers=("starts_at", "ends_at"),
        price="price",
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
            "booking.paid": _is_paid,
            "booking.moved": changes("starts_at", "resource_id"),
            "booking.status_changed": changes("status"),
            "booking.hold_expired": _hold_expired,
        },
    )
)


class EventRow(HistoryRow):
    """An entry of a booking's history."""

    noun = "BOOKING"

    status = UnicodeAttribute()
    reason = UnicodeAttribute(null=True)
    move: JsonAttribute = JsonAttribute(null=True)  # previous and new place
    # Kind, state and reason of an e-mail to the client.
    mail: JsonAttribute = JsonAttribute(null=True)
    # ``amount`` in minor units and ``method`` of a payment at the visit.
    noted: JsonAttribute = JsonAttribute(null=True)

    # A reason may contain a client's name. The others have ids, times and words of fixed lists.
    kept_when_erased = HistoryRow.kept_when_erased | {"status", "move", "mail", "noted"}


def read_with_history(unit: UnitOfWork, booking_id: str) -> tuple[BookingRow, list[EventRow]]:
    """Return a booking and its history, read side by side, or raise NotFoundError.

    The booking is that of the unit's rows, so what has been checked before is what is returned.
    """
    workspace_id = unit.workspace_id
    key = BOOKINGS.key(workspace_id, record_id=booking_id)
    with deadline.side_by_side() as start:
        events = start(lambda: EventRow.newest(workspace_id, record_id=booking_id))
        return BOOKINGS.found(unit.rows.find(BookingRow, key)), events.result()


def visit_of(workspace_id: str, booking: BookingRow, rows: Rows | None = None) -> list[BookingRow]:
    """Return the bookings of a visit in order. Of a booking of one service, nothing is read."""
    others = [booking_id for booking_id in booking.visit or () if booking_id != booking.id]
    keys = (BOOKINGS.key(workspace_id, record_id=booking_id) for booking_id in others)
    read = (rows or Rows()).fetch(keys) if others else []
    by_id = {row.id: row for row in read if isinstance(row, BookingRow)} | {booking.id: booking}
    return [by_id[each] for each in booking.visit or [booking.id] if each in by_id]


def first_of(workspace_id: str, booking: BookingRow) -> BookingRow:
    """Return the booking that has the money and the links of a visit: the first one."""
    if booking.visit_id in {None, booking.id}:
        return booking
    return BOOKINGS.find(workspace_id, record_id=booking.visit_id) or booking


class VisitFacts(NamedTuple):
    """A visit as one: its services and people in words, and its sum."""

    services: str
    resources: str
    starts_at: datetime
    ends_at: datetime
    price: int


def facts_of(visit: Sequence[BookingRow]) -> VisitFacts:
    """Return what several bookings of a visit, or a single booking, are together."""
    return VisitFacts(
        ", ".join(each.service_name for each in visit),
        ", ".join(dict.fromkeys(each.resource_name for each in visit)),
        visit[0].starts_at,
        visit[-1].ends_at,
        sum(int(each.price) for each in visit),
    )


def ids_by_visit(workspace_id: str, ids: Iterable[str]) -> list[list[str]]:
    """Group bookings by their visits, each in its order. For a single booking, nothing is read."""
    found = list(dict.fromkeys(ids))
    if len(found) <= 1:
        return [[booking_id] for booking_id in found]
    visits = {row.id: row.visit or [row.id] for row in BOOKINGS.fetch(workspace_id, found)}
    groups = {
        tuple(each for each in visits.get(booking_id, [booking_id]) if each in found)
        for booking_id in found
    }
    return sorted(map(list, groups), key=lambda group: found.index(group[0]))


def has_taken_place(visit: Sequence[BookingRow]) -> bool:
    """Return whether a booking of a visit took place, and none is still to come."""
    statuses = {each.status for each in visit}
    return "completed" in statuses and statuses.isdisjoint(UPCOMING)


def new_event(  # noqa: PLR0913  the parts of an entry
    unit: UnitOfWork,
    booking: BookingRow,
    by: str,
    *,
    reason: str | None = None,
    move: dict[str, Any] | None = None,
    noted: dict[str, Any] | None = None,
) -> EventRow:
    """Stage and return an entry of a booking's history, with the current status and its author."""
    event = EventRow.new(
        unit.workspace_id,
        record_id=booking.id,
        by=by,
        status=booking.status,
        reason=reason,
        move=move,
        noted=noted,
    )
    unit.create(event)
    return event


def mail_entry(
    workspace_id: str, booking: BookingRow, mail_id: str, **mail: str | None
) -> EventRow:
    """Return the entry of an e-mail to the client, to save. An e-mail has one entry, the latest."""
    entry = EventRow.new(
        workspace_id, record_id=booking.id, by="job", status=booking.status, mail=mail
    )
    entry.sk = group(booking.id) + mail_id
    return entry


def is_upcoming(booking: BookingRow) -> bool:
    """Return whether a booking has not begun. A booking with an expired hold does not count."""
    now, expires = clock.now(), booking.hold_expires_at
    has_expired = expires is not None and expires <= now
    return booking.status in UPCOMING and booking.starts_at > now and not has_expired


def upcoming(workspace_id: str, ids: Iterable[str], rows: Rows) -> list[BookingRow]:
    """Return the bookings with these ids that have not begun."""
    booking_rows = rows.fetch(
        BOOKINGS.key(workspace_id, record_id=booking_id) for booking_id in ids
    )
    return [row for row in booking_rows if isinstance(row, BookingRow) and is_upcoming(row)]
