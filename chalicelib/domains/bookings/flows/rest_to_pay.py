"""What a client still has to pay at the visit, and the notes of members that it was paid."""

from collections.abc import Iterable
from datetime import datetime

from chalicelib.domains.bookings.store.bookings import BLOCKING, BookingRow, EventRow


def noted_amount(events: Iterable[EventRow]) -> int:
    """Return the amount that members have noted as paid at the visit."""
    return sum(int(event.noted["amount"]) for event in events if event.noted)


def left_to_pay(
    booking: BookingRow, events: Iterable[EventRow], others: Iterable[BookingRow] = ()
) -> int:
    """Return the amount to pay at the visit, 0 if the booking does not take place.

    ``others`` are the other bookings of the visit that a booking is the first of.
    """
    price = sum(int(each.price) for each in (booking, *others) if each.status in BLOCKING)
    if not price:
        return 0
    # What is due in advance, but not paid yet, is not paid at the visit.
    in_advance = booking.due if booking.is_payable else booking.paid
    return max(0, price - int(in_advance or 0) - noted_amount(events))


def is_prepaid(booking: BookingRow) -> bool:
    """Return whether a part of the price is or was to be paid in advance."""
    return bool(booking.due) or booking.paid is not None


def refund_ends_at(booking: BookingRow) -> datetime | None:
    """Return until when a cancellation by the client is refunded, or None without a payment."""
    if booking.refund_until_min is None or not is_prepaid(booking):
        return None
    return booking.refund_limit
