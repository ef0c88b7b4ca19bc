"""The unit of work, which commits everything that an operation stages in one transaction."""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from operator import methodcaller
from typing import Any, TypeVar
from uuid import uuid4

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.errors import IdempotencyKeyExistsError
from chalicelib.core.jobs import JOB_HANDLERS, Job, Queue, job_handler
from chalicelib.core.retry import DEFAULT_RETRY_POLICY, RetryPolicy, retry_on_conflict
from chalicelib.core.unit import AuditEvent, IdempotencyRecord
from chalicelib.engine import audit, file_uses, idempotency, jobs, workspace_currency
from chalicelib.engine.events import wake
from chalicelib.engine.events.outbox import Outbox
from chalicelib.engine.file_uses import RAISE
from chalicelib.engine.indexing import (
    LATE_ENTRIES,
    LATE_FILE_USES,
    NO_CLAIM_ERRORS,
    ClaimErrors,
    Indexer,
)
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.index_entries import EntryRow
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.listing.registry import LISTINGS, NOUNS, listing_of
from chalicelib.engine.reading import Rows
from chalicelib.engine.tables import Record, Row
from chalicelib.engine.transactions import (
    MAX_ITEMS,
    OutcomeUnknownError,
    Stage,
    Transaction,
    put_stage,
)

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class UnitOfWork:
    """The writes of one operation for one tenant, committed together or not at all.

    A tenant is a workspace, the platform or, in the ledger, an account. A condition that fails at
    commit raises the ``on_conflict`` error of its write. Without one, ``run_unit`` starts again.

    >>> UnitOfWork("workspace", request_id="request").tenant
    'workspace'
    """

    tenant: str
    request_id: str = field(default_factory=lambda: str(uuid4()))
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY  # A stage may replace it while it runs.
    # What this attempt has read, since its last batch.
    rows: Rows = field(default_factory=Rows)
    # What this attempt writes, since its last batch.
    written: list[Row] = field(default_factory=list)
    _transaction: Transaction = field(default_factory=Transaction)
    _resources: dict[str, None] = field(default_factory=dict)
    _event: AuditEvent | None = None
    _record: IdempotencyRecord | None = None
    _after_commit: list[Callable[[], object]] = field(default_factory=list)
    _on_failure: list[Callable[[], object]] = field(default_factory=list)
    _effects: dict[str, Any] = field(default_factory=dict)
    _staged_once: set[str] = field(default_factory=set)

    @cached_property
    def _indexer(self) -> Indexer:
        # A unit without writes needs none.
        return Indexer(self.tenant, self._transaction)

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(self.tenant)

    @property
    def workspace_id(self) -> str:
        """The tenant, if it is a workspace."""
        return self.tenant

    def begin(
        self, event: AuditEvent | None = None, record: IdempotencyRecord | None = None
    ) -> None:
        """Discard staged writes and read rows. Record batches under ``event`` and ``record``."""
        # Results of run_side_effect_once are kept.
        self._event, self._record = event, record
        self._transaction, self.rows = Transaction(), Rows()
        for cached in ("_indexer", "outbox"):
            vars(self).pop(cached, None)
        self._after_commit.clear()
        self._resources.clear()
        self.written.clear()
        self._staged_once.clear()

    def create(
        self,
        row: Row,
        *,
        on_conflict: Exception | None = None,
        claim_errors: ClaimErrors = NO_CLAIM_ERRORS,
    ) -> None:
        """Stage a new row. If its key exists at commit, ``on_conflict`` is raised."""
        self._indexer.add(row, claim_errors)
        self._indexer.file_uses.note_creation(row)
        self._note_record(row)
        self._note_price(row)
        self._note_job(row)
        self.outbox.note(self._indexer.listing_of(row), row)
        stage: Stage = lambda t: t.save(row, condition=Row.pk.does_not_exist())  # noqa: E731
        self._transaction.puts.append((stage, on_conflict))

    def create_job(self, job: jobs.JobRow, *, at_once: bool = True) -> None:
        """Stage a job, and run it after the commit. If the process dies, the runner finds it."""
        self.create(job)
        if at_once:
            self.after_commit(partial(jobs.attempt, job, JOB_HANDLERS[job.kind]))

    def save(self, row: Row, *, claim_errors: ClaimErrors = NO_CLAIM_ERRORS) -> None:
        """Stage the new state of a row that was read. Its stored version must be unchanged."""
        self._indexer.subtract(row)
        self._indexer.add(row, claim_errors)
        self._note_record(row)
        self._note_price(row)
        self._note_job(row)
        self.outbox.note(self._indexer.listing_of(row), row)
        if isinstance(row, Record) and row.stored:
            self._transaction.updates.append((lambda t: t.update(row, row.changes()), None))
        else:
            self._transaction.puts.append((lambda t: t.save(row), None))

    def update(
        self,
        row: Row,
        actions: list[Action],
        condition: Condition | None = None,
        *,
        on_conflict: Exception | None = None,
    ) -> None:
        """Stage changes of single attributes. The row must exist, or meet the condition."""
        demand = Row.pk.exists() if condition is None else condition
        self._note_record(row)
        stage: Stage = lambda t: t.update(row, actions, condition=demand)  # noqa: E731
        self._transaction.updates.append((stage, on_conflict))

    def delete(
        self, row: Row, *, if_there: bool = False, on_conflict: Exception | None = None
    ) -> None:
        """Stage the deletion of a row as it was read; ``if_there`` requires that it exists."""
        self._indexer.remove(row)
        self._note_record(row)
        self.outbox.note_deletion(self._indexer.listing_of(row), row)
        demand = Row.pk.exists() if if_there else None
        stage: Stage = lambda t: t.delete(row, condition=demand)  # noqa: E731
        self._transaction.deletes.append((stage, on_conflict))

    def soft_delete(self, record: Record, *, until: datetime, together_with: str = "") -> None:
        deleted_record = LISTINGS[type(record)].trash_row(self.tenant, record, until, together_with)
        self.delete(record)
        self._transaction.puts.append((lambda t: t.save(deleted_record), None))

    def restore(self, record: Record, *, deleted: Record) -> None:
        # If another record takes the externalId at the same moment, the operation starts again.
        self.create(record, claim_errors={EXTERNAL_ID.name: None})
        self.delete(deleted)

    def delete_counter(
        self, noun: str, *, facet: str, value: str, as_read: counters.Shards | None = None
    ) -> None:
        """Stage the deletion of the counter of a facet's value that no record can have any more."""
        self._indexer.uncounted.add((noun, counters.name(facet, value=value)))
        for row in counters.value_rows(self.tenant, noun=noun, facet=facet, value=value):
            # If the unit removes the value from all records, no record may have received it since.
            demand = None if as_read is None else counters.is_unchanged(row, as_read)
            stage = methodcaller("delete", row, condition=demand)
            self._transaction.deletes.append((stage, None))

    def stage_once(self, name: str, stage: "Callable[[UnitOfWork], None]") -> None:
        """Stage a change that several parts of an operation need, unless this attempt has it."""
        # DynamoDB refuses a transaction that names a row twice.
        if name not in self._staged_once:
            self._staged_once.add(name)
            stage(self)

    def require(
        self, row: Row, condition: Condition | None = None, *, on_conflict: Exception | None = None
    ) -> None:
        """Require that a row exists at commit, or meets a condition."""
        demand = Row.pk.exists() if condition is None else condition
        stage: Stage = lambda t: t.condition_check(type(row), row.pk, row.sk, demand)  # noqa: E731
        self._transaction.checks.append((stage, on_conflict))

    @property
    def is_repeatable(self) -> bool:
        """Whether a repeated call continues where this one stopped. It needs an idempotency key."""
        return self._record is not None

    def run_side_effect_once(self, name: str, effect: Callable[[], T]) -> T:
        """Run an outside effect on the first attempt. Later attempts return its result."""
        if name not in self._effects:
            self._effects[name] = effect()
        result: T = self._effects[name]
        return result

    def commit_batch(
        self, name: str, stage: "Callable[[UnitOfWork], bytes]", *, audited_in: str = ""
    ) -> bytes:
        """Commit a part of an operation separately, because one transaction cannot hold it all.

        ``stage`` stages the part on a unit of its own and returns its outcome, which retries and
        calls with the same idempotency key return again. ``audited_in`` names another workspace
        whose audit log records the part. If it fails, earlier batches are kept.
        """
        try:
            return self.run_side_effect_once(
                name, lambda: self._commit_batch(name, stage, audited_in)
            )
        finally:
            self.rows = Rows()  # The batch may have changed what was read.

    def recalls_batch(self, name: str) -> bool:
        """Whether an earlier call with the same key has committed a batch."""
        record = self._record and self._record.for_part(name)
        stored_record = record and idempotency.find(self.tenant, record)
        if record is None or stored_record is None:
            return False
        body = record.require_answer(stored_record).body or b""
        self.run_side_effect_once(name, lambda: body)
        return True

    def _commit_batch(
        self, name: str, stage: "Callable[[UnitOfWork], bytes]", audited_in: str
    ) -> bytes:
        record, event = self._record and self._record.for_part(name), self._event
        event = event or AuditEvent.by_job(name)
        event = replace(event, workspace_id=audited_in or event.workspace_id)

        def staged(unit: UnitOfWork) -> bytes:
            outcome = stage(unit)
            if record is not None:
                unit.keep(replace(record, body=outcome))
            return outcome

        try:
            return run_unit(self.tenant, event, staged, request_id=self.request_id)
        except IdempotencyKeyExistsError:
            if record is None:
                raise
            return record.require_answer(idempotency.find(self.tenant, record)).body or b""

    @property
    def created_files(self) -> Collection[str]:
        return self._indexer.file_uses.created

    def mention(self, resource: str) -> None:
        """Add a resource that is not a written record, such as ``key:<id>``, to the audit event."""
        self._resources[resource] = None

    def after_commit(self, action: Callable[[], object]) -> None:
        """Run an action after the commit, and only log its exceptions."""
        self._after_commit.append(action)

    def on_failure(self, action: Callable[[], object]) -> None:
        """Run an undoing action if the operation finally fails, unless it may be committed."""
        # An orphan is better than a record with a missing target.
        self._on_failure.append(action)

    def undo(self) -> None:
        self._run(self._on_failure)

    def commit(self, event: AuditEvent | None = None) -> None:
        """Write everything staged in one transaction, with the audit event.

        Raises:
            AppError: the error of the first write whose condition failed.
            ConcurrentUpdateError: another writer was first.
            IdempotencyKeyExistsError: a record exists for an idempotency key that was staged.
            UnavailableError: DynamoDB failed.
        """
        transaction = self._transaction
        for job in self.outbox.jobs(event):
            self.create(job)
        for late in self._indexer.stage():
            self.after_commit(partial(jobs.attempt, late, JOB_HANDLERS[late.kind]))
        if transaction.staged:
            resources = (*(event.resources if event else ()), *self._resources)
            marker = audit.row(self.tenant, replace(event, resources=resources)) if event else None
            try:
                transaction.commit(marker)
            except OutcomeUnknownError:
                # The writes may exist, so the outside effect that they name must not be undone.
                self._on_failure.clear()
                raise
        # A failure of an action after the commit must not undo what the committed rows name.
        self._on_failure.clear()
        self._run(self._after_commit)

    def keep(self, record: IdempotencyRecord) -> None:
        """Stage the response to a call under its idempotency key, which must be free at commit."""
        row = idempotency.row(self.tenant, record, owner=self.request_id)
        stage = put_stage(row, idempotency.is_free_for(self.request_id))
        self._transaction.puts.append((stage, IdempotencyKeyExistsError()))

    def _note_record(self, row: Row) -> None:
        self.written.append(row)
        if (noun := row.pk.removeprefix(f"W#{self.tenant}#")) in NOUNS:
            self._resources[f"{noun.lower()}:{row.sk}"] = None

    def _note_price(self, row: Row) -> None:
        listing = self._indexer.listing_of(row)
        if listing is None or listing.price is None or not isinstance(row, Record):
            return
        # A price that was stored before was noted with the record that had it.
        price = getattr(row, listing.price)
        if price and (row.original is None or getattr(row.original, listing.price) != price):
            workspace_currency.stage_price(self)

    def _note_job(self, row: Row) -> None:
        # The next run on schedule may be a minute away. A runner that wakes before the commit finds
        # no job.
        if isinstance(row, jobs.JobRow) and row.queue is Queue.EVENTS and row.due_at <= clock.now():
            self.stage_once("wake", lambda unit: unit.after_commit(wake.wake))

    @staticmethod
    def _run(actions: list[Callable[[], object]]) -> None:
        while actions:
            try:
                # The action is removed first, so that it cannot run twice.
                actions.pop(0)()
            except Exception:
                log.exception("an action after the unit of work failed")


def run_unit(  # noqa: PLR0913  the options of a unit
    tenant: str,
    event: AuditEvent | None,
    stage: Callable[[UnitOfWork], T],
    *,
    record: IdempotencyRecord | None = None,
    request_id: str | None = None,
    dry_run: bool = False,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
) -> T:
    """Stage and commit a unit of work. After a conflict, both start again with fresh reads.

    ``stage`` may run several times, so outside effects must use ``run_side_effect_once``. ``event``
    also serves as the marker of the transaction: without it, a transaction whose response is lost
    is not sent again, so callers need a row of their own that shows the outcome
    (``domains.billing.flows.charging``). ``record`` stores the outcomes of the unit's batches; the
    operation's own response is staged with ``UnitOfWork.keep``.

    Raises:
        AppError: any failure. Nothing was changed, except perhaps for ``OutcomeUnknownError``.
        IdempotencyKeyExistsError: the key of a staged record was used before.
    """
    unit = UnitOfWork(tenant, request_id or str(uuid4()), retry_policy)

    def attempt() -> T:
        unit.begin(event, record)
        result = stage(unit)
        if not dry_run:
            unit.commit(event)
        return result

    try:
        return retry_on_conflict(attempt, lambda: unit.retry_policy)
    except BaseException:
        # An interrupted process must undo its outside effects, too.
        unit.undo()
        raise


def run_job_unit(
    job: Job,
    stage: Callable[[UnitOfWork], T],
    *,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
) -> T:
    """Stage and commit a unit of work of a job (``run_unit``). The audit log names the job."""
    event = AuditEvent.by_job(job.kind)
    return run_unit(job.workspace_id, event, stage, retry_policy=retry_policy)


def cascade(job: Job, step: Callable[[UnitOfWork], bool]) -> None:
    """Commit a step of a job again and again, until it finds nothing more to do."""
    while run_job_unit(job, step):
        pass


def cascade_over(
    job: Job, items: Iterable[T], size: int, step: Callable[[UnitOfWork, list[T]], None]
) -> None:
    """Commit a step of a job for each batch of at most ``size`` items."""
    for batch in split_batches(items, size):
        run_job_unit(job, lambda unit, batch=batch: step(unit, batch))  # type: ignore[misc]


@job_handler(LATE_ENTRIES)
def write_entries(job: Job) -> None:
    """Write the entries of the records' current state in the partitions of their values."""

    def step(unit: UnitOfWork, batch: list[str]) -> None:
        for noun, _, record_id in (name.partition("#") for name in batch):
            listing = listing_of(noun)
            if record := listing.find(job.workspace_id, record_id=record_id):
                # The job must not replace the entries of a newer version with older ones.
                unit.require(record, type(record).version == record.version)
                for side in listing.side_rows(job.workspace_id, record).values():
                    if isinstance(side.row, EntryRow):
                        unit.save(side.row)

    cascade_over(job, job.payload["records"], MAX_ITEMS // 3, step)


@job_handler(LATE_FILE_USES)
def write_file_uses(job: Job) -> None:
    """Write which files the records show in their current state."""
    for name, files in job.payload.items():
        cascade_over(job, files, MAX_ITEMS // 3, partial(_stage_late_file_uses, name))


def _stage_late_file_uses(name: str, unit: UnitOfWork, files: list[str]) -> None:
    noun, _, record_id = name.partition("#")
    listing = listing_of(noun)
    record = listing.find(unit.tenant, record_id=record_id)
    used_ids: set[str] = set()
    if record and listing.files:
        # A newer version of the record writes its own file uses.
        unit.require(record, type(record).version == record.version)
        there = listing_of(file_uses.FILE).fetch(unit.tenant, files)
        used_ids = set(listing.files.ids(record)) & {file.id for file in there}
    changes = {name: {file_id: file_id in used_ids for file_id in files}}
    rows = file_uses.rows(unit.tenant, changes)
    for row in rows.put:
        unit.save(row)
    for row in rows.deleted:
        unit.delete(row)
    for file in rows.raised:
        unit.update(file, RAISE)


def split_batches(items: Iterable[T], size: int) -> list[list[T]]:
    """Split the items into lists of at most ``size``, for units of work with limited room."""
    elements = list(items)
    return [elements[start : start + size] for start in range(0, len(elements), size)]
