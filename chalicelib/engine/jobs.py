"""Scheduled jobs, for later work and for work that must finish even if its request fails.

A job's row is written in the transaction that requires the job, and deleted in the transaction that
does the work, so that neither exists without the other. A runner first takes a lease, by a
conditional update of the row that it read. Several runners therefore share the work, and a deleted
row never comes back.
"""

import logging
import random
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from threading import Lock
from time import monotonic
from typing import Any, Self, TypeVar
from uuid import uuid4

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
from pynamodb.exceptions import DeleteError, UpdateError

from chalicelib.core import clock, deadline
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import JobKind, Postponed, Queue
from chalicelib.engine.connection import (
    CONDITION_FAILED,
    CONFLICTS,
    error_code,
    raise_failure,
    reaching,
)
from chalicelib.engine.tables import ControlRow, JsonAttribute

SHARDS = 4
BATCH = 100  # jobs of one kind per read of a shard, so that a backlog does not hide other kinds
ROUND_SECONDS = 30.0  # after which the queue is read again for newly due jobs
LOST_LEASES = 3  # in a row, after which a runner leaves a shard to the others until the next read
LEASE = timedelta(minutes=6)  # more than the five minutes of a Lambda run
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)  # The pause of a failed job doubles after each failure.
CHANGES_SECONDS = 10  # Changes within this time share the job that follows them (``for_changes``).
# Concurrent changes choose among these jobs, so that their transactions rarely write one row.
CHANGES_SPREAD = 8
INSTANT = timedelta(microseconds=1)  # the precision of times in rows

_STAMP = "%Y%m%dT%H%M%S.%f"

Work = Callable[["JobRow"], None]
Stop = Callable[[], bool]
T = TypeVar("T")

log = logging.getLogger(__name__)


class JobRow(ControlRow):
    """A job. Its handler may run more than once, so it must be idempotent."""

    kind = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    payload: JsonAttribute = JsonAttribute()
    tries = NumberAttribute()  # leases
    not_before = UTCDateTimeAttribute(null=True)  # when another runner may take a lease
    # A random value by which the holder of the latest lease recognizes it, even if a response was
    # lost.
    lease = UnicodeAttribute(null=True)

    @property
    def queue(self) -> Queue:
        return Queue(self.pk.partition("#")[0])

    @property
    def due_at(self) -> datetime:
        return _due_at(self.sk)

    @property
    def job_id(self) -> str:
        return self.sk.split("#", 2)[2]

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return the job. A job that cannot be read has no kind, and thus no handler."""
        try:
            job = super().from_raw_data(data)
            job.serialize(null_check=True)
        except Exception:
            log.exception("a job cannot be read", extra={"job": data["sk"]["S"]})
            tries = {"tries": data["tries"]} if "N" in data.get("tries", {}) else {}
            unread = {"pk": data["pk"], "sk": data["sk"], "kind": {"S": ""}}
            return super().from_raw_data(unread | tries)
        return job


def row(
    kind: JobKind,
    workspace_id: str,
    payload: dict[str, Any],
    due_at: datetime | None = None,
    *,
    job_id: str | None = None,
) -> JobRow:
    """Return a job to stage in a unit of work, due now by default; ``ref`` finds a ``job_id``.

    >>> row(JobKind("example"), new_id(), {"id": "a"}, job_id="a").job_id
    'a'
    """
    job = ref(kind, due_at or clock.now(), job_id or new_id())
    job.kind, job.workspace_id, job.payload, job.tries = kind, workspace_id, payload, 0
    return job


def ref(kind: JobKind, due_at: datetime, job_id: str) -> JobRow:
    """Return a job with only its key, whose deletion cancels the job if it is still there."""
    place = f"{_timestamp(due_at)}#{kind}#{job_id}"
    # The shard follows from the key, so the row can be deleted without reading it first.
    return JobRow(_partition(zlib.crc32(place.encode()) % SHARDS, kind.queue), place)


def for_changes(kind: JobKind, workspace_id: str) -> JobRow:
    """Return the job that follows a change in a workspace within ``CHANGES_SECONDS``."""
    window = int(clock.now().timestamp()) // CHANGES_SECONDS
    due = datetime.fromtimestamp((window + 1) * CHANGES_SECONDS, UTC)
    number = random.randrange(CHANGES_SPREAD)  # noqa: S311  spreading of writers, not a secret
    # A change may commit after the job began to run. The job is then written again, and the runner
    # leaves it in the queue.
    return row(kind, workspace_id, {}, due, job_id=f"{workspace_id}-{number}")


def is_there(job: JobRow) -> bool:
    """Whether a job still waits."""
    return JobRow.find(job.pk, job.sk) is not None


def read_workspace_jobs(workspace_id: str) -> Iterator[JobRow]:
    """Yield the waiting jobs of a workspace. This reads the whole queue, for the operator only."""
    for queue, shard in product(Queue, range(SHARDS)):
        with reaching():
            yield from JobRow.query(
                _partition(shard, queue),
                filter_condition=JobRow.workspace_id == workspace_id,
                consistent_read=True,
            )


def schedule(job: JobRow) -> None:
    """Write a job before the unit of work that it monitors commits."""
    with reaching():
        job.save()


def remove_finished(job: JobRow) -> None:
    """Remove a finished job, unless it was written again after its lease was taken."""
    try:
        # A job that was written again has no tries yet.
        job.delete(condition=JobRow.tries != 0 if job.tries else None)
    except DeleteError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


def attempt(job: JobRow, work: Work) -> bool:
    """Run a job and remove it. After a failure, log it and keep the job in the queue."""
    try:
        try:
            work(job)
        except Postponed as later:
            # The later job is written first: a crash in between leaves two jobs instead of none.
            kind = JobKind(job.kind, job.queue)
            schedule(row(kind, job.workspace_id, job.payload, later.due_at, job_id=job.job_id))
        remove_finished(job)
    except Exception:
        log.exception("a job failed", extra={"kind": job.kind, "job": job.sk})
        return False
    return True


def run(
    handlers: Mapping[str, Work],
    stop: Stop = lambda: False,
    *,
    threads: int = 1,
    queue: Queue = Queue.MAIN,
) -> dict[str, int]:
    """Run due jobs until ``stop`` returns True. Returns the number finished by kind.

    Runs may overlap. The next job is of the kind with the fewest jobs being done and, among these,
    of the kind that has taken the least time, so neither a long backlog nor a slow kind delays
    others.
    """
    runner = _Runner(handlers, stop, queue)
    while not stop() and runner.round(threads):
        pass
    return runner.finished


def oldest_due(queue: Queue = Queue.MAIN) -> datetime | None:
    """Return the due time of the oldest due job, including pausing ones, or None."""
    # Pauses grow with each failure, so an old due time points to a fault.
    due = ControlRow.sk < _timestamp(clock.now() + INSTANT)

    def oldest(shard: int) -> list[str]:
        with reaching():
            # Plain rows, because malformed jobs count, too.
            return [row.sk for row in ControlRow.query(_partition(shard, queue), due, limit=1)]

    due_keys = [sk for keys in _read_shards(oldest) for sk in keys]
    return _due_at(min(due_keys)) if due_keys else None


def _read_shards(read: Callable[[int], T]) -> list[T]:
    # Runners begin at different shards, and run the oldest jobs of each shard first.
    start = random.randrange(SHARDS)  # noqa: S311  spreading of runners, not a secret
    shards = [(start + number) % SHARDS for number in range(SHARDS)]
    return deadline.map_in_threads(read, shards, SHARDS)


class _Runner:
    def __init__(self, handlers: Mapping[str, Work], stop: Stop, queue: Queue) -> None:
        self.finished = dict.fromkeys(handlers, 0)
        self._handlers, self._stop, self._queue = handlers, stop, queue
        self._spent = defaultdict[str, float](float)
        self._running = Counter[str]()
        self._lock = Lock()

    def round(self, threads: int) -> bool:
        jobs, self._more = _due(self._queue, clock.now())
        self._queues: defaultdict[str, deque[JobRow]] = defaultdict(deque)
        self._lost = Counter[str]()  # leases in a row, by shard
        for job in jobs:
            self._queues[job.kind].append(job)
        self._end, self._progress = monotonic() + ROUND_SECONDS, False
        with deadline.side_by_side() as start:
            ends = [start(self._run_jobs) for _ in range(min(threads, len(jobs)))]
        for end in ends:
            end.result()
        return self._more and self._progress

    def _run_jobs(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run_job(job)
            finally:
                with self._lock:
                    self._running[job.kind] -= 1

    def _run_job(self, job: JobRow) -> None:
        leased = _take_lease(job)
        with self._lock:
            self._lost[job.pk] = 0 if leased else self._lost[job.pk] + 1
            self._progress |= leased
        if not leased:
            return
        begun = monotonic()
        is_done = self._attempt(job)
        with self._lock:
            self._spent[job.kind] += monotonic() - begun
            if is_done:
                self.finished[job.kind] += 1

    def _attempt(self, job: JobRow) -> bool:
        handler = self._handlers.get(job.kind)
        if handler is None:
            log.error("a job has no handler", extra={"kind": job.kind, "job": job.sk})
        elif attempt(job, handler):
            return True
        tries = int(job.tries)
        _hold(job, _pause(tries - 1), tries)
        return False

    def _next(self) -> JobRow | None:
        with self._lock:
            while self._queues and not self._stop():
                if monotonic() >= self._end:
                    self._more = True
                    return None
                kind = min(self._queues, key=lambda kind: (self._running[kind], self._spent[kind]))
                job = self._queues[kind].popleft()
                if not self._queues[kind]:
                    del self._queues[kind]
                if self._lost[job.pk] < LOST_LEASES:
                    self._running[kind] += 1
                    return job
                self._more = True
            return None


# A queue is a partition per shard, sorted by due time, so a query per shard reads what is due.
def _due(queue: Queue, now: datetime) -> tuple[list[JobRow], bool]:
    # The read may be eventually consistent: a job that is missed runs a minute later, and no lease
    # can be taken on a deleted one.
    shards = _read_shards(lambda shard: list(_rows(queue, shard, now)))
    more = any(
        max(Counter(job.kind for job in jobs).values(), default=0) >= BATCH for jobs in shards
    )
    return [job for jobs in shards for job in jobs], more


def _rows(queue: Queue, shard: int, now: datetime) -> Iterator[JobRow]:
    # DynamoDB filters out the rest. A ``not_before`` beyond the longest pause is malformed, so its
    # job counts as due.
    counts = Counter[str]()
    start: dict[str, Any] | None = None
    while True:
        condition = ~JobRow.not_before.between(now + INSTANT, now + 2 * LONGEST_PAUSE)
        if full := [kind for kind, count in counts.items() if kind and count >= BATCH]:
            condition &= ~JobRow.kind.is_in(*full)
        rows = JobRow.query(
            _partition(shard, queue),
            JobRow.sk < _timestamp(now + INSTANT),
            filter_condition=condition,
            last_evaluated_key=start,
        )
        with reaching():
            for job in rows:
                if counts[job.kind] < BATCH:
                    counts[job.kind] += 1
                    yield job
                    if counts[job.kind] == BATCH and job.kind:
                        break
            else:
                return
        start = rows.last_evaluated_key
        if start is None:
            return


def _take_lease(job: JobRow) -> bool:
    # The try is counted beforehand, so that a job that kills its runner pauses, too.
    tries = int(job.tries or 0)
    return _hold(job, max(LEASE, _pause(tries)), tries + 1)


def _hold(job: JobRow, length: timedelta, tries: int) -> bool:
    # A malformed job may lack its tries.
    as_read = JobRow.pk.exists() if job.tries is None else JobRow.tries == job.tries
    lease = str(uuid4())
    changes = [
        JobRow.not_before.set(clock.now() + length),
        JobRow.tries.set(tries),
        JobRow.lease.set(lease),
    ]
    try:
        # The second condition recognizes this update if it is sent again after a lost response.
        JobRow._get_connection().update_item(  # noqa: SLF001  ``update`` would read the row again
            job.pk, job.sk, actions=changes, condition=as_read | (JobRow.lease == lease)
        )
    except (UpdateError, UnavailableError) as error:
        if error_code(error) not in {CONDITION_FAILED, *CONFLICTS}:
            log.exception("a job could not be leased", extra={"kind": job.kind, "job": job.sk})
        return False
    job.tries = tries
    return True


# A job that fails, or kills its runner, pauses longer each time and blocks no others (ADR 13).
def _pause(failures: int) -> timedelta:
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 16))


def _partition(shard: int, queue: Queue = Queue.MAIN) -> str:
    return f"{queue}#{shard}"


def _timestamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):{_STAMP}}"


def _due_at(sk: str) -> datetime:
    return datetime.strptime(sk.partition("#")[0], _STAMP).replace(tzinfo=UTC)
