"""Jobs that read the sources of bots and build their indexes.

A page is read again once a day, with the question to its server whether it has changed. The text of
an earlier read answers until a later one succeeds.

An object is stored before a record names it. A job that is scheduled before removes it if none
does, for example because the process died.

A change of a bot, a source, a page or a site is followed by a job for the workspace
(``followed_by`` of the listings). The job compares each bot's index with what it would contain now,
and builds the indexes that differ. Running it twice changes nothing.
"""

import logging
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from functools import partial
from hashlib import sha256
from threading import Lock
from time import monotonic

from chalicelib.core import clock, deadline
from chalicelib.core.errors import RateLimitedError
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import KNOWLEDGE_STALE, Job, job_handler
from chalicelib.core.limits import Limit
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.files.rules import stored_files
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.knowledge.flows import search
from chalicelib.domains.knowledge.flows.search import Passage
from chalicelib.domains.knowledge.rules import parsing, passages, quotas
from chalicelib.domains.knowledge.rules.passages import Document, fingerprint, page_source
from chalicelib.domains.knowledge.store import sources
from chalicelib.domains.knowledge.store.sources import SOURCES, IndexRow, SourceRow
from chalicelib.domains.sites.flows.site_pages import NOT_FOUND_SLUG
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import jobs, limits, locks
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import fetch, isolation
from chalicelib.gateways.fetch import Validators
from chalicelib.gateways.object_store import delete_unused, object_store
from chalicelib.gateways.public_http import FetchError
from chalicelib.lib import extracts

UNUSED_TEXT = "knowledge-text-unused"
UNUSED_TEXT_AFTER = timedelta(hours=1)
"""Age at which stored texts are checked for use. An operation takes a minute at most."""
TEXT_TYPE = "text/plain; charset=utf-8"


def digest_of(text: str) -> str:
    """Return the hash by which a text is compared with the former text of its source."""
    return sha256(text.encode()).hexdigest()


def store_in_unit(unit: UnitOfWork, source: SourceRow, text: str) -> None:
    """Store the text of a source, and set it in the record, which the caller stages.

    The new text is removed if the unit fails. A job removes a former one after ``UNUSED_AFTER``.
    """
    former = source.text_key

    def store() -> str:
        key = f"{sources.folder(unit.workspace_id, source.agent_id)}texts/{new_id()}.txt"
        # The job is written before the object, so that a process that dies leaves none behind.
        job = _removal_job(unit.workspace_id, source.id, [key, former], UNUSED_TEXT_AFTER)
        jobs.schedule(job)
        unit.on_failure(lambda: jobs.attempt(job, remove_unused_texts))
        object_store().put(key, text.encode(), TEXT_TYPE)
        return key

    source.set_text(unit.run_side_effect_once("text", store), text, digest_of(text))


def removal_job(workspace_id: str, source: SourceRow) -> JobRow:
    """Return the job that removes the text of a deleted source."""
    return _removal_job(workspace_id, source.id, [source.text_key], timedelta())


def _removal_job(
    workspace_id: str, source_id: str, keys: list[str | None], delay: timedelta
) -> JobRow:
    payload = {"sourceId": source_id, "keys": [key for key in keys if key]}
    return jobs.row(UNUSED_TEXT, workspace_id, payload, clock.now() + delay)


@job_handler(UNUSED_TEXT)
def remove_unused_texts(job: Job) -> None:
    """Remove the texts that the source does not use."""
    source = SOURCES.find(job.workspace_id, job.payload["sourceId"])
    delete_unused(job.payload["keys"], [source.text_key] if source else ())


SECONDS = 60.0
"""Seconds of work per job. Another job continues with the bots that are left."""
MAX_PAGES = 1000
"""Maximum number of indexed pages of a workspace. Pages of the oldest sites come first."""
MAX_PAGES_TEXT = 3_000_000
"""Maximum size, in bytes, of the indexed text of all pages."""
READERS = 8
"""Objects that are read at the same time."""
UNUSED_INDEX = "knowledge-index-unused"
UNUSED_INDEX_AFTER = timedelta(hours=1)
"""Age at which indexes are checked for use. Readers of a replaced index are done by then."""
INDEX_TYPE = "application/vnd.sqlite3"

_LOCKS = [Lock() for _ in range(64)]
"""Threads of this process build the indexes of a workspace one after another.

The second one then finds nothing to do, instead of doing the same work as the first.
"""

log = logging.getLogger(__name__)


@job_handler(KNOWLEDGE_STALE)
def refresh_indexes(job: Job) -> None:
    """Build those indexes of a workspace's bots that are outdated."""
    refresh(job.workspace_id, [entry.id for entry in AGENTS.entries(job.workspace_id)])


def refresh(workspace_id: str, bot_ids: Sequence[str]) -> None:
    """Build the indexes of some bots, if they differ from the current knowledge of the bots.

    After ``SECONDS``, and for an index that another process has published in the meantime, a job
    continues.

    Raises:
        Exception: the error of the first index that could not be built. The others are built.
    """
    if not bot_ids:
        return
    # Two builders in one process would do the same work twice, and only one could publish.
    with _LOCKS[zlib.crc32(workspace_id.encode()) % len(_LOCKS)]:
        end, failures = monotonic() + SECONDS, list[Exception]()
        # The rows are read before what is indexed. An index of older data then loses against one
        # that was published in the meantime.
        rows = sources.read_index_rows(workspace_id, bot_ids)
        site_texts = _Pages(workspace_id)
        for bot_id, row in rows.items():
            try:
                is_current = monotonic() < end and _refresh(workspace_id, bot_id, row, site_texts)
            except Exception as error:
                log.exception("a knowledge index was not built", extra={"agentId": bot_id})
                failures.append(error)  # one bot does not keep the others from theirs
            else:
                if not is_current:
                    jobs.schedule(jobs.for_changes(KNOWLEDGE_STALE, workspace_id))
        if failures:
            raise failures[0]


def _refresh(workspace_id: str, bot_id: str, row: IndexRow, site_texts: "_Pages") -> bool:
    """Build and publish the index of a bot if it differs.

    Return False if another builder was quicker.
    """
    own_documents = [
        Document(source.id, source.title, source.url or "", source.text_key)
        for source in sources.read_all(workspace_id, bot_id)
        if source.text_key
    ]
    now = fingerprint([*own_documents, *site_texts.documents])
    # The same fingerprint means the same documents, so nothing is built or stored.
    if row.version is not None and row.fingerprint == now:
        return True
    all_passages = [*_passages_of(own_documents), *site_texts.passages()]
    former, row.key, row.fingerprint, row.passages = row.key, None, now, len(all_passages)
    if all_passages:
        row.key = f"{sources.folder(workspace_id, bot_id)}indexes/{new_id()}.sqlite"
    payload = {"agentId": bot_id, "keys": [key for key in (former, row.key) if key]}
    # The job is there before the object, so that a process that dies leaves nothing behind.
    jobs.schedule(jobs.row(UNUSED_INDEX, workspace_id, payload, clock.now() + UNUSED_INDEX_AFTER))
    if row.key:
        object_store().put(row.key, search.build(all_passages), INDEX_TYPE)
    return sources.publish(row)


@job_handler(UNUSED_INDEX)
def remove_unused_indexes(job: Job) -> None:
    """Remove indexes that were replaced, or never published."""
    row = sources.find(job.workspace_id, job.payload["agentId"])
    delete_unused(job.payload["keys"], [row.key] if row else ())


class _Pages:
    """The published pages of a workspace's active sites, read once for all bots of a job."""

    def __init__(self, workspace_id: str) -> None:
        self.documents = _published(workspace_id)
        self._passages: list[Passage] | None = None

    def passages(self) -> list[Passage]:
        """Return the passages of the pages, up to ``MAX_PAGES_TEXT``."""
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
    """Return the pages that visitors can see, by site and in the order of the site."""
    documents: list[Document] = []
    for entry in SITES.entries(workspace_id, status="active"):
        _, rows = pages.read_site_and_pages(workspace_id, entry.id)
        documents += [
            Document(page_source(page.id), page.title, page.canonical_url, page.html_key)
            for page in rows
            if page.html_key and page.slug != NOT_FOUND_SLUG
        ]
    return documents[:MAX_PAGES]


def _passages_of(documents: Sequence[Document], *, is_html: bool = False) -> Iterator[Passage]:
    """Yield the passages of documents. An object that was just replaced yields none.

    Another job is on its way then.
    """
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


FETCH = "knowledge-fetch"
REFRESH_AFTER = timedelta(days=1)
MAX_FAILURES = 7
"""Maximum number of failed reads of a page in a row. The page is not read again then."""
FETCHES = Limit(
    "knowledge-fetches", "pages per day read for the bots of a workspace", 500, timedelta(days=1)
)
OVER_BUDGET = "The workspace's pages of today are used up. This one is read tomorrow."
MISSING_FILE = "The file is missing. Upload it again, and add it as a new source."
TOO_SLOW = "The file is too complex: it took longer than 20 seconds to read."
NOT_READ = "The file could not be read. It is damaged, or needs too much memory."
NOT_FETCHED = "The page was not read:"
"""Begins the reason why a page was not read. A clause of the fetcher follows."""
STILL_ANSWERS = "The bot still answers from the text that was read before."
GIVEN_UP = (
    f"It failed {MAX_FAILURES} times in a row and is not read again: delete this source, or add "
    "it once more."
)
_PARSER = "chalicelib.domains.knowledge.rules.parsing:read_text"


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of a read with a text or a problem.

    Both are missing if the source has not changed.
    """

    text: str = ""
    problem: str = ""
    validators: Validators | None = None


def stage_fetch(unit: UnitOfWork, source: SourceRow, delay: timedelta = timedelta()) -> None:
    """Stage the job that reads a source next.

    The caller stages the source.
    """
    source.fetch_id = new_id()
    payload = {"sourceId": source.id, "fetchId": source.fetch_id}
    unit.save(jobs.row(FETCH, unit.workspace_id, payload, clock.now() + delay))


@job_handler(FETCH)
def fetch_source(job: Job) -> None:
    """Read a source, unless another job has read it since or will read it."""
    source = _awaiting(job)
    # A user may have replaced or deleted the source since the job was written.
    if source is None:
        return
    if source.kind == sources.URL and not _take_from_budget(job.workspace_id):
        outcome = None
    else:
        outcome = _read_url(source) if source.kind == sources.URL else _read_file(job, source)
    # Not in the audit log, which a daily line for each page would fill. If the answer to the
    # transaction is lost, the next run of the job sees by the ``fetch_id`` what has happened.
    run_unit(job.workspace_id, None, partial(_record, job=job, outcome=outcome))
    there = sources.read_all(job.workspace_id, source.agent_id)
    if source.status == sources.PENDING and not any(
        source.status == sources.PENDING for source in there
    ):
        # The last of the new sources need not wait for the job that follows their changes.
        refresh(job.workspace_id, [source.agent_id])


def _awaiting(job: Job) -> SourceRow | None:
    """Return the source of a job, or None if it does not wait for this job."""
    source = SOURCES.find(job.workspace_id, job.payload["sourceId"])
    return source if source and source.fetch_id == job.payload["fetchId"] else None


def _take_from_budget(workspace_id: str) -> bool:
    try:
        limits.take(FETCHES, workspace_id)
    except RateLimitedError:
        return False
    return True


def _record(unit: UnitOfWork, job: Job, outcome: _Outcome | None) -> None:
    """Stage what a read has changed, and the next read of a page.

    Without an outcome, the read is postponed.
    """
    source = _awaiting(job)
    if source is None:
        return
    lock = locks.lock_row(unit.workspace_id, sources.lock_name(source.agent_id))
    # The next read gets a new id, so that a job that runs twice does nothing the second time.
    source.fetch_id = None
    if outcome is None:
        source.error = OVER_BUDGET
    elif problem := outcome.problem or _store_text(unit, source, outcome):
        _fail(source, problem)
    else:
        source.status, source.error, source.failures = sources.READY, None, 0
    if source.kind == sources.URL and source.failures < MAX_FAILURES:
        stage_fetch(unit, source, REFRESH_AFTER)
    unit.save(lock)
    unit.save(source)


def _store_text(unit: UnitOfWork, source: SourceRow, outcome: _Outcome) -> str | None:
    """Store the text of a read.

    If the bot has no room for the text, return a sentence that says so.
    """
    text = outcome.text
    if text and source.digest != digest_of(text):
        # Most reads return the text that is stored already, which costs no write.
        there = sources.read_all(unit.workspace_id, source.agent_id)
        others = quotas.used(bot_source for bot_source in there if bot_source.id != source.id)
        if too_much := quotas.problem(others, text):
            return too_much
        store_in_unit(unit, source, text)
    if outcome.validators is not None:
        source.fetched_url, source.etag, source.last_modified = (
            value or None for value in outcome.validators
        )
    return None


def _fail(source: SourceRow, problem: str) -> None:
    """Set the state of a source after a failed read.

    The bot keeps answering from the text of an earlier read.
    """
    source.failures = int(source.failures) + 1
    former = f" {STILL_ANSWERS}" if source.text_key else ""
    last = source.kind == sources.URL and source.failures >= MAX_FAILURES
    stopped = f" {GIVEN_UP}" if last else ""
    # The earlier text still answers, so the source counts as ready.
    source.status = sources.READY if source.text_key and not last else sources.FAILED
    source.error = f"{problem}{former}{stopped}"


def _read_url(source: SourceRow) -> _Outcome:
    validators = None
    # Without a stored text, the answer that nothing has changed would leave the source empty.
    if source.fetched_url and source.text_key:
        validators = Validators(source.fetched_url, source.etag or "", source.last_modified or "")
    try:
        fetched = fetch.fetch(
            str(source.url), allow_http=True, max_bytes=parsing.MAX_BYTES, validators=validators
        )
    except FetchError as error:
        return _Outcome(problem=f"{NOT_FETCHED} {error.reason}.")
    if fetched.unchanged:
        return _Outcome()
    mime_type = stored_files.sniff(fetched.body)
    parser = parsing.parser_for(mime_type)
    if parser is None:
        return _Outcome(problem=f"Expected a web page, plain text or a PDF, received {mime_type}.")
    declared = Message()
    declared["Content-Type"] = fetched.content_type
    outcome = _parse(parser, fetched.body, declared.get_content_charset())
    return _Outcome(outcome.text, outcome.problem, fetched.validators)


def _read_file(job: Job, source: SourceRow) -> _Outcome:
    file = FILES.find(job.workspace_id, source.file_id) if source.file_id else None
    body = object_store().get(file.key) if file else None
    if file is None or body is None:
        return _Outcome(problem=MISSING_FILE)
    return _parse(parsing.PARSED_TYPES[file.mime_type], body, None)


def _parse(parser: str, body: bytes, charset: str | None) -> _Outcome:
    # The parser runs in a process of its own, because the file comes from a stranger.
    try:
        return _Outcome(isolation.call(_PARSER, body, parser, charset))
    except isolation.RaisedError as error:
        return _Outcome(problem=str(error))
    except isolation.TooSlowError:
        return _Outcome(problem=TOO_SLOW)
    except isolation.IsolationError:
        log.warning("a file was not parsed", exc_info=True, extra={"parser": parser})
        return _Outcome(problem=NOT_READ)
