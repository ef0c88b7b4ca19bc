"""Decide when a client who has agreed to advertising is asked to book again (ADR 140)."""

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chalicelib.core import clock
from chalicelib.lib import zoned_times

# E-mail that advertises is sent between these hours of the business.
FIRST_HOUR, END_HOUR = 10, 19
# An e-mail that could not be sent for this long is of no use. It may wait for the next morning.
LONGEST_WAIT = timedelta(days=3)


class Visit(NamedTuple):
    """What decides of a booking."""

    id: str
    status: str
    blocks: bool  # Its status occupies its time.
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    # The business has made the booking, or the client has paid it or booked by the link in an
    # e-mail to the address. Nobody has proved another booking's address.
    is_proved: bool
    address: str | None = None  # in normal form


class Consent(NamedTuple):
    """An agreement that is not withdrawn, for an address, given with a booking."""

    address: str  # in normal form
    booking_id: str


def due_at(ended_at: datetime, days: int, timezone: str) -> datetime:
    """Return when a client is asked: days after a visit, at its time of day or near to it."""
    return in_hours(zoned_times.moment_days_later(ended_at, days, timezone), timezone)


def in_hours(moment: datetime, timezone: str) -> datetime:
    """Return the first moment from this one on in which e-mail that advertises may be sent."""
    local = moment.astimezone(ZoneInfo(timezone))
    if FIRST_HOUR <= local.hour < END_HOUR:
        return moment
    day = local.date() + timedelta(days=1 if local.hour >= END_HOUR else 0)
    return clock.moment_of(datetime.combine(day, time(FIRST_HOUR)), timezone)


def consent_to_use(
    visit: Visit,
    bookings: Iterable[Visit],
    consents: Iterable[Consent],
    *,
    client_address: str | None,
    now: datetime,
) -> Consent | None:
    """Return the consent by which the client of a visit may be asked to book again, or None.

    ``bookings`` are the client's, with those of the consents. ``client_address`` is the client's
    own, if it has one. All addresses are in normal form.
    """
    if not _has_taken_place(visit, now) or visit.address is None:
        return None
    if client_address not in {None, visit.address}:
        return None  # The business has entered another address since.
    by_id = {booking.id: booking for booking in bookings}
    if any(_is_later(booking, visit) for booking in by_id.values()):
        return None
    return next(
        (
            consent
            for consent in consents
            if consent.address == visit.address
            and consent.booking_id in by_id
            and _proves(by_id[consent.booking_id])
        ),
        None,
    )


def _has_taken_place(visit: Visit, now: datetime) -> bool:
    # Few businesses set each visit to completed, so a confirmed one counts when it is over.
    return visit.status in {"confirmed", "completed"} and visit.ends_at <= now


def _is_later(booking: Visit, visit: Visit) -> bool:
    if booking.id == visit.id:
        return False
    has_booked_since = booking.created_at > visit.ends_at
    return has_booked_since or (booking.blocks and booking.starts_at > visit.starts_at)


def _proves(booking: Visit) -> bool:
    # Anybody can type another person's address and tick the box. Who came has typed their own.
    return booking.status == "completed" or booking.is_proved
