"""Texts of sources in the object store. A job removes an object that no record names."""

from datetime import timedelta
from hashlib import sha256

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import Job, JobKind, job_handler
from chalicelib.domains.knowledge.store import sources
from chalicelib.domains.knowledge.store.sources import SOURCES, SourceRow
from chalicelib.engine import jobs
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways.object_store import delete_unused, object_store

UNUSED_TEXT = JobKind("knowledge-text-unused")
# Stored texts are checked for use at this age. An operation takes a minute at most.
UNUSED_TEXT_AFTER = timedelta(hours=1)
TEXT_TYPE = "text/plain; charset=utf-8"


def digest_of(text: str) -> str:
    """Return the hash by which a text is compared with the former text of its source."""
    return sha256(text.encode()).hexdigest()


def store_in_unit(unit: UnitOfWork, source: SourceRow, text: str) -> None:
    """Store the text of a source, and set it in the record, which the caller stages."""
    former = source.text_key

    def store() -> str:
        key = f"{sources.folder(unit.workspace_id, agent_id=source.agent_id)}texts/{new_id()}.txt"
        # The job is written before the object, so that a process that dies leaves none behind.
        # The job removes the new text if the unit fails, and the former one after a while.
        job = _removal_job(
            unit.workspace_id, source_id=source.id, keys=[key, former], delay=UNUSED_TEXT_AFTER
        )
        jobs.schedule(job)
        unit.on_failure(lambda: jobs.attempt(job, remove_unused_texts))
        object_store().put(key, text.encode(), TEXT_TYPE)
        return key

    source.set_text(unit.run_side_effect_once("text", store), text=text, digest=digest_of(text))


def removal_job(workspace_id: str, source: SourceRow) -> JobRow:
    """Return the job that removes the text of a deleted source."""
    return _removal_job(
        workspace_id, source_id=source.id, keys=[source.text_key], delay=timedelta()
    )


def _removal_job(
    workspace_id: str, *, source_id: str, keys: list[str | None], delay: timedelta
) -> JobRow:
    payload = {"sourceId": source_id, "keys": [key for key in keys if key]}
    return jobs.row(UNUSED_TEXT, workspace_id, payload, clock.now() + delay)


@job_handler(UNUSED_TEXT)
def remove_unused_texts(job: Job) -> None:
    """Remove the texts that the source does not use."""
    source = SOURCES.find(job.workspace_id, record_id=job.payload["sourceId"])
    delete_unused(job.payload["keys"], [source.text_key] if source else ())
