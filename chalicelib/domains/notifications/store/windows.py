"""Limit messages of one kind to ten per member in ten minutes, and combine the others.

After a hundred messages of a day, all others of an hour are combined, so that a visitor who books
and moves without end does not fill a mailbox.
"""

from datetime import UTC, datetime, timedelta

from pynamodb.attributes import NumberAttribute, UnicodeSetAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import size

from chalicelib.core import clock
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.tables import ControlRow

SHORT, LONG = timedelta(minutes=10), timedelta(hours=1)
"""Lengths of the windows whose messages are combined. The long ones begin after a busy day's."""
MOST, MOST_A_DAY = 10, 100
"""Messages of a short window and of a day in UTC that are sent as they are."""
KEPT_FOR = timedelta(days=2)


class WindowRow(ControlRow):
    """A window of ten minutes or an hour, or a day, in which a member gets messages of one kind."""

    sent: UnicodeSetAttribute = UnicodeSetAttribute(null=True)  # ids of its messages
    more = NumberAttribute(default=0)  # number of messages held back
    told = NumberAttribute(default=0)  # number of those that a message has reported


def end(at: datetime, length: timedelta) -> datetime:
    """Return the end of the window of a length that a time is in."""
    seconds = int(length.total_seconds())
    return datetime.fromtimestamp((int(at.timestamp()) // seconds + 1) * seconds, UTC)


def length_at(name: str, at: datetime) -> timedelta:
    """Return the length of the window in which a message is combined with others.

    Messages at the same time may each find the day just below its limit, and exceed it by a few.
    """
    day = _day(name, at)
    row = WindowRow.find(day.pk, day.sk)
    return LONG if row is not None and row.more >= MOST_A_DAY else SHORT


def admit(name: str, at: datetime, message_id: str, length: timedelta) -> bool:
    """Return whether a message is among the first of its window. A repeated call agrees.

    No message is among the first of a long window, unless it was one of a short window before.

    Raises:
        UnavailableError: the database is unavailable.
    """
    is_free = WindowRow.sent.does_not_exist() | (size(WindowRow.sent) < MOST)  # type: ignore[no-untyped-call]  # PynamoDB's own function
    has_message = WindowRow.sent.contains(message_id)
    try:
        expires = WindowRow.expires.set(clock.now() + KEPT_FOR)
        _row(name, at, SHORT).update(
            [WindowRow.sent.add({message_id}), expires],
            # A job that runs again finds its own message in the window, and is admitted again.
            condition=has_message if length == LONG else is_free | has_message,
        )
        _day(name, at).update([WindowRow.more.add(1), expires])
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)
        return False
    return True


def hold_back(name: str, at: datetime, length: timedelta) -> None:
    """Count a message that is held back. A repeated call counts it again.

    Raises:
        UnavailableError: the database is unavailable.
    """
    try:
        expires = WindowRow.expires.set(clock.now() + KEPT_FOR)
        _row(name, at, length).update([WindowRow.more.add(1), expires])
    except UpdateError as error:
        raise_failure(error)


def held_back(name: str, at: datetime, length: timedelta) -> tuple[int, int]:
    """Return how many of the messages held back are unreported, and how many there are in all."""
    row = _row(name, at, length)
    window = WindowRow.find(row.pk, row.sk) or row
    return int(window.more) - int(window.told), int(window.more)


def record_reported(name: str, at: datetime, length: timedelta, count: int) -> None:
    """Record how many of the messages that were held back have been reported.

    Raises:
        UnavailableError: the database is unavailable.
    """
    try:
        _row(name, at, length).update([WindowRow.told.set(count)])
    except UpdateError as error:
        raise_failure(error)


def _row(name: str, at: datetime, length: timedelta) -> WindowRow:
    # Windows of both lengths may end at the same time.
    suffix = "" if length == SHORT else "#LONG"
    return WindowRow(name, end(at, length).isoformat() + suffix)


def _day(name: str, at: datetime) -> WindowRow:
    return WindowRow(name, f"DAY#{at.astimezone(UTC).date().isoformat()}")
