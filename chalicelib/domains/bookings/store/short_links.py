"""Codes of short URLs, which lead to the pages of bookings. SMS contain them."""

from datetime import timedelta

from pynamodb.attributes import UnicodeAttribute

from chalicelib.core.principals import PLATFORM
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import tokens

KEPT_FOR = timedelta(days=30)  # after the end of the booking


class ShortLinkRow(ControlRow):
    """The booking of a code. The row is found by the hash of the code."""

    workspace_id = UnicodeAttribute()
    booking_id = UnicodeAttribute()


def find(code: str) -> ShortLinkRow | None:
    """Return the row of a code, or None."""
    return ShortLinkRow.find(*_key(code))


def stage(unit: UnitOfWork, booking: BookingRow, code: str) -> None:
    """Stage the code of a booking, which may be stored already."""
    row = ShortLinkRow(
        *_key(code),
        workspace_id=unit.tenant,
        booking_id=booking.id,
        expires=booking.ends_at + KEPT_FOR,
    )
    unit.save(row)


def _key(code: str) -> tuple[str, str]:
    return f"W#{PLATFORM}#SHORT-LINK#{tokens.digest(code)}", "-"
