"""The unit of work on DynamoDB: everything an operation stages is one ``TransactWriteItems``.

Each staged write carries the error its failed condition means. DynamoDB tells failures by position,
so the items are kept in the order PynamoDB sends them: checks, deletes, puts, updates.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from pynamodb.exceptions import TransactWriteError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.transactions import TransactWrite

from chalicelib.core import clock
from chalicelib.core.errors import (
    AppError,
    ConcurrentUpdateError,
    IdempotencyKeyExistsError,
    UnavailableError,
)
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.unit import AuditEvent, IdempotencyRecord, Objects, Unit
from chalicelib.store import audit, counters, idempotency, jobs
from chalicelib.store.listing import Listing
from chalicelib.store.tables import Record, Row, connection, error_code

MAX_ITEMS = 100
"""Items in one transaction (DynamoDB quota); a unit that needs more is a design error."""

LONGER_THAN_KEYS = 256
"""More characters than an idempotency key of a caller has."""

LISTINGS: dict[type[Row], Listing[Any]] = {}
"""The listing of each noun's row class; nouns register theirs with ``listed``."""

Stage = Callable[[TransactWrite], None]
R = TypeVar("R", bound=Record)
T = TypeVar("T")

log = logging.getLogger(__name__)


def listed(listing: Listing[R]) -> Listing[R]:
    """Register a noun's listing, so that units stamp and count its records."""
    LISTINGS[listing.row] = listing
    return listing


@dataclass
class UnitOfWork:
    """See ``core.unit.Unit``.

    ``request_id`` owns the idempotency marks that the unit sets; ``objects`` takes results that are
    too large for a row.
    """

    workspace_id: str
    request_id: str
    objects: Callable[[], Objects] | None = None
    _checks: list[tuple[Stage, Exception | None]] = field(default_factory=list)
    _deletes: list[tuple[Stage, Exception | None]] = field(default_factory=list)
    _puts: list[tuple[Stage, Exception | None]] = field(default_factory=list)
    _updates: list[tuple[Stage, Exception | None]] = field(default_factory=list)
    _counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _resource: str = ""
    _change: AuditEvent | None = None
    _replay: IdempotencyRecord | None = None
    _after_commit: list[Callable[[], object]] = field(default_factory=list)
    _on_failure: list[Callable[[], object]] = field(default_factory=list)
    _effects: dict[str, Any] = field(default_factory=dict)

    def begin(
        self, change: AuditEvent | None = None, replay: IdempotencyRecord | None = None
    ) -> None:
        """Forget what was staged; remember for what the unit works."""
        self._change, self._replay = change, replay
        for staged in (self._checks, self._deletes, self._puts, self._updates, self._after_commit):
            staged.clear()
        self._counts.clear()
        self._resource = ""

    def create(self, row: Row, *, on_conflict: AppError | None = None) -> None:
        """Stage a new row; if one with its key exists at commit, ``otherwise`` is raised."""
        self._set_index_keys(row)
        self._puts.append((lambda t: t.save(row, condition=Row.pk.does_not_exist()), on_conflict))

    def save(self, row: Row) -> None:
        """Stage a row's new state."""
        self._uncount(row)
        self._set_index_keys(row)
        self._puts.append((lambda t: t.save(row), None))

    def update(
        self,
        row: Row,
        actions: list[Action],
        condition: Condition | None = None,
        *,
        on_conflict: AppError | None = None,
    ) -> None:
        """Stage changes to single attributes of a row, which must exist or meet a condition."""
        demand = Row.pk.exists() if condition is None else condition
        self._name(row)
        self._updates.append((lambda t: t.update(row, actions, condition=demand), on_conflict))

    def delete(self, row: Row, *, if_there: bool = False) -> None:
        """Stage a row's removal; one without a version may be demanded to be there at commit."""
        self._uncount(row)
        self._name(row)
        demand = Row.pk.exists() if if_there else None
        self._deletes.append((lambda t: t.delete(row, condition=demand), None))

    def soft_delete(self, record: Record, *, until: datetime) -> None:
        """Stage a soft deletion: the record moves to its noun's trash and expires there."""
        listing = LISTINGS[type(record)]
        values = {
            k: v for k, v in record.attribute_values.items() if k not in {"pk", "version", "r"}
        }
        kept = type(record)(listing.trash(self.workspace_id), **values | {"expires": until})
        self.delete(record)
        self._puts.append((lambda t: t.save(kept), None))

    def require(
        self, row: Row, condition: Condition | None = None, *, on_conflict: AppError | None = None
    ) -> None:
        """Demand that a row still exists at commit, or still meets a condition."""
        demand = Row.pk.exists() if condition is None else condition
        self._checks.append(
            (lambda t: t.condition_check(type(row), row.pk, row.sk, demand), on_conflict)
        )

    def run_side_effect_once(self, name: str, effect: Callable[[], T]) -> T:
        """Run an outside effect on the first call and return its result on every later one."""
        if name not in self._effects:
            self._effects[name] = effect()
        result: T = self._effects[name]
        return result

    def commit_batch(self, name: str, stage: Callable[[Unit], bytes]) -> bytes:
        """Commit a part of the operation by itself, once."""
        return self.run_side_effect_once(name, lambda: self._commit_batch(name, stage))

    def _commit_batch(self, name: str, stage: Callable[[Unit], bytes]) -> bytes:
        # The key is longer than any that a caller may send, and so never the same.
        whole = self._replay
        kept = whole and replace(whole, key=whole.key.ljust(LONGER_THAN_KEYS) + name)

        def attempt() -> bytes:
            part = UnitOfWork(self.workspace_id, self.request_id)
            outcome = stage(part)
            part.commit(self._change, kept and replace(kept, body=outcome))
            return outcome

        try:
            return retry_on_conflict(attempt)
        except IdempotencyKeyExistsError:
            if kept is None:
                raise
            return kept.answer(self.find_idempotency_record(kept.key))

    def after_commit(self, action: Callable[[], object]) -> None:
        """Run an action after the commit.

        What it raises is logged, since the change is made by then.
        """
        self._after_commit.append(action)

    def on_failure(self, action: Callable[[], object]) -> None:
        """Run an action if the operation fails for good."""
        self._on_failure.append(action)

    def fail(self) -> None:
        """Run and forget the ``on_failure`` actions."""
        self._run(self._on_failure)

    def commit(
        self, change: AuditEvent | None = None, replay: IdempotencyRecord | None = None
    ) -> None:
        """Write everything in one transaction, with the audit record and the stored result.

        Raises:
            AppError: the error of the first write whose condition failed.
            ConcurrentUpdateError: a version, a required row or an idempotency key was changed by
            another writer first.
            UnavailableError: DynamoDB failed after botocore's own retries.
        """
        if self._staged() and change is not None:
            entry = audit.record(self.workspace_id, change, self._resource)
            self._puts.append((lambda t: t.save(entry), None))
        if replay is not None:
            large = self._store_if_large(replay)
            stage = idempotency.keep(self.workspace_id, replay, owner=self.request_id, large=large)
            self._puts.insert(0, (stage, IdempotencyKeyExistsError()))
        for noun, deltas in self._counts.items():
            for shard, additions in counters.shard_updates(self.workspace_id, noun, deltas):
                self._updates.append((partial(_update, shard, additions), None))
        staged = self._staged()
        if staged:
            if len(staged) > MAX_ITEMS:
                msg = f"a unit of work of {len(staged)} items; DynamoDB takes {MAX_ITEMS}"
                raise RuntimeError(msg)
            self._write(staged)
        self._on_failure.clear()
        self._run(self._after_commit)

    def find_idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Return what is kept under an idempotency key."""
        return idempotency.find(self.workspace_id, key, self._object)

    def mark_in_progress(self, replay: IdempotencyRecord) -> bool:
        """Mark an idempotency key as in progress."""
        return idempotency.mark_in_progress(self.workspace_id, replay, owner=self.request_id)

    def clear_in_progress(self, key: str) -> None:
        """Drop this unit's in-progress mark."""
        idempotency.clear_in_progress(self.workspace_id, key, owner=self.request_id)

    def _store_if_large(self, replay: IdempotencyRecord) -> bool:
        """Store a large result as an object, removed again a while after it has expired."""
        if self.objects is None or len(replay.body or b"") <= idempotency.MAX_INLINE_BYTES:
            return False
        key, objects = idempotency.object_key(self.workspace_id, self.request_id), self.objects()
        self.on_failure(lambda: objects.delete(key))
        objects.put(key, replay.body or b"", "application/json")
        lapse = clock.now() + idempotency.KEPT + timedelta(hours=1)
        self.create(jobs.row(idempotency.LAPSED, self.workspace_id, {"key": key}, lapse))
        return True

    def _object(self, key: str) -> bytes | None:
        return self.objects().get(key) if self.objects else None

    def _staged(self) -> list[tuple[Stage, Exception | None]]:
        return [*self._checks, *self._deletes, *self._puts, *self._updates]

    def _write(self, staged: list[tuple[Stage, Exception | None]]) -> None:
        transaction = TransactWrite(connection=connection(), client_request_token=str(uuid4()))
        for stage, _ in staged:
            stage(transaction)
        try:
            transaction._commit()  # noqa: SLF001  what leaving its ``with`` block calls
        except TransactWriteError as error:
            failed = [
                on_conflict or ConcurrentUpdateError()
                for reason, (_, on_conflict) in zip(
                    error.cancellation_reasons, staged, strict=False
                )
                if reason is not None and reason.code == "ConditionalCheckFailed"
            ]
            if failed:
                # A used idempotency key explains the rest: its first call did what now clashes.
                raise min(
                    failed, key=lambda e: not isinstance(e, IdempotencyKeyExistsError)
                ) from None
            if _is_conflict(error):
                raise ConcurrentUpdateError from None
            # DynamoDB may have committed before the answer was lost, so that what was stored
            # outside is in use: an orphan is better than a record that points at nothing.
            self._on_failure.clear()
            raise UnavailableError from error

    def _set_index_keys(self, row: Row) -> None:
        """Set a record's times, revision and compact attributes, and count it.

        Other rows are not listed.
        """
        if (listing := self._listing(row)) and isinstance(row, Record):
            row.updated_at = clock.now()
            row.created_at = row.created_at or row.updated_at
            row.revision = int(row.version or 0) + 1
            listing.set_index_keys(row)
            self._counts[listing.noun].update(listing.counters(row.facets))
        self._name(row)

    def _uncount(self, row: Row) -> None:
        """Take a record out of the counters it was in when it was read."""
        if (listing := self._listing(row)) and isinstance(row, Record):
            self._counts[listing.noun].subtract(listing.counters(row.facets_read))

    def _listing(self, row: Row) -> Listing[Any] | None:
        """Return the listing of a noun's live record.

        Rows of no noun, and those in its trash, have none.
        """
        listing = LISTINGS.get(type(row))
        return listing if listing and row.pk == listing.partition(self.workspace_id) else None

    def _name(self, row: Row) -> None:
        """Remember the first record written as the resource that the audit log names."""
        for listing in () if self._resource else LISTINGS.values():
            if row.pk == listing.partition(self.workspace_id):
                self._resource = f"{listing.noun.lower()}:{row.sk}"

    @staticmethod
    def _run(actions: list[Callable[[], object]]) -> None:
        while actions:
            try:
                actions.pop(0)()
            except Exception:
                log.exception("an action after the unit of work failed")


def _update(row: Row, actions: list[Action], transaction: TransactWrite) -> None:
    transaction.update(row, actions)


def _is_conflict(error: TransactWriteError) -> bool:
    """Whether other writers were in the way: DynamoDB says so per item or for the whole request."""
    codes = {reason.code for reason in error.cancellation_reasons if reason is not None}
    codes.add(error_code(error))
    return bool(
        codes
        & {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
    )
