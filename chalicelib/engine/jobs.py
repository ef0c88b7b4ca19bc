"""Scheduled jobs: work for a later time, or to be finished if its request dies; never scanned for.

One queue for all kinds, a partition a shard, sorted by due time: what is due is the beginning of
each, one query long. A row is written in the transaction of what it belongs to, and deleted in the
one that does the work, so neither exists without the other.

A row's key never changes. A runner first takes a lease on it, in place and only over the row that
it read: so overlapping runners share the work, a job that fails or kills its runner rests ever
longer without standing in the way, and nothing brings back a row that is gone (ADR 13).
"""

import logging
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Self
from uuid import uuid4

from pynamodb.attributes import (
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import UnavailableError
from chalicelib.core.ids import new_id
from chalicelib.engine.connection import CONDITION_FAILED, CONFLICTS, error_code, reaching
from chalicelib.engine.tables import ControlRow, JsonAttribute

SHARDS = 4
BATCH = 100
"""Rows of one kind that are read from a shard at once; behind a backlog are other kinds' rows."""
ROUND_SECONDS = 30.0
"""How long what was read is worked at before the queue is read again, for jobs due since."""
LEASE = timedelta(minutes=6)
"""How long a row is left to the runner that took it; no run lasts longer than a Lambda's five."""
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
"""How long a job that failed rests: twice as long after each failure, and never for good."""
INSTANT = timedelta(microseconds=1)
"""What rows tell moments apart by."""

_STAMP = "%Y%m%dT%H%M%S.%f"

Work = Callable[["JobRow"], None]

log = logging.getLogger(__name__)


class JobRow(ControlRow):
    """A job. Its handler may run more than once, so it must be idempotent.

    ``tries`` counts the leases taken on it; until ``not_before`` no other runner takes one.
    ``lease`` tells the holder of the last one that it got it, even if the answer was lost.
    """

    kind = UnicodeAttribute()
    workspace_id = UnicodeAttribute()
    payload: JsonAttribute = JsonAttribute()
    tries = NumberAttribute()
    not_before = UTCDateTimeAttribute(null=True)
    lease = UnicodeAttribute(null=True)

    @property
    def due_at(self) -> datetime:
        """When it is due."""
        return _due_at(self.sk)

    @property
    def job_id(self) -> str:
        """Its id, unique among its kind."""
        return self.sk.split("#", 2)[2]

    @classmethod
    def from_raw_data(cls, data: dict[str, Any]) -> Self:
        """Return the job; one that cannot be read has no kind, and so no handler."""
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
    kind: str,
    workspace_id: str,
    payload: dict[str, Any],
    due_at: datetime | None = None,
    *,
    job_id: str | None = None,
) -> JobRow:
    """Return a job to stage in a unit of work; without a time it is due at once.

    With a ``job_id`` of the caller's, unique among its kind, ``ref`` finds it again.
    """
    job = ref(kind, due_at or clock.now(), job_id or new_id())
    job.kind, job.workspace_id, job.payload, job.tries = kind, workspace_id, payload, 0
    return job


def ref(kind: str, due_at: datetime, job_id: str) -> JobRow:
    """Return a job by its key alone, for a unit of work to delete: the job is cancelled.

    That it was done meanwhile, or never scheduled, is no failure.
    """
    place = f"{_stamp(due_at)}#{kind}#{job_id}"
    return JobRow(_partition(zlib.crc32(place.encode()) % SHARDS), place)


def is_there(job: JobRow) -> bool:
    """Whether a job is still to be done."""
    return JobRow.find(job.pk, job.sk) is not None


def of_workspace(workspace_id: str) -> Iterator[JobRow]:
    """Yield the jobs of a workspace that are still to be done.

    For the operator alone: it reads the whole queue, which nothing else does.
    """
    for shard in range(SHARDS):
        with reaching():
            yield from JobRow.query(
                _partition(shard),
                filter_condition=JobRow.workspace_id == workspace_id,
                consistent_read=True,
            )


def schedule(job: JobRow) -> None:
    """Write a job that must be known before the unit of work that it watches over commits."""
    with reaching():
        job.save()


def done(job: JobRow) -> None:
    """Remove a finished job."""
    with reaching():
        job.delete()


def attempt(job: JobRow, work: Work) -> bool:
    """Do a job and remove it; a failure is logged and leaves it to the runner."""
    try:
        work(job)
        done(job)
    except Exception:
        log.exception("a job failed", extra={"kind": job.kind, "job": job.sk})
        return False
    return True


def run(handlers: Mapping[str, Work], stop: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Do what is due until ``stop`` says time is up; return how many jobs of each kind were done.

    Runs may overlap. The next job is always of the kind that took the least time so far, its oldest
    first: neither a long backlog of one kind nor a slow one keeps the others waiting.
    """
    finished, spent = dict.fromkeys(handlers, 0), defaultdict[str, float](float)
    while not stop() and _round(handlers, stop, finished, spent):
        pass
    return finished


def oldest_due() -> datetime | None:
    """Return since when the job is due that has waited longest, resting ones included, if any.

    Jobs that fail rest ever longer, so one that has long been due points to a fault.
    """
    due = ControlRow.sk < _stamp(clock.now() + INSTANT)
    with reaching():
        found = [
            row.sk
            for shard in range(SHARDS)
            # As plain rows: one that cannot be read as a job waits, too.
            for row in ControlRow.query(_partition(shard), due, limit=1)
        ]
    return _due_at(min(found)) if found else None


def _round(
    handlers: Mapping[str, Work],
    stop: Callable[[], bool],
    finished: dict[str, int],
    spent: defaultdict[str, float],
) -> bool:
    """Do some of what is due; say whether there may be more of it."""
    queues: defaultdict[str, deque[JobRow]] = defaultdict(deque)
    jobs, more = _due(clock.now())
    for job in jobs:
        queues[job.kind].append(job)
    end, progress = monotonic() + ROUND_SECONDS, False
    while queues and not stop():
        if monotonic() >= end:
            more = True
            break
        kind = min(queues, key=lambda kind: spent[kind])
        job = queues[kind].popleft()
        if not queues[kind]:
            del queues[kind]
        if _take(job):
            progress, begun = True, monotonic()
            handler = handlers.get(kind)
            if handler is None:
                log.error("a job that nobody does", extra={"kind": kind, "job": job.sk})
            if handler and attempt(job, handler):
                finished[kind] += 1
            else:
                tries = int(job.tries)
                _hold(job, _pause(tries - 1), tries)
            spent[kind] += monotonic() - begun
    return more and progress


def _due(now: datetime) -> tuple[list[JobRow], bool]:
    """Return what is due and free, oldest first, and whether a kind has more than was read.

    It need not be read consistently: a job seen late is done a minute later, and of one that is
    gone no lease can be taken.
    """
    jobs: list[JobRow] = []
    more = False
    for shard in range(SHARDS):
        found = Counter[str]()
        jobs += _rows(shard, now, found)
        more = more or max(found.values(), default=0) >= BATCH
    return sorted(jobs, key=lambda job: job.sk), more


def _rows(shard: int, now: datetime, found: Counter[str]) -> Iterator[JobRow]:
    """Yield what is due in a shard, at most ``BATCH`` of a kind; the database leaves out the rest.

    A row whose ``not_before`` is further away than any that is set here is malformed, and due.
    """
    start: dict[str, Any] | None = None
    while True:
        wanted = ~JobRow.not_before.between(now + INSTANT, now + 2 * LONGEST_PAUSE)
        if full := [kind for kind, count in found.items() if kind and count >= BATCH]:
            wanted &= ~JobRow.kind.is_in(*full)
        rows = JobRow.query(
            _partition(shard),
            JobRow.sk < _stamp(now + INSTANT),
            filter_condition=wanted,
            last_evaluated_key=start,
        )
        with reaching():
            for job in rows:
                if found[job.kind] < BATCH:
                    found[job.kind] += 1
                    yield job
                    if found[job.kind] == BATCH and job.kind:
                        break
            else:
                return
        start = rows.last_evaluated_key
        if start is None:
            return


def _take(job: JobRow) -> bool:
    """Take a lease on a job; False if it is gone, or another runner was first.

    The try is counted before it is made, so that a job that kills its runner rests, too.
    """
    tries = int(job.tries or 0)
    return _hold(job, max(LEASE, _pause(tries)), tries + 1)


def _hold(job: JobRow, length: timedelta, tries: int) -> bool:
    """Keep a job, as it was read, from all runners for a while."""
    as_read = JobRow.pk.exists() if job.tries is None else JobRow.tries == job.tries
    lease = str(uuid4())
    changes = [
        JobRow.not_before.set(clock.now() + length),
        JobRow.tries.set(tries),
        JobRow.lease.set(lease),
    ]
    try:
        JobRow._get_connection().update_item(  # noqa: SLF001  ``update`` would read the row again
            job.pk, job.sk, actions=changes, condition=as_read | (JobRow.lease == lease)
        )
    except (UpdateError, UnavailableError) as error:
        if error_code(error) not in {CONDITION_FAILED, *CONFLICTS}:
            log.exception("a job could not be leased", extra={"kind": job.kind, "job": job.sk})
        return False
    job.tries = tries
    return True


def _pause(failures: int) -> timedelta:
    doubled: int = 2 ** min(failures, 16)
    return min(LONGEST_PAUSE, FIRST_PAUSE * doubled)


def _partition(shard: int) -> str:
    return f"JOBS#{shard}"


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):{_STAMP}}"


def _due_at(sk: str) -> datetime:
    return datetime.strptime(sk.partition("#")[0], _STAMP).replace(tzinfo=UTC)
