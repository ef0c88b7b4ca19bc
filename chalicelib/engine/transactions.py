"""One ``TransactWriteItems``, carried out exactly once whatever becomes of its answers.

Each write carries the error that its failed condition means. DynamoDB says failures by position,
so the writes are kept in the order in which PynamoDB sends them: checks, deletes, puts, updates.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError
from chalicelib.core.retry import backoff
from chalicelib.engine.connection import (
    CONFLICTS,
    IN_PROGRESS,
    THROTTLED,
    connection,
    error_code,
    is_unknown,
)
from chalicelib.engine.tables import Row, size_of

MAX_ITEMS = 100
MAX_BYTES = 4_000_000
"""Of one transaction (DynamoDB quotas: 100 items and 4 MB, all items together)."""
ATTEMPTS = 4

Stage = Callable[[TransactWrite], None]
OnConflict = Exception | Callable[[str], Exception] | None
"""The error that a failed condition means; a function makes it of the id that holds a name."""
Staged = tuple[Stage, OnConflict]
"""A write, and the error that its failed condition means."""

log = logging.getLogger(__name__)


class TransactionTooLargeError(RuntimeError):
    """A unit of work passes what one transaction takes: a bug in the operation that staged it."""


class OutcomeUnknownError(UnavailableError):
    """Every answer was lost: the transaction may have been carried out, or may still be."""

    def __init__(self) -> None:
        super().__init__()
        self.message = (
            "The database did not say whether the change was made. Repeat the call with the same "
            "idempotency key, or look before you repeat it without one."
        )


def put_stage(row: Row, condition: Condition | None = None) -> Stage:
    """Return the writing of a row; if the condition fails, the row that is there is told."""
    shown = None if condition is None else "ALL_OLD"
    return lambda t: t.save(row, condition=condition, return_values=shown)


def delete_stage(row: Row) -> Stage:
    """Return the removal of a row, whether it is there or not."""
    return lambda t: t.delete(row)


def update_stage(row: Row, actions: list[Action], condition: Condition | None = None) -> Stage:
    """Return a change of single attributes."""
    return lambda t: t.update(row, actions, condition=condition)


@dataclass
class Transaction:
    """The writes of one transaction, each with the error of its failed condition."""

    checks: list[Staged] = field(default_factory=list)
    deletes: list[Staged] = field(default_factory=list)
    puts: list[Staged] = field(default_factory=list)
    updates: list[Staged] = field(default_factory=list)

    @property
    def staged(self) -> list[Staged]:
        """All writes in the order that they are sent in."""
        return [*self.checks, *self.deletes, *self.puts, *self.updates]

    def commit(self, marker: Row | None) -> None:
        """Carry all writes out, or none.

        ``marker`` is a row with a key of its own that is written with them: it is there if and only
        if they were carried out. So a transaction whose answer was lost can be sent again: if it
        had been carried out, the marker refuses it, on a database that knows no request tokens,
        too. Without a marker it is sent once.

        Raises:
            AppError: the error of the first write whose condition failed.
            ConcurrentUpdateError: another writer was first.
            OutcomeUnknownError: DynamoDB did not answer, however often it was asked.
            UnavailableError: DynamoDB refused for now; nothing was carried out.
            TransactionTooLargeError: more than DynamoDB takes.
        """
        errors: list[OnConflict] = [on_conflict for _, on_conflict in self.staged]
        if marker is not None:
            position = len(self.checks) + len(self.deletes) + len(self.puts)
            errors.insert(position, _CarriedOutError())
        request = self._request(marker)
        _check_size(request, len(errors))
        unknown, last = False, None
        for number in range(ATTEMPTS if marker is not None else 1):
            if last is not None:
                log.warning("a transaction is sent again", exc_info=last)
                backoff(number - 1)
            try:
                request._commit()  # noqa: SLF001  what leaving its ``with`` block calls
            except TransactWriteError as error:
                failed = _failed(error, errors)
                if any(isinstance(each, _CarriedOutError) for each in failed):
                    return _adopt_versions(request)
                unknown, last = unknown or is_unknown(error), error
                _raise_if_final(error, failed, unknown=unknown)
            except UnavailableError:  # the request's time is up
                if not unknown:
                    raise
                break
            else:
                return None
        raise (OutcomeUnknownError if unknown else UnavailableError) from last

    def _request(self, marker: Row | None) -> TransactWrite:
        request = TransactWrite(connection=connection(), client_request_token=str(uuid4()))
        for stages in (self.checks, self.deletes, self.puts):
            for stage, _ in stages:
                stage(request)
        if marker is not None:
            request.save(marker, condition=Row.pk.does_not_exist())
        for stage, _ in self.updates:
            stage(request)
        return request


class _CarriedOutError(Exception):
    """The marker is there: an earlier sending of this very transaction was carried out."""


def _failed(error: TransactWriteError, errors: list[OnConflict]) -> list[Exception]:
    """Return the errors of the writes whose conditions failed."""
    return [
        _meant(on_conflict, reason.raw_item)
        for reason, on_conflict in zip(error.cancellation_reasons, errors, strict=False)
        if reason is not None and reason.code == "ConditionalCheckFailed"
    ]


def _meant(on_conflict: OnConflict, held: dict[str, Any] | None) -> Exception:
    """Return the error of a failed condition on a row, of which is known what is there now."""
    if on_conflict is None or isinstance(on_conflict, Exception):
        return on_conflict or ConcurrentUpdateError()
    return on_conflict(held["target"]["S"]) if held else ConcurrentUpdateError()


def _raise_if_final(error: TransactWriteError, failed: list[Exception], *, unknown: bool) -> None:
    """Raise what a failure means, unless sending the transaction again may help.

    A conflict calls for fresh reads, which make another transaction; but not while an earlier
    sending of this one may have been carried out.
    """
    if failed:
        raise min(failed, key=lambda each: getattr(each, "precedence", 1)) from None
    codes = {reason.code for reason in error.cancellation_reasons if reason is not None}
    codes.add(error_code(error))
    if codes & CONFLICTS and not unknown:
        raise ConcurrentUpdateError from error
    if not is_unknown(error) and not codes & {*THROTTLED, *CONFLICTS, IN_PROGRESS}:
        raise error  # what AWS calls a validation error is a bug of ours


def _adopt_versions(request: TransactWrite) -> None:
    for model in request._models_for_version_attribute_update:  # noqa: SLF001  as a commit does
        model.update_local_version_attribute()


def _check_size(request: TransactWrite, count: int) -> None:
    items = [
        *request._condition_check_items,  # noqa: SLF001  PynamoDB has no public list of them
        *request._delete_items,  # noqa: SLF001
        *request._put_items,  # noqa: SLF001
        *request._update_items,  # noqa: SLF001
    ]
    if count > MAX_ITEMS:
        msg = f"a unit of work of {count} items; DynamoDB takes {MAX_ITEMS}"
        raise TransactionTooLargeError(msg)
    if (size := sum(map(size_of, items))) > MAX_BYTES:
        msg = f"a unit of work of {size:,} bytes; DynamoDB takes {MAX_BYTES:,}"
        raise TransactionTooLargeError(msg)
