"""Store the sources of a bot's knowledge. Their text is in the object store."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.knowledge.rules.job_kinds import FETCH
from chalicelib.domains.knowledge.rules.problems import FILE_DELETED, Problem
from chalicelib.engine import jobs
from chalicelib.engine.file_uses import ShownFiles
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.tables import JsonAttribute, Record
from chalicelib.engine.unit import UnitOfWork

TEXT, URL, FILE = "text", "url", "file"
PENDING, READY, FAILED = "pending", "ready", "failed"


class SourceRow(Record):
    """A source. A source with a ``text_key`` answers, whatever its state."""

    agent_id = UnicodeAttribute()
    title = UnicodeAttribute()
    kind = UnicodeAttribute()
    status = UnicodeAttribute()
    error = UnicodeAttribute(null=True)
    # Codes and facts of the sentences in ``error``. Rows of earlier releases have none.
    error_details: JsonAttribute = JsonAttribute(null=True)
    chars = NumberAttribute(default=0)
    size = NumberAttribute(default=0)  # bytes of the text
    digest = UnicodeAttribute(null=True)  # of the text
    text_key = UnicodeAttribute(null=True)
    url = UnicodeAttribute(null=True)
    file_id = UnicodeAttribute(null=True)
    # The job that reads it next; other jobs for the source do nothing.
    fetch_id = UnicodeAttribute(null=True)
    # The server there sent ``etag`` and ``last_modified``.
    fetched_url = UnicodeAttribute(null=True)
    etag = UnicodeAttribute(null=True)
    last_modified = UnicodeAttribute(null=True)
    failures = NumberAttribute(default=0)  # failed reads in a row

    def set_text(self, key: str, *, text: str, digest: str) -> None:
        self.text_key, self.digest = key, digest
        self.chars, self.size = len(text), len(text.encode())

    def set_problems(self, *problems: Problem) -> None:
        """Set what went wrong when the source was last read."""
        self.error = " ".join(problem.message for problem in problems) or None
        self.error_details = [problem.detail() for problem in problems] or None


def _shown_files(source: SourceRow) -> Iterable[str]:
    return [source.file_id] if source.file_id else []


def _lose_file(source: SourceRow, _file_id: str) -> None:
    source.status = FAILED
    source.set_problems(FILE_DELETED)
    # Without its ``fetch_id``, the job that would read the file does nothing.
    source.file_id = source.text_key = source.digest = source.fetch_id = None
    source.chars = source.size = 0


def stage_fetch(unit: UnitOfWork, source: SourceRow, delay: timedelta = timedelta()) -> None:
    """Stage the job that reads a source next. The caller stages the source."""
    source.fetch_id = new_id()
    payload = {"sourceId": source.id, "fetchId": source.fetch_id}
    unit.save(jobs.row(FETCH, unit.workspace_id, payload, clock.now() + delay))


def _read_again(unit: UnitOfWork, source: SourceRow, _file: Any) -> None:  # noqa: ANN401  a file's row
    stage_fetch(unit, source)


SOURCES = register_listing(
    Listing(
        row=SourceRow,
        noun="KNOWLEDGE",
        not_found_message="The bot has no source with this id. List its sources to find valid ids.",
        text=lambda source: (source.title,),
        uncounted=True,
        sorts={"createdAt": "id"},
        parent="agent_id",
        presence=("text_key",),
        files=ShownFiles(_shown_files, _lose_file, _read_again),
        followed_by=KNOWLEDGE_STALE,
    )
)


def lock_name(agent_id: str) -> str:
    """Return the name of the lock row (``engine.locks``) for the total of a bot's sources."""
    return f"knowledge#{agent_id}"


def read_all(workspace_id: str, *, agent_id: str) -> list[SourceRow]:
    """Return a bot's sources, in the order of their creation."""
    ids = [entry.id for entry in SOURCES.entries(workspace_id, agent_id)]
    return sorted(SOURCES.fetch(workspace_id, ids), key=lambda source: source.id)


def answering_ids(workspace_id: str, *, agent_id: str) -> set[str]:
    """Return the ids of a bot's sources that have a text, in one request."""
    source_entries = SOURCES.entries(workspace_id, agent_id, present="text_key")
    return {entry.id for entry in source_entries}


def folder(workspace_id: str, *, agent_id: str) -> str:
    """Return the object-store prefix of a bot's texts and indexes."""
    return f"{workspace_id}/knowledge/{agent_id}/"
