"""Identifiers: opaque to clients, ordered by time for the database."""

from datetime import datetime

from chalicelib.core import clock


def new_id() -> str:
    """Return a new 26-character ULID. Ids sort by the millisecond they were made in."""
    from ulid import ULID  # noqa: PLC0415  40 ms that a cold start for a read does not pay

    return str(ULID.from_timestamp(clock.now().timestamp()))


def first_id_at(moment: datetime) -> str:
    """Return the least id that a record made at a moment can have."""
    from ulid import ULID  # noqa: PLC0415  as above

    return str(ULID.from_bytes(clock.epoch_ms(moment).to_bytes(6) + bytes(10)))
