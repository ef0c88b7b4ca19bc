"""Work that must happen at a time, or be finished if its request dies; never scanned for.

A due row is written in the same transaction as what it belongs to, under
``DUE#<kind>#<hour>#<shard>``. The runner reads each kind from its cursor, the oldest hour that may
hold unfinished work, up to the present.
"""

import logging
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pynamodb.attributes import (
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.transactions import TransactWrite

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.store.connection import connection, reaching
from chalicelib.store.tables import ControlRow, JsonAttribute

SHARDS = 4
FIRST_LOOK_BACK = timedelta(hours=48)
"""Where a kind's cursor starts when it has none yet."""
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
"""How long failed work rests: twice as long after each failure."""
SETTLING = timedelta(minutes=10)
"""How long after an hour's end its rows may still be in the writing.

The cursor does not pass it before.
"""

Work = Callable[["JobRow"], None]

log = logging.getLogger(__name__)


class JobRow(ControlRow):
    """A piece of due work. Its handler may run more than once, so it must be idempotent."""

    kind = UnicodeAttribute()
    due_at = UTCDateTimeAttribute()
    workspace_id = UnicodeAttribute()
    payload: JsonAttribute = JsonAttribute()
    tries = NumberAttribute(default=0)


def _postpone(job: JobRow) -> None:
    """Move failed work to a later hour, so that it does not hold the cursor where it is."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** int(job.tries))
    later = row(job.kind, job.workspace_id, job.payload, clock.now() + pause)
    later.tries = job.tries + 1
    with reaching(), TransactWrite(connection=connection()) as transaction:
        transaction.delete(job)
        transaction.save(later)


class CursorRow(ControlRow):
    """Up to which hour a kind's work is done."""

    hour = UTCDateTimeAttribute()


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _partition(kind: str, hour: datetime, shard: int) -> str:
    return f"DUE#{kind}#{hour:%Y%m%dT%H}#{shard}"


def row(
    kind: str, workspace_id: str, payload: dict[str, Any], due_at: datetime | None = None
) -> JobRow:
    """Return a due row to stage in a unit of work; without a time it is due at once."""
    due_at = due_at or clock.now()
    shard = random.randrange(SHARDS)  # noqa: S311  spread, no secret
    return JobRow(
        _partition(kind, _hour(due_at), shard),
        new_id(),
        kind=kind,
        due_at=due_at,
        workspace_id=workspace_id,
        payload=payload,
    )


def schedule(work: JobRow) -> None:
    """Write work that must be known before the unit of work that it watches over commits."""
    with reaching():
        work.save()


def done(work: JobRow) -> None:
    """Remove finished work."""
    with reaching():
        work.delete()


def run(kinds: Mapping[str, Work], stop: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Do the due work of every kind, until ``stop`` says time is up; return how much was done.

    Work that fails is logged and stays for the next run.
    """
    return {kind: _run_kind(kind, work, stop) for kind, work in kinds.items()}


def _run_kind(kind: str, work: Work, stop: Callable[[], bool]) -> int:
    now = clock.now()
    cursor = CursorRow.find(f"DUE#{kind}", "cursor")
    hour = cursor.hour if cursor else _hour(now - FIRST_LOOK_BACK)
    finished, count, clean = hour, 0, True
    while hour <= now and not stop():
        for job in _rows(kind, hour):
            if job.due_at > now or stop():
                clean = False
            elif attempt(job, work):
                count += 1
            else:
                _postpone(job)
        hour += timedelta(hours=1)
        clean = clean and hour + SETTLING <= now
        if clean:
            finished = hour
    if cursor is None or finished > cursor.hour:
        with reaching():
            CursorRow(f"DUE#{kind}", "cursor", hour=finished).save()
    return count


def _rows(kind: str, hour: datetime) -> Iterator[JobRow]:
    for shard in range(SHARDS):
        yield from JobRow.partition(_partition(kind, hour, shard))


def attempt(job: JobRow, work: Work) -> bool:
    """Do a piece of work and remove it; a failure is logged and the row stays for the runner."""
    try:
        work(job)
        done(job)
    except Exception:
        log.exception("a job failed", extra={"kind": job.kind, "job": job.sk})
        return False
    return True
