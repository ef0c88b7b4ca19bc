"""Stored responses of idempotent calls, kept for 24 hours per principal and operation."""

import hashlib
import logging
from collections.abc import Collection
from datetime import timedelta
from functools import partial

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import DeleteError, PutError
from pynamodb.expressions.condition import Condition

from chalicelib.core import clock, deadline
from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JobKind
from chalicelib.core.unit import IdempotencyRecord
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure, reaching
from chalicelib.engine.tables import ControlRow

RETENTION = timedelta(hours=24)
ANSWER_EXPIRED = JobKind("answer-expired")  # the job that removes a large stored response
# A mark outlives a crash. This exceeds the longest Lambda run behind API Gateway.
IN_PROGRESS_FOR = timedelta(minutes=2)

MAX_INLINE_BYTES = 100_000  # Rows hold 400 KB. Larger responses are objects.
SHARDS = 16  # An erasure reads all of a workspace's partitions.
_OK = 200

log = logging.getLogger(__name__)


class IdempotencyRow(ControlRow):
    """A response, without ``status`` if that is 200, or the mark of a call in progress."""

    fingerprint = UnicodeAttribute()
    owner = UnicodeAttribute()
    body = BinaryAttribute(null=True, legacy_encoding=False)
    object_key = UnicodeAttribute(null=True)
    status = NumberAttribute(null=True)


def _partition(tenant: str, *, shard: str) -> str:
    return f"W#{tenant}#IDEMPOTENCY#{shard}"


def _place(tenant: str, record: IdempotencyRecord) -> tuple[str, str]:
    # The name is hashed, because keys may have any characters. The first digit of the hash is the
    # shard, so an erasure finds the responses of a workspace.
    name = hashlib.sha256(f"{record.scope}\0{record.key}".encode()).hexdigest()
    return _partition(tenant, shard=name[0]), name


def row(
    tenant: str, record: IdempotencyRecord, *, owner: str, retention: timedelta = RETENTION
) -> IdempotencyRow:
    """Return the row of a response or of a mark."""
    return IdempotencyRow(
        *_place(tenant, record),
        fingerprint=record.fingerprint,
        owner=owner,
        body=record.body,
        object_key=record.object_key,
        status=None if record.status == _OK else record.status,
        expires=clock.now() + retention,
    )


def is_free_for(owner: str) -> Condition:
    """Return the condition that a key was never used, has expired, or has this request's mark."""
    # DynamoDB deletes expired rows late.
    expired = IdempotencyRow.expires < clock.now()
    free: Condition = IdempotencyRow.pk.does_not_exist() | expired | _is_mark_of(owner)
    return free


def _is_mark_of(owner: str) -> Condition:
    row = IdempotencyRow
    unanswered = row.body.does_not_exist() & row.object_key.does_not_exist()
    mark: Condition = unanswered & (row.owner == owner)
    return mark


def find(tenant: str, record: IdempotencyRecord) -> IdempotencyRecord | None:
    """Return the record stored under a key, unless it has expired."""
    row = IdempotencyRow.find(*_place(tenant, record))
    if row is None or (row.expires is not None and clock.now() > row.expires):
        return None
    status = _OK if row.status is None else int(row.status)
    fields = (row.fingerprint, row.body, row.object_key, status)
    return IdempotencyRecord(record.scope, record.key, *fields)


def mark_in_progress(
    tenant: str, record: IdempotencyRecord, *, owner: str, retention: timedelta = IN_PROGRESS_FOR
) -> bool:
    """Mark a key as in progress for ``retention``. Returns False if the key is not free."""
    mark = row(tenant, record, owner=owner, retention=retention)
    try:
        mark.save(condition=is_free_for(owner))
    except PutError as error:
        if error_code(error) == CONDITION_FAILED:
            return False
        raise_failure(error)
    return True


def clear_in_progress(tenant: str, record: IdempotencyRecord, *, owner: str) -> None:
    """Remove the mark that ``owner`` set, but not a response that has replaced it."""
    try:
        IdempotencyRow(*_place(tenant, record)).delete(condition=_is_mark_of(owner))
    except (DeleteError, UnavailableError) as error:
        if error_code(error) != CONDITION_FAILED:
            # A failure must not hide the error of the call.
            log.warning("a mark stays until it expires", exc_info=True)


def answers_naming(tenant: str, words: Collection[str]) -> list[IdempotencyRow]:
    """Return a tenant's responses with any of some words, such as ids, except those in objects."""
    encoded_words = [word.encode() for word in words]
    with deadline.side_by_side() as start:
        shards = [
            start(partial(IdempotencyRow.partition, _partition(tenant, shard=f"{shard:x}")))
            for shard in range(SHARDS)
        ]
        rows = [row for shard in shards for row in shard.result()]
    return [row for row in rows if any(word in (row.body or b"") for word in encoded_words)]


def forget_answers(answers: Collection[IdempotencyRow]) -> None:
    """Remove stored responses."""
    with reaching():
        for answer in answers:
            answer.delete()
