"""Read the pages and files that sources name, in jobs.

A page is read again once a day, with the question to its server whether it has changed. The text of
an earlier read answers until a later one succeeds.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from functools import partial

from chalicelib.core.errors import RateLimitedError
from chalicelib.core.jobs import Job, job_handler
from chalicelib.core.limits import Limit
from chalicelib.domains.files.rules import file_types
from chalicelib.domains.files.store.files import FILES
from chalicelib.domains.knowledge.flows.indexing import refresh
from chalicelib.domains.knowledge.flows.source_texts import digest_of, store_in_unit
from chalicelib.domains.knowledge.rules import parsing, problems, quotas
from chalicelib.domains.knowledge.rules.job_kinds import FETCH
from chalicelib.domains.knowledge.rules.problems import MAX_FAILURES, Problem, ProblemCode
from chalicelib.domains.knowledge.store import sources
from chalicelib.domains.knowledge.store.sources import SOURCES, SourceRow, stage_fetch
from chalicelib.engine import limits, locks
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import fetch, isolation
from chalicelib.gateways.fetch import Validators
from chalicelib.gateways.object_store import object_store
from chalicelib.gateways.public_http import FetchError

log = logging.getLogger(__name__)
REFRESH_AFTER = timedelta(days=1)
FETCHES = Limit(
    "knowledge-fetches", "pages per day read for the bots of a workspace", 500, timedelta(days=1)
)
_PARSER = "chalicelib.domains.knowledge.rules.parsing:read_text"


@dataclass(frozen=True, slots=True)
class _Outcome:
    # A text or a problem. Both are missing if the source has not changed.
    text: str = ""
    problem: Problem | None = None
    validators: Validators | None = None


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
    there = sources.read_all(job.workspace_id, agent_id=source.agent_id)
    if source.status == sources.PENDING and not any(
        source.status == sources.PENDING for source in there
    ):
        # The last of the new sources need not wait for the job that follows their changes.
        refresh(job.workspace_id, [source.agent_id])


def _awaiting(job: Job) -> SourceRow | None:
    source = SOURCES.find(job.workspace_id, record_id=job.payload["sourceId"])
    return source if source and source.fetch_id == job.payload["fetchId"] else None


def _take_from_budget(workspace_id: str) -> bool:
    try:
        limits.take(FETCHES, workspace_id)
    except RateLimitedError:
        return False
    return True


def _record(unit: UnitOfWork, job: Job, outcome: _Outcome | None) -> None:
    # Without an outcome, the read is postponed.
    source = _awaiting(job)
    if source is None:
        return
    lock = locks.lock_row(unit.workspace_id, what=sources.lock_name(source.agent_id))
    # The next read gets a new id, so that a job that runs twice does nothing the second time.
    source.fetch_id = None
    if outcome is None:
        source.set_problems(problems.OVER_BUDGET)
    elif problem := outcome.problem or _store_text(unit, source, outcome):
        _fail(source, problem)
    else:
        source.status, source.failures = sources.READY, 0
        source.set_problems()
    if source.kind == sources.URL and source.failures < MAX_FAILURES:
        stage_fetch(unit, source, REFRESH_AFTER)
    unit.save(lock)
    unit.save(source)


def _store_text(unit: UnitOfWork, source: SourceRow, outcome: _Outcome) -> Problem | None:
    text = outcome.text
    if text and source.digest != digest_of(text):
        # Most reads return the text that is stored already, which costs no write.
        there = sources.read_all(unit.workspace_id, agent_id=source.agent_id)
        others = quotas.used(bot_source for bot_source in there if bot_source.id != source.id)
        if too_much := quotas.problem(others, text):
            return too_much
        store_in_unit(unit, source, text)
    if outcome.validators is not None:
        source.fetched_url, source.etag, source.last_modified = (
            value or None for value in outcome.validators
        )
    return None


def _fail(source: SourceRow, problem: Problem) -> None:
    # The bot keeps answering from the text of an earlier read.
    source.failures = int(source.failures) + 1
    former = [problems.STILL_ANSWERS] if source.text_key else []
    last = source.kind == sources.URL and source.failures >= MAX_FAILURES
    stopped = [problems.GIVEN_UP] if last else []
    # The earlier text still answers, so the source counts as ready.
    source.status = sources.READY if source.text_key and not last else sources.FAILED
    source.set_problems(problem, *former, *stopped)


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
        return _Outcome(problem=problems.not_fetched(error.reason))
    if fetched.unchanged:
        return _Outcome()
    mime_type = file_types.sniff(fetched.body)
    parser = parsing.parser_for(mime_type)
    if parser is None:
        return _Outcome(problem=problems.wrong_type(mime_type))
    declared = Message()
    declared["Content-Type"] = fetched.content_type
    outcome = _parse(parser, fetched.body, declared.get_content_charset())
    return _Outcome(outcome.text, outcome.problem, fetched.validators)


def _read_file(job: Job, source: SourceRow) -> _Outcome:
    file = FILES.find(job.workspace_id, record_id=source.file_id) if source.file_id else None
    body = object_store().get(file.key) if file else None
    if file is None or body is None:
        return _Outcome(problem=problems.MISSING_FILE)
    # A source begins with a smaller file, which may be replaced by a larger one.
    if len(body) > parsing.MAX_BYTES:
        return _Outcome(problem=problems.NOT_READ)
    return _parse(parsing.PARSED_TYPES[file.mime_type], body, None)


def _parse(parser: str, body: bytes, charset: str | None) -> _Outcome:
    # The parser runs in a process of its own, because the file comes from a stranger.
    try:
        return _Outcome(isolation.call(_PARSER, body, parser, charset))
    except isolation.RaisedError as error:
        code, message, facts = error.args
        return _Outcome(problem=Problem(ProblemCode(code), message, facts))
    except isolation.TooSlowError:
        return _Outcome(problem=problems.TOO_SLOW)
    except isolation.IsolationError:
        log.warning("a file was not parsed", exc_info=True, extra={"parser": parser})
        return _Outcome(problem=problems.NOT_READ)
