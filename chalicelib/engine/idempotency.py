"""Answers kept under idempotency keys for 24 hours, per principal and operation (data.md, Writing).

A record, once it has an answer, is never overwritten nor removed by the call that made it.
"""

import hashlib
import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from pynamodb.attributes import BinaryAttribute, UnicodeAttribute
from pynamodb.exceptions import DeleteError, PutError
from pynamodb.expressions.condition import Condition

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.tables import ControlRow

KEPT = timedelta(hours=24)
IN_PROGRESS_FOR = timedelta(minutes=2)
"""How long a mark outlives a crashed call; longer than any Lambda behind API Gateway may run."""

MAX_INLINE_BYTES = 100_000
"""Of an answer that is kept in its row, which ends at 400 KB; a larger one is an object."""
SORT_KEY = "-"

log = logging.getLogger(__name__)


class IdempotencyRow(ControlRow):
    """An answer, or the mark of a call that is still running (neither body nor object yet)."""

    fingerprint = UnicodeAttribute()
    owner = UnicodeAttribute()
    body = BinaryAttribute(null=True, legacy_encoding=False)
    object_key = UnicodeAttribute(null=True)


def _partition(tenant: str, record: IdempotencyRecord) -> str:
    """Return where a record is: by a hash, since a caller's key may have any characters."""
    name = hashlib.sha256(f"{record.scope}\0{record.key}".encode()).hexdigest()
    return f"W#{tenant}#IDEMPOTENCY#{name}"


def row(
    tenant: str, record: IdempotencyRecord, *, owner: str, kept: timedelta = KEPT
) -> IdempotencyRow:
    """Return the row of an answer, or of a mark."""
    return IdempotencyRow(
        _partition(tenant, record),
        SORT_KEY,
        fingerprint=record.fingerprint,
        owner=owner,
        body=record.body,
        object_key=record.object_key,
        expires=clock.now() + kept,
    )


def is_free_for(owner: str) -> Condition:
    """Nobody holds the key.

    Never used, expired (time-to-live is lazy), or merely marked by this very request.
    """
    expired = IdempotencyRow.expires < clock.now()
    free: Condition = IdempotencyRow.pk.does_not_exist() | expired | _is_mark_of(owner)
    return free


def _is_mark_of(owner: str) -> Condition:
    row = IdempotencyRow
    unanswered = row.body.does_not_exist() & row.object_key.does_not_exist()
    mark: Condition = unanswered & (row.owner == owner)
    return mark


def find(tenant: str, record: IdempotencyRecord) -> IdempotencyRecord | None:
    """Return what is kept under a key, unless it has expired."""
    row = IdempotencyRow.find(_partition(tenant, record), SORT_KEY)
    if row is None or (row.expires is not None and row.expires < clock.now()):
        return None
    return replace(record, fingerprint=row.fingerprint, body=row.body, object_key=row.object_key)


def mark_in_progress(
    tenant: str, record: IdempotencyRecord, *, owner: str, kept: timedelta = IN_PROGRESS_FOR
) -> bool:
    """Mark a key as in progress, for so long at most; False if it is held already."""
    mark = row(tenant, record, owner=owner, kept=kept)
    try:
        mark.save(condition=is_free_for(owner))
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return False
        raise_failure(error)
    return True


def clear_in_progress(tenant: str, record: IdempotencyRecord, *, owner: str) -> None:
    """Drop the mark that this owner set; an answer that has taken its place stays.

    A mark that cannot be dropped now expires: that must not hide what the call failed with.
    """
    try:
        IdempotencyRow(_partition(tenant, record), SORT_KEY).delete(condition=_is_mark_of(owner))
    except (DeleteError, UnavailableError) as error:
        if error_code(error) != CONDITION_FAILED:
            log.warning("a mark stays until it expires", exc_info=True)


def answers_naming(tenant: str, words: Collection[str]) -> list[IdempotencyRow]:
    """Return the stored answers that name any of some words, such as ids.

    For the operator alone: it reads the whole table, which nothing else does.
    """
    found = IdempotencyRow.scan(IdempotencyRow.pk.startswith(f"W#{tenant}#IDEMPOTENCY#"))
    wanted = [each.encode() for each in words]
    with reaching():
        return [row for row in found if any(each in (row.body or b"") for each in wanted)]


def forget_answers(answers: Collection[IdempotencyRow]) -> None:
    """Remove stored answers."""
    with reaching():
        for answer in answers:
            answer.delete()
