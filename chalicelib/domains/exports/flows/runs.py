"""Continue an export in a job until its file is complete.

A run of the job ends after ``RUN_SECONDS``, and the next one continues. Each saves what it has
written before the row says so: a run that is killed leaves objects that its successor replaces, and
no part of a file that nothing knows.
"""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from chalicelib.core import clock, deadline
from chalicelib.core.errors import NotFoundError, UnavailableError
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.core.retry import NO_RETRY
from chalicelib.domains.exports.flows.exporting import (
    END,
    READERS,
    Cursor,
    Exporter,
    Found,
    count_records,
)
from chalicelib.domains.exports.rules.archive import Archive, ArchiveEntry
from chalicelib.domains.exports.rules.job_kinds import EXPORT, EXPORT_EXPIRED
from chalicelib.domains.exports.store.exports import (
    EXPORTS,
    FAILED,
    READY,
    RUNNING,
    ExportRow,
)
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_job_unit, run_unit
from chalicelib.gateways.object_store import MIN_PART_BYTES, UploadGoneError, object_store

RUN_SECONDS = 30.0
"""The time of one run. A Lambda run has five minutes, which it shares with other jobs."""
PART_BYTES = 8 * 1024 * 1024
GIVEN_UP_AFTER = timedelta(days=1)
CONTENT_TYPE = "application/zip"


@job_handler(EXPORT)
def continue_export(job: Job) -> None:
    """Write what is missing of an export, for as long as one run takes.

    Raises:
        Postponed: another run continues.
    """
    export = EXPORTS.find(job.workspace_id, record_id=job.payload["exportId"])
    if export is None or export.state != RUNNING:
        return
    try:
        _continue(job, export)
    except (NotFoundError, UnavailableError):
        if EXPORTS.find(job.workspace_id, record_id=export.id) is not None:
            raise
        # A test workspace was emptied meanwhile.
        object_store().delete_under(export.folder)


def _continue(job: Job, export: ExportRow) -> None:
    if clock.now() > export.created_at + GIVEN_UP_AFTER:
        _end(job, export, FAILED)
        return
    try:
        is_complete = _Run(export).write()
    except UploadGoneError:
        # It was completed by a run that died before it could say so, or the store has dropped it.
        is_complete = object_store().size(export.key) is not None
    else:
        if not is_complete:
            raise Postponed(clock.now())
    export = EXPORTS.require(job.workspace_id, record_id=export.id)
    if not is_complete:
        export.begin_again()
        _save(export)
        raise Postponed(clock.now())
    _end(job, export, READY)


@job_handler(EXPORT_EXPIRED)
def delete_expired(job: Job) -> None:
    """Delete the file and the record of an export, and what an unfinished one has stored."""

    def stage(unit: UnitOfWork) -> None:
        # Read with each attempt: a run of the export may save it meanwhile, and store more objects.
        export = EXPORTS.find(job.workspace_id, record_id=job.payload["exportId"])
        if export is not None:
            _delete_objects(export, with_file=True)
            unit.delete(export)

    run_job_unit(job, stage)


def _save(export: ExportRow) -> None:
    # If another run has saved the export, the save fails, and the other run continues.
    run_unit(export.workspace_id, None, lambda unit: unit.save(export), retry_policy=NO_RETRY)


def _end(job: Job, export: ExportRow, state: str) -> None:
    export.state = state
    run_job_unit(job, lambda unit: unit.save(export), retry_policy=NO_RETRY)
    _delete_objects(export, with_file=state == FAILED)


def _delete_objects(export: ExportRow, *, with_file: bool) -> None:
    store = object_store()
    if export.upload_id and export.state != READY:
        store.abort_parts(export.key, export.upload_id)
    store.delete_under(export.folder if with_file else f"{export.folder}work/")


class _Run:
    """One run of an export, which begins with what the runs before have saved."""

    def __init__(self, export: ExportRow) -> None:
        self._export = export
        self._found = Found(records=int(export.records))
        self._missing_before = int(export.missing)
        self._tags: list[str] = []
        entries: list[ArchiveEntry] = []
        pending = b""
        for number in range(1, int(export.saves) + 1):
            saved = json.loads(self._read(number, "json"))
            entries += [ArchiveEntry(*entry) for entry in saved["entries"]]
            for name, ids in saved["subjects"].items():
                self._found.subjects[name].update(ids)
            if saved["tag"] is not None:
                self._tags.append(saved["tag"])
            elif number == export.saves:  # Later parts contain what earlier saves left.
                pending = self._read(number, "bin")
        self._saved_entries = len(entries)
        self._saved_subjects = {name: {*ids} for name, ids in self._found.subjects.items()}
        self._archive = Archive(int(export.taken), entries, pending)
        self._archive.counts = Counter(export.counts)

    def write(self) -> bool:
        """Write until the file is complete, or the time is up. Return whether it is complete."""
        export, archive = self._export, self._archive
        workspace = workspaces.get(export.workspace_id)
        exporter = Exporter(workspace, archive, self._found, has_money=export.has_money)
        if export.step is None:
            cursor = Cursor()
            export.expected = count_records(workspace.id)
        else:
            cursor = Cursor(export.step, export.after or "")
        limit = deadline.Deadline(RUN_SECONDS)
        with ThreadPoolExecutor(READERS) as pool:
            for following in exporter.write(cursor, pool):
                if archive.pending >= PART_BYTES or (limit.passed and following.step != END):
                    self._save(following)
                    if limit.passed:
                        return False
        archive.complete(export.header)
        self._tags.append(self._put_part(archive.take()))
        object_store().complete_parts(export.key, self._upload_id(), self._tags)
        self._store(size=archive.size)
        return True

    def _save(self, cursor: Cursor) -> None:
        """Store what was written, and then the place where the next run continues."""
        export, archive, store = self._export, self._archive, object_store()
        archive.flush()
        written, tag = archive.take(), None
        number = int(export.saves) + 1
        if len(written) >= MIN_PART_BYTES:
            tag = self._put_part(written)
            self._tags.append(tag)
            export.parts, export.taken = len(self._tags), int(export.taken) + len(written)
        else:
            store.put(self._key(number, "bin"), written, "application/octet-stream")
        subjects = {
            name: sorted(ids - self._saved_subjects.get(name, set()))
            for name, ids in self._found.subjects.items()
        }
        entries = archive.entries[self._saved_entries :]
        saved = {"tag": tag, "entries": entries, "subjects": subjects}
        store.put(self._key(number, "json"), json.dumps(saved).encode(), "application/json")
        self._saved_entries = len(archive.entries)
        self._saved_subjects = {name: {*ids} for name, ids in self._found.subjects.items()}
        self._store(saves=number, step=cursor.step, after=cursor.after or None)

    def _store(self, **changes: Any) -> None:  # noqa: ANN401  attributes of the row
        export = self._export
        export.records, export.counts = self._found.records, dict(self._archive.counts)
        export.missing = self._missing_before + len(self._found.missing)
        for name, value in changes.items():
            setattr(export, name, value)
        _save(export)
        # The next save changes the row that this one has written.
        self._export = EXPORTS.require(export.workspace_id, record_id=export.id)

    def _put_part(self, body: bytes) -> str:
        number, store = len(self._tags) + 1, object_store()
        return store.put_part(self._export.key, self._upload_id(), number=number, body=body)

    def _upload_id(self) -> str:
        # An upload that no row names, because the run died, ends with the bucket's rule.
        export = self._export
        if export.upload_id is None:
            export.upload_id = object_store().begin_parts(
                export.key, CONTENT_TYPE, {"Content-Disposition": "attachment"}
            )
        upload_id: str = export.upload_id
        return upload_id

    def _key(self, number: int, suffix: str) -> str:
        return f"{self._export.folder}work/{number}.{suffix}"

    def _read(self, number: int, suffix: str) -> bytes:
        body = object_store().get(self._key(number, suffix))
        if body is None:
            raise UnavailableError
        return body
