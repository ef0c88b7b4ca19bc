"""Transactions (``TransactWriteItems``), carried out exactly once even if responses are lost."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from chalicelib.core.errors import ConcurrentUpdateError, StorageLimitError, UnavailableError
from chalicelib.core.retry import backoff
from chalicelib.engine.connection import (
    CONFLICTS,
    IN_PROGRESS,
    PARTITION_FULL,
    THROTTLED,
    connection,
    error_code,
    is_unknown,
)
from chalicelib.engine.item_sizes import size_of
from chalicelib.engine.tables import Row

MAX_ITEMS = 100
MAX_BYTES = 4_000_000  # of all items together (DynamoDB quotas: 100 items and 4 MB)
ATTEMPTS = 4
MEASURE_EACH = 100  # One transaction in this many asks for the sizes of its partitions.
# The log line with a size in gigabytes. Its alarms are in ``infra.deploy.stacks.alarms``.
PARTITION_SIZE = "the largest partition of a transaction"

Stage = Callable[[TransactWrite], None]
# The error of a failed condition. A function receives the id of the record that holds a name.
OnConflict = Exception | Callable[[str], Exception] | None
Staged = tuple[Stage, OnConflict]

log = logging.getLogger(__name__)


class TransactionTooLargeError(RuntimeError):
    """A unit of work exceeds the size of one transaction, which is a bug in the operation."""


class OutcomeUnknownError(UnavailableError):
    """Every response was lost. The transaction may have been carried out, or still be running."""

    def __init__(self) -> None:
        super().__init__()
        self.key = "outcome_unknown"
        self.message = (
            "The database did not confirm the change. Repeat the call with the same idempotency "
            "key. Without a key, first check whether the change was made."
        )


def put_stage(row: Row, condition: Condition | None = None) -> Stage:
    """Return the write of a row. If its condition fails, the error includes the stored row."""
    return_values = None if condition is None else "ALL_OLD"
    return lambda t: t.save(row, condition=condition, return_values=return_values)


def delete_stage(row: Row) -> Stage:
    """Return the deletion of a row, which need not exist."""
    return lambda t: t.delete(row)


def update_stage(row: Row, actions: list[Action], condition: Condition | None = None) -> Stage:
    """Return an update of single attributes."""
    return lambda t: t.update(row, actions, condition=condition)


@dataclass(eq=False, repr=False)
class Transaction:
    """The writes of one transaction, each with the error of its failed condition."""

    # DynamoDB reports failures by position, so the writes are kept in the order in which PynamoDB
    # sends them: checks, deletes, puts, updates.
    checks: list[Staged] = field(default_factory=list)
    deletes: list[Staged] = field(default_factory=list)
    puts: list[Staged] = field(default_factory=list)
    updates: list[Staged] = field(default_factory=list)

    @property
    def staged(self) -> list[Staged]:
        return [*self.checks, *self.deletes, *self.puts, *self.updates]

    def commit(self, marker: Row | None) -> None:
        """Carry out all writes or none.

        ``marker`` is a row with a key of its own that exists if and only if the transaction was
        carried out, so it can be sent again after a lost response, even on a database without
        request tokens. Without a marker, it is sent once.

        Raises:
            AppError: the error of the first write whose condition failed.
            ConcurrentUpdateError: another writer was first.
            StorageLimitError: a partition is full.
            OutcomeUnknownError: DynamoDB did not respond to any attempt.
            UnavailableError: DynamoDB refused temporarily; nothing was carried out.
            TransactionTooLargeError: the writes exceed DynamoDB's limits.
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
                _log_size(request._commit())  # noqa: SLF001  leaving its ``with`` block calls it
            except TransactWriteError as error:
                failed = _failed_conditions(error, errors)
                if any(isinstance(error, _CarriedOutError) for error in failed):
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
        token = uuid4()
        request = TransactWrite(
            connection=connection(),
            # DynamoDB carries out a request with a known token only once, for ten minutes.
            client_request_token=str(token),
            return_item_collection_metrics="SIZE" if _is_measured(token) else None,
        )
        for stages in (self.checks, self.deletes, self.puts):
            for stage, _ in stages:
                stage(request)
        if marker is not None:
            request.save(marker, condition=Row.pk.does_not_exist())
        for stage, _ in self.updates:
            stage(request)
        return request


def _is_measured(token: UUID) -> bool:
    return token.int % MEASURE_EACH == 0


def _log_size(answer: dict[str, Any]) -> None:
    # DynamoDB estimates a lower and an upper bound, for tables with local indexes only.
    sizes = [
        (collection["SizeEstimateRangeGB"][-1], collection["ItemCollectionKey"]["pk"]["S"])
        for table in (answer.get("ItemCollectionMetrics") or {}).values()
        for collection in table
    ]
    if sizes:
        gigabytes, partition = max(sizes)
        log.info(PARTITION_SIZE, extra={"gigabytes": gigabytes, "partition": partition})


class _CarriedOutError(Exception):
    """The marker exists, because an earlier attempt of the same transaction was carried out."""


def _failed_conditions(error: TransactWriteError, errors: list[OnConflict]) -> list[Exception]:
    return [
        _conflict_error(on_conflict, reason.raw_item)
        # DynamoDB gives no reasons if it refuses the request as a whole.
        for reason, on_conflict in zip(error.cancellation_reasons, errors, strict=False)
        if reason is not None and reason.code == "ConditionalCheckFailed"
    ]


def _conflict_error(on_conflict: OnConflict, existing: dict[str, Any] | None) -> Exception:
    if on_conflict is None or isinstance(on_conflict, Exception):
        return on_conflict or ConcurrentUpdateError()
    return on_conflict(existing["target"]["S"]) if existing else ConcurrentUpdateError()


def _raise_if_final(error: TransactWriteError, failed: list[Exception], *, unknown: bool) -> None:
    if failed:
        raise min(failed, key=lambda error: getattr(error, "precedence", 1)) from None
    codes = {reason.code for reason in error.cancellation_reasons if reason is not None}
    codes.add(error_code(error))
    if codes & PARTITION_FULL:
        raise StorageLimitError from error
    # A conflict requires fresh reads and another transaction. But if an earlier attempt may have
    # been carried out, the same transaction must be sent again first.
    if codes & CONFLICTS and not unknown:
        raise ConcurrentUpdateError from error
    if not is_unknown(error) and not codes & {*THROTTLED, *CONFLICTS, IN_PROGRESS}:
        raise error  # AWS's validation errors are bugs of this service


def _adopt_versions(request: TransactWrite) -> None:
    # The response that was lost would have set the versions.
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
