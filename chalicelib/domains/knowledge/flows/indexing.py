"""Build the indexes of a workspace's bots after a change (ADR 56).

A change of a bot, a source, a page or a site is followed by a job for the workspace
(``followed_by`` of the listings). The job compares each bot's index with what it would contain now,
and builds the indexes that differ. Running it twice changes nothing.
"""

import logging
import zlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from threading import Lock
from time import monotonic

from chalicelib.core import clock, deadline
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import KNOWLEDGE_STALE, Job, JobKind, job_handler
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.knowledge.flows import index_file
from chalicelib.domains.knowledge.flows.index_file import Passage
from chalicelib.domains.knowledge.rules import passages
from chalicelib.domains.knowledge.rules.passages import Document, fingerprint, page_source
from chalicelib.domains.knowledge.store import indexes, sources
from chalicelib.domains.knowledge.store.indexes import IndexRow
from chalicelib.domains.sites.flows.site_pages import NOT_FOUND_SLUG
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import jobs
from chalicelib.gateways.object_store import delete_unused, object_store
from chalicelib.lib import extracts

SECONDS = 60.0  # of work per job; another job continues with the bots that are left
MAX_PAGES = 1000  # indexed pages of a workspace; pages of the oldest sites come first
MAX_PAGES_TEXT = 3_000_000  # bytes of the indexed text of all pages
READERS = 8  # objects that are read at the same time
UNUSED_INDEX = JobKind("knowledge-index-unused")
# Indexes are checked for use at this age. Readers of a replaced index are done by then.
UNUSED_INDEX_AFTER = timedelta(hours=1)
INDEX_TYPE = "application/vnd.sqlite3"
# Threads of this process build the indexes of a workspace one after another. The second one then
# finds nothing to do, instead of doing the same work as the first.
_LOCKS = [Lock() for _ in range(64)]
log = logging.getLogger(__name__)


@job_handler(KNOWLEDGE_STALE)
def refresh_indexes(job: Job) -> None:
    """Build those indexes of a workspace's bots that are outdated."""
    refresh(job.workspace_id, [entry.id for entry in AGENTS.entries(job.workspace_id)])


def refresh(workspace_id: str, bot_ids: Sequence[str]) -> None:
    """Build the indexes of some bots, if they differ from the current knowledge of the bots.

    After ``SECONDS``, and for an index that another process has published in the meantime, a job
    continues. Raises the error of the first index that could not be built; the others are built.
    """
    if not bot_ids:
        return
    # Two builders in one process would do the same work twice, and only one could publish.
    with _LOCKS[zlib.crc32(workspace_id.encode()) % len(_LOCKS)]:
        end, failures = monotonic() + SECONDS, list[Exception]()
        # The rows are read before what is indexed. An index of older data then loses against one
        # that was published in the meantime.
        rows = indexes.read_index_rows(workspace_id, bot_ids)
        site_texts = _Pages(workspace_id)
        for bot_id, row in rows.items():
            try:
                is_current = monotonic() < end and _refresh(
                    workspace_id, bot_id=bot_id, row=row, site_texts=site_texts
                )
            except Exception as error:
                log.exception("a knowledge index was not built", extra={"agentId": bot_id})
                failures.append(error)  # one bot does not keep the others from theirs
            else:
                if not is_current:
                    jobs.schedule(jobs.for_changes(KNOWLEDGE_STALE, workspace_id))
        if failures:
            raise failures[0]


def _refresh(workspace_id: str, *, bot_id: str, row: IndexRow, site_texts: "_Pages") -> bool:
    own_documents = [
        Document(source.id, source.title, source.url or "", source.text_key)
        for source in sources.read_all(workspace_id, agent_id=bot_id)
        if source.text_key
    ]
    now = fingerprint([*own_documents, *site_texts.documents])
    # The same fingerprint means the same documents, so nothing is built or stored.
    if row.version is not None and row.fingerprint == now:
        return True
    all_passages = [*_passages_of(own_documents), *site_texts.passages()]
    former, row.key, row.fingerprint, row.passages = row.key, None, now, len(all_passages)
    if all_passages:
        row.key = f"{sources.folder(workspace_id, agent_id=bot_id)}indexes/{new_id()}.sqlite"
    payload = {"agentId": bot_id, "keys": [key for key in (former, row.key) if key]}
    # The job is there before the object, so that a process that dies leaves nothing behind.
    jobs.schedule(jobs.row(UNUSED_INDEX, workspace_id, payload, clock.now() + UNUSED_INDEX_AFTER))
    if row.key:
        object_store().put(row.key, index_file.build(all_passages), INDEX_TYPE)
    return indexes.publish(row)


@job_handler(UNUSED_INDEX)
def remove_unused_indexes(job: Job) -> None:
    """Remove indexes that were replaced, or never published."""
    row = indexes.find(job.workspace_id, agent_id=job.payload["agentId"])
    delete_unused(job.payload["keys"], [row.key] if row else ())


class _Pages:
    def __init__(self, workspace_id: str) -> None:
        self.documents = _published(workspace_id)  # read once for all bots of a job
        self._passages: list[Passage] | None = None

    def passages(self) -> list[Passage]:
        if self._passages is None:
            self._passages, size = [], 0
            for passage in _passages_of(self.documents, is_html=True):
                size += len(passage.text.encode())
                if size > MAX_PAGES_TEXT:
                    log.warning("not all pages of the workspace's sites were indexed")
                    break
                self._passages.append(passage)
        return self._passages


def _published(workspace_id: str) -> list[Document]:
    documents: list[Document] = []
    for entry in SITES.entries(workspace_id, status="active"):
        _, rows = pages.read_site_and_pages(workspace_id, site_id=entry.id)
        documents += [
            Document(page_source(page.id), page.title, page.canonical_url, page.html_key)
            for page in rows
            if page.html_key and page.slug != NOT_FOUND_SLUG
        ]
    return documents[:MAX_PAGES]


def _passages_of(documents: Sequence[Document], *, is_html: bool = False) -> Iterator[Passage]:
    # An object that was just replaced has no passages: another job is on its way then.
    for at in range(0, len(documents), READERS):
        some = documents[at : at + READERS]
        bodies = deadline.map_in_threads(
            lambda document: object_store().get(document.key), some, READERS
        )
        for document, body in zip(some, bodies, strict=True):
            text = (body or b"").decode(errors="replace")
            full_text = passages.normal_form(extracts.plain_text(text)) if is_html else text
            for passage in passages.split(full_text):
                yield Passage(document.source_id, document.title, document.url, passage)
