"""The failed calls of keys and connected apps: at most 60 an hour of each, kept for 7 days.

An hour of a key has ``MAX_PER_HOUR`` numbered slots, and a failed call takes a free one. So one
conditional write both counts and stores a failure, and no row is written by every failure.
"""

import logging
import random
from datetime import datetime, timedelta
from typing import NamedTuple

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import PutError

from chalicelib.core import clock, deadline
from chalicelib.core.ids import first_id_at, moment_of, new_id
from chalicelib.engine.connection import CONDITION_FAILED, error_code
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import ControlRow

KEY_ERRORS = "#KEY-ERRORS#"  # in the partition keys, between the workspace and the key
MAX_PER_HOUR = 60
RETENTION = timedelta(days=7)
# Slots that a failure tries. All but the first are free when they are read, so another try is
# needed only if several failures take the same slot at once.
_TRIES = 5
_SECONDS = 1.0  # A request to the database may start within this time.
log = logging.getLogger(__name__)
# Keys whose slots of an hour are all taken, as this process has seen. A storm of failures then
# costs nothing more.
_full: set[tuple[str, str]] = set()


class KeyErrorRow(ControlRow):
    """A failed call. It has nothing that the caller has sent."""

    error_id = UnicodeAttribute()
    at = UTCDateTimeAttribute()
    operation = UnicodeAttribute()
    route = UnicodeAttribute()  # the method, and the path with the names of its parameters
    tool = UnicodeAttribute(null=True)
    status = NumberAttribute()
    code = UnicodeAttribute()
    key = UnicodeAttribute(null=True)  # the reason, a fixed word
    request_id = UnicodeAttribute()


class FailedCall(NamedTuple):
    operation: str
    route: str
    tool: str | None
    status: int
    code: str
    key: str | None
    request_id: str


class ErrorPage(NamedTuple):
    """Failed calls, newest first; ``before`` is the argument of ``page`` for the next page."""

    rows: list[KeyErrorRow]
    before: str | None


def add(workspace_id: str, *, key_id: str, call: FailedCall) -> None:
    """Store a failed call of a key, unless the key has 60 in this hour. Never raises an error."""
    try:
        # The response waits for it: on Lambda, nothing runs after the response.
        with deadline.within(deadline.remaining(_SECONDS)):
            _add(_partition(workspace_id, key_id=key_id), call)
    except Exception:  # the answer matters more
        log.warning("a failed call of a key could not be stored", exc_info=True)


def page(workspace_id: str, *, key_id: str, limit: int, before: str | None = None) -> ErrorPage:
    """Return failed calls of a key that are not older than 7 days, newest first."""
    now = clock.now()
    oldest = now - RETENTION  # DynamoDB deletes expired rows late.
    # A position from nowhere may be later than any time that a date can have.
    newest = now if before is None or before > first_id_at(now) else moment_of(before)
    if newest < oldest:
        return ErrorPage([], None)
    items = Partition(_partition(workspace_id, key_id=key_id), Cost(), KeyErrorRow).items(
        # Slots are taken in any order, so the hours of the first and the last row are read whole.
        limit + 2 * MAX_PER_HOUR,
        range_key_condition=KeyErrorRow.sk.between(f"{_hour(oldest)}#", f"{_hour(newest)}#~"),
        scan_index_forward=False,
        consistent_read=True,
    )
    rows = [KeyErrorRow.from_raw_data(item) for item in items]
    rows = [row for row in rows if row.at >= oldest and (before is None or row.error_id < before)]
    rows.sort(key=lambda row: row.error_id, reverse=True)
    return ErrorPage(rows[:limit], rows[limit - 1].error_id if len(rows) > limit else None)


def forget() -> None:
    """Forget which keys have no free slot. For tests, which replace the tables."""
    _full.clear()


def _add(partition: str, call: FailedCall) -> None:
    now = clock.now()
    hour = _hour(now)
    if (partition, hour) in _full:
        return
    free = list(range(MAX_PER_HOUR))
    for _ in range(_TRIES):
        slot = random.choice(free)  # noqa: S311  spreads writers, not a secret
        row = KeyErrorRow(
            partition,
            f"{hour}#{slot:02}",
            error_id=new_id(now),
            at=now,
            expires=now + RETENTION,
            **call._asdict(),
        )
        try:
            row.save(condition=KeyErrorRow.pk.does_not_exist())
        except PutError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
        else:
            return
        taken = _taken(partition, hour)
        free = [slot for slot in free if f"{hour}#{slot:02}" not in taken]
        if not free:
            if not any(of_hour == hour for _, of_hour in _full):
                _full.clear()  # of former hours
            _full.add((partition, hour))
            return
    log.info("a failed call of a key found no free slot")


def _taken(partition: str, hour: str) -> set[str]:
    slots = Partition(partition, Cost(), KeyErrorRow).items(
        range_key_condition=KeyErrorRow.sk.startswith(f"{hour}#"), consistent_read=True
    )
    return {item["sk"]["S"] for item in slots}


def _partition(workspace_id: str, *, key_id: str) -> str:
    return f"W#{workspace_id}{KEY_ERRORS}{key_id}"


def _hour(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H}"
