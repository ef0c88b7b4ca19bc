"""Results kept under idempotency keys for 24 hours, per workspace (tools.md, Conventions)."""

from collections.abc import Callable
from datetime import timedelta

from pynamodb.attributes import BinaryAttribute, UnicodeAttribute
from pynamodb.exceptions import DeleteError, PutError
from pynamodb.expressions.condition import Condition
from pynamodb.transactions import TransactWrite

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.store.tables import ControlRow, error_code

KEPT = timedelta(hours=24)
IN_PROGRESS_FOR = timedelta(minutes=2)
"""How long a mark outlives a crashed call; longer than any Lambda behind API Gateway may run."""

MAX_INLINE_BYTES = 100_000
"""Of a result that is kept in its row, which ends at 400 KB; a larger one is an object."""

LAPSED = "replay-lapsed"
"""The due work of removing a large result's object."""

CONDITION_FAILED = "ConditionalCheckFailedException"


class IdempotencyRow(ControlRow):
    """A result, or the mark of a call that is still running (no body yet)."""

    fingerprint = UnicodeAttribute()
    owner = UnicodeAttribute()
    body = BinaryAttribute(null=True, legacy_encoding=False)
    object_key = UnicodeAttribute(null=True)


def _partition(workspace_id: str, key: str) -> str:
    return f"W#{workspace_id}#IDEMPOTENCY#{key}"


SORT_KEY = "-"


def object_key(workspace_id: str, owner: str) -> str:
    """Return the key of the object that holds a large result of a request."""
    return f"{workspace_id}/replays/{owner}.json"


def _row(
    workspace_id: str, replay: IdempotencyRecord, owner: str, kept: timedelta
) -> IdempotencyRow:
    return IdempotencyRow(
        _partition(workspace_id, replay.key),
        SORT_KEY,
        fingerprint=replay.fingerprint,
        owner=owner,
        body=replay.body,
        expires=clock.now() + kept,
    )


def _free_for(owner: str) -> Condition:
    """Nobody holds the key.

    Never used, expired (time-to-live is lazy), or marked by this very request.
    """
    expired = IdempotencyRow.expires < clock.now()
    free: Condition = IdempotencyRow.pk.does_not_exist() | expired | (IdempotencyRow.owner == owner)
    return free


def keep(
    workspace_id: str, replay: IdempotencyRecord, *, owner: str, large: bool = False
) -> Callable[[TransactWrite], None]:
    """Return the staged write of a result; it fails if another call's result is already there.

    A large one's body lies in the object of this owner.
    """
    row = _row(workspace_id, replay, owner, KEPT)
    if large:
        row.body, row.object_key = None, object_key(workspace_id, owner)
    return lambda transaction: transaction.save(row, condition=_free_for(owner))


def find(
    workspace_id: str, key: str, read: Callable[[str], bytes | None]
) -> IdempotencyRecord | None:
    """Return what is kept under a key, unless it has expired; ``read`` gets a large one."""
    row = IdempotencyRow.find(_partition(workspace_id, key), SORT_KEY)
    if row is None or (row.expires is not None and row.expires < clock.now()):
        return None
    if row.object_key is None:
        return IdempotencyRecord(key, row.fingerprint, row.body)
    body = read(row.object_key)
    if body is None:
        raise UnavailableError
    return IdempotencyRecord(key, row.fingerprint, body)


def mark_in_progress(workspace_id: str, replay: IdempotencyRecord, *, owner: str) -> bool:
    """Mark a key as in progress; False if it is held already."""
    try:
        _row(workspace_id, replay, owner, IN_PROGRESS_FOR).save(condition=_free_for(owner))
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return False
        raise UnavailableError from error
    return True


def clear_in_progress(workspace_id: str, key: str, *, owner: str) -> None:
    """Drop the mark that this owner set."""
    try:
        IdempotencyRow(_partition(workspace_id, key), SORT_KEY).delete(
            condition=IdempotencyRow.owner == owner
        )
    except DeleteError as error:
        if error_code(error) != CONDITION_FAILED:
            raise UnavailableError from error
