"""Identifiers: opaque to clients, ordered by time for the database."""

from chalicelib.core import clock


def new_id() -> str:
    """Return a new 26-character ULID. Ids sort by the millisecond they were made in."""
    from ulid import ULID  # noqa: PLC0415  40 ms that a cold start for a read does not pay

    return str(ULID.from_timestamp(clock.now().timestamp()))
