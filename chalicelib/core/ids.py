"""Identifiers that are opaque to clients and ordered by time for the database."""

from datetime import datetime

from chalicelib.core import clock


def new_id() -> str:
    """Return a new 26-character ULID.

    Ids sort by the millisecond of their creation.

    >>> len(new_id())
    26
    """
    from ulid import ULID  # saves cold starts for reads 40 ms

    return str(ULID.from_timestamp(clock.now().timestamp()))


def first_id_at(moment: datetime) -> str:
    """Return the lowest id that a record created at a moment can have."""
    from ulid import ULID

    # A ULID has 48 bits of milliseconds and 80 random bits, which are zero in the lowest id.
    return str(ULID.from_bytes(clock.epoch_ms(moment).to_bytes(6) + bytes(10)))
