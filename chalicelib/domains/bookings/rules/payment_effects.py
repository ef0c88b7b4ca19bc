"""Decide what a successful payment does to its booking, by the table in ``docs/payments.md``."""

from datetime import datetime
from enum import Enum
from typing import NamedTuple

# Statuses of an unpaid booking that a member or a key has set by hand.
BY_HAND = frozenset({"confirmed", "completed", "no_show"})


class Effect(Enum):
    """What follows from a payment. The value of a refund is its reason."""

    CONFIRM = "confirm"  # The booking holds its time.
    BOOK_AGAIN = "book_again"  # Confirm it if a new booking could have its time.
    RECORD = "record"  # the money only
    REFUND_CANCELLED = "cancelled"
    REFUND_LATE = "late"
    REFUND_TWICE = "twice"


class PaidBooking(NamedTuple):
    """A booking for which money has arrived."""

    status: str
    starts_at: datetime
    hold_ends_at: datetime | None  # None without a hold
    has_lapsed: bool
    is_paid: bool  # by another payment
    is_erased: bool
    is_free: bool  # Nothing is known which prevents it at its time.


def effect_of(booking: PaidBooking | None, *, paid_at: datetime, now: datetime) -> Effect:  # noqa: PLR0911  a table
    """Return what a payment does. ``booking`` is None if it does not exist any more.

    ``paid_at`` is when the client has paid. The service may hear of it later.
    """
    if booking is None:
        return Effect.REFUND_CANCELLED
    if booking.is_paid:
        return Effect.REFUND_TWICE
    if booking.status in BY_HAND:
        return Effect.RECORD
    # Nothing may bring back a booking of an erased client.
    is_cancelled = booking.status == "cancelled" and not booking.has_lapsed
    if booking.is_erased or is_cancelled:
        return Effect.REFUND_CANCELLED
    if not booking.is_free:
        return Effect.REFUND_LATE
    # The business may have moved the booking to an earlier time since.
    limit = min(booking.hold_ends_at or booking.starts_at, booking.starts_at)
    if booking.status == "pending_payment" and paid_at < limit:
        return Effect.CONFIRM
    return Effect.REFUND_LATE if booking.starts_at <= now else Effect.BOOK_AGAIN
