"""Search the sources of a bot and the pages of its workspace's sites."""

import logging
import sqlite3
from concurrent.futures import Future
from pathlib import Path
from time import monotonic

from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.knowledge.flows.index_cache import index_cache
from chalicelib.domains.knowledge.flows.index_file import Passage, search
from chalicelib.domains.knowledge.rules.passages import is_page
from chalicelib.domains.knowledge.store import indexes, sources
from chalicelib.engine import jobs

LOADING_SECONDS = 0.3  # after which a bot answers without the index, and loading continues
NOT_LOADED = "a knowledge index was not loaded"  # a line of the log, which a metric counts
log = logging.getLogger(__name__)


def find(workspace_id: str, *, bot_id: str, question: str, limit: int) -> list[Passage]:
    """Return up to ``limit`` passages that fit a question, best match first.

    There are none without an index, or if it cannot be loaded in ``LOADING_SECONDS``. Raises
    UnavailableError if the database cannot be read.
    """
    row = indexes.find(workspace_id, agent_id=bot_id)
    if row is None:
        # A bot or an installation from before the first index. Later changes schedule the job.
        jobs.schedule(jobs.for_changes(KNOWLEDGE_STALE, workspace_id))
        return []
    if row.key is None:
        return []
    # The index loads while the database is read.
    begun, loading = monotonic(), index_cache().request(row.key)
    answering = sources.answering_ids(workspace_id, agent_id=bot_id)
    path = _loaded(loading, LOADING_SECONDS - (monotonic() - begun), row.key)
    if path is None:
        return []
    try:
        # Sources may have been deleted since.
        return search(path, question, limit, lambda id_: is_page(id_) or id_ in answering)
    except sqlite3.Error:
        # Another thread has removed the file to make room, or the disk has damaged it.
        index_cache().forget(row.key)
        log.warning(NOT_LOADED, exc_info=True, extra={"index": row.key})
        return []


def _loaded(loading: "Future[Path]", seconds: float, key: str) -> Path | None:
    try:
        return loading.result(max(0.0, seconds))
    except (OSError, UnavailableError) as error:
        log.warning(NOT_LOADED, extra={"index": key, "cause": type(error).__name__})
        return None
