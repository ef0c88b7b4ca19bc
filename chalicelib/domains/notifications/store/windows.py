"""Limit messages of one kind to ten per member in ten minutes, and combine the others."""

from datetime import UTC, datetime, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeSetAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import size

from chalicelib.core import clock
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.tables import ControlRow

LENGTH = timedelta(minutes=10)
MOST = 10
"""Messages of a window that are sent as they are."""
KEPT_FOR = timedelta(days=2)


class WindowRow(ControlRow):
    """A window. ``sent`` has the ids of its messages, and ``more`` counts those held back.

    ``told`` counts the held messages that a message has reported.
    """

    sent: UnicodeSetAttribute = UnicodeSetAttribute(null=True)
    more = NumberAttribute(default=0)
    told = NumberAttribute(default=0)


def end(at: datetime) -> datetime:
    """Return the end of the window that a time is in."""
    seconds = int(LENGTH.total_seconds())
    return datetime.fromtimestamp((int(at.timestamp()) // seconds + 1) * seconds, UTC)


def admit(name: str, at: datetime, message_id: str) -> bool:
    """Return whether a message is among the first of its window. A repeated call agrees.

    Raises:
        UnavailableError: the database is unavailable.
    """
    is_free = WindowRow.sent.does_not_exist() | (size(WindowRow.sent) < MOST)  # type: ignore[no-untyped-call]  # PynamoDB's own function
    try:
        _row(name, at).update(
            [WindowRow.sent.add({message_id}), WindowRow.expires.set(clock.now() + KEPT_FOR)],
            # A job that runs again finds its own message in the window, and is admitted again.
            condition=is_free | WindowRow.sent.contains(message_id),
        )
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return False
    return True


def hold_back(name: str, at: datetime) -> None:
    """Count a message that is held back. A repeated call counts it again.

    Raises:
        UnavailableError: the database is unavailable.
    """
    try:
        _row(name, at).update([WindowRow.more.add(1)])
    except UpdateError as error:
        raise_failure(error)


def held_back(name: str, at: datetime) -> tuple[int, int]:
    """Return how many of the messages held back are unreported, and how many there are in all."""
    row = _row(name, at)
    window = WindowRow.find(row.pk, row.sk) or row
    return int(window.more) - int(window.told), int(window.more)


def record_reported(name: str, at: datetime, count: int) -> None:
    """Record how many of the messages that were held back have been reported.

    Raises:
        UnavailableError: the database is unavailable.
    """
    try:
        _row(name, at).update([WindowRow.told.set(count)])
    except UpdateError as error:
        raise_failure(error)


def _row(name: str, at: datetime) -> WindowRow:
    return WindowRow(name, end(at).isoformat())
