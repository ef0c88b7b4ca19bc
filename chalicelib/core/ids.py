"""Identifiers that are opaque to clients and ordered by time for the database."""

import re
from datetime import datetime

from chalicelib.core import clock

_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
"""26 characters of Crockford's Base32."""


def new_id(moment: datetime | None = None) -> str:
    """Return a new 26-character ULID. Ids sort by the millisecond of ``moment``, or of now.

    >>> len(new_id())
    26
    """
    from ulid import ULID  # saves cold starts for reads 40 ms

    return str(ULID.from_timestamp((moment or clock.now()).timestamp()))


def moment_of(record_id: str) -> datetime:
    """Return the millisecond at which an id was created."""
    from ulid import ULID

    return clock.moment_at(ULID.from_str(record_id).milliseconds)


def first_id_at(moment: datetime) -> str:
    """Return the lowest id that a record created at a moment can have."""
    from ulid import ULID

    # A ULID has 48 bits of milliseconds and 80 random bits, which are zero in the lowest id.
    return str(ULID.from_bytes(clock.epoch_ms(moment).to_bytes(6) + bytes(10)))


def is_id(text: str) -> bool:
    """Whether a string has the form of an id.

    >>> is_id(new_id()), is_id("create")
    (True, False)
    """
    return _ID.fullmatch(text) is not None
