"""Identifiers: opaque to clients, ordered by time for the database."""

from ulid import ULID

from chalicelib.core import clock


def new_id() -> str:
    """Return a new 26-character ULID. Ids sort by the millisecond they were made in."""
    return str(ULID.from_timestamp(clock.now().timestamp()))
