"""Continue an import in a job until all rows are sent, a range of rows after another.

A run sends a range, stores its refused rows, and then saves the position. A run that is killed
between these repeats the range: each record is found by its key, and the calls return the outcomes
that were stored with the records (``JobCalls``), so that nothing is doubled and nothing is counted
twice.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice

from chalicelib.application.batches import MAX_ITEMS
from chalicelib.core import clock, deadline
from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.core.retry import NO_RETRY
from chalicelib.domains.imports.flows import rows_store
from chalicelib.domains.imports.flows.calls import JobCalls
from chalicelib.domains.imports.flows.sending import REFUSED, Outcome, Sender, sender_of
from chalicelib.domains.imports.rules.job_kinds import IMPORT, IMPORT_EXPIRED
from chalicelib.domains.imports.rules.tables.rows import Row
from chalicelib.domains.imports.store.imports import (
    FAILED,
    FINISHED,
    IMPORTS,
    RUNNING,
    ImportRow,
    ImportState,
)
from chalicelib.engine.unit import UnitOfWork, run_job_unit, run_unit
from chalicelib.gateways.object_store import object_store

RUN_SECONDS = 30.0
"""The time of one run. A Lambda run has five minutes, which it shares with other jobs."""
IMAGE_SECONDS = 60.0
"""The time of one range whose images are fetched."""
ROWS_WITH_IMAGES = 10
"""Rows of a range whose images are fetched."""
GIVEN_UP_AFTER = timedelta(days=1)


@job_handler(IMPORT)
def continue_import(job: Job) -> None:
    """Send what is missing of an import, for as long as one run takes.

    Raises:
        Postponed: another run continues.
    """
    record = IMPORTS.find(job.workspace_id, record_id=job.payload["importId"])
    if record is None or record.state != RUNNING:
        return
    if clock.now() > record.created_at + GIVEN_UP_AFTER:
        _end(job, record, FAILED)
        return
    limit = deadline.Deadline(RUN_SECONDS)
    calls = JobCalls(job.workspace_id, record.id, record.account_id or "")
    sender = sender_of(record.noun, calls, job.workspace_id, dry_run=False)
    rows = rows_store.read_rows(record, int(record.done))
    while int(record.done) < record.rows:
        record = _send_range(record, sender, _next_range(rows))
        if limit.passed and int(record.done) < record.rows:
            raise Postponed(clock.now())
    _end(job, record, FINISHED)


def _next_range(rows: Iterator[Row]) -> list[Row]:
    first = list(islice(rows, ROWS_WITH_IMAGES))
    if any("images" in row.item for row in first):
        return first
    # The images of later rows are fetched in the same time, and may be left out.
    return [*first, *islice(rows, MAX_ITEMS - ROWS_WITH_IMAGES)]


def _send_range(record: ImportRow, sender: Sender, rows: Sequence[Row]) -> ImportRow:
    with deadline.within(IMAGE_SECONDS):
        outcomes = sender.send(rows)
    start = int(record.done)
    refused = [each for each in outcomes if each.code == REFUSED]
    if refused:
        rows_store.store_refused(record, start, refused)
        record.refused_at = [*record.refused_at, start]
    record.done = start + len(rows)
    record.warned = int(record.warned) + sum(_is_warned(each) for each in outcomes)
    record.counts = dict(Counter(record.counts) + Counter(each.code for each in outcomes))
    # If another run has saved this position, the save fails, and the other run continues.
    run_unit(record.workspace_id, None, lambda unit: unit.save(record), retry_policy=NO_RETRY)
    return IMPORTS.require(record.workspace_id, record_id=record.id)


def _is_warned(outcome: Outcome) -> bool:
    return outcome.code != REFUSED and bool(outcome.warnings)


def _end(job: Job, record: ImportRow, state: ImportState) -> None:
    if record.refused_at:
        rows_store.store_reports(record, record.refused_at)
    record.state, record.ended_at = state, clock.now()
    run_job_unit(job, lambda unit: unit.save(record), retry_policy=NO_RETRY)
    rows_store.delete_rows(record)
    if record.file_id:
        # The records have what the file has, and files are public for who knows the address.
        with suppress(NotFoundError):
            calls = JobCalls(job.workspace_id, record.id, record.account_id or "")
            calls("delete_file", {"id": record.file_id, "force": True})


@job_handler(IMPORT_EXPIRED)
def delete_expired(job: Job) -> None:
    """Delete the record of an import, and what it has stored."""

    def stage(unit: UnitOfWork) -> None:
        # Read with each attempt: a run of the import may save it meanwhile, and store more objects.
        record = IMPORTS.find(job.workspace_id, record_id=job.payload["importId"])
        if record is not None:
            object_store().delete_under(record.folder)
            unit.delete(record)

    run_job_unit(job, stage)
