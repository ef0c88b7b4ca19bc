"""Search the sources of a bot and the pages of its workspace's sites.

The file of an index: passages in SQLite, with an FTS5 table of their stems (ADR 56).

The file is made in memory, stored as an object, and only read afterwards.

Copies of index files on the local disk, in ``/tmp`` on Lambda.

A file never changes under its key, so a copy is valid for ever. A process keeps the files that it
used last.
"""

import atexit
import logging
import shutil
import sqlite3
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from secrets import token_hex
from threading import Lock
from time import monotonic
from typing import NamedTuple
from urllib.parse import quote

from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import KNOWLEDGE_STALE
from chalicelib.domains.knowledge.rules.passages import is_page
from chalicelib.domains.knowledge.rules.word_stems import stems
from chalicelib.domains.knowledge.store import sources
from chalicelib.engine import jobs
from chalicelib.gateways.object_store import object_store
from chalicelib.lib import extracts

MAX_QUESTION_STEMS = 50
"""Maximum number of different stems of a question that are searched."""
TITLE_WEIGHT, TEXT_WEIGHT = 2.0, 1.0
"""How much a word counts in the title of a source, and in a passage."""

_TABLES = "CREATE TABLE passages (id INTEGER PRIMARY KEY, source_id, title, url, text)"
# The stems contain only letters and digits, so the simplest tokenizer reads them back unchanged.
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(title, text, content='', tokenize='ascii')"
_RANK = f"INSERT INTO words (words, rank) VALUES ('rank', 'bm25({TITLE_WEIGHT}, {TEXT_WEIGHT})')"  # noqa: S608  two constants
_SEARCH = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank"
_PASSAGE = "SELECT source_id, title, url, text FROM passages WHERE id = ?"
_SCAN = "SELECT source_id, title, url, text FROM passages ORDER BY id"


class Passage(NamedTuple):
    """A passage of a source.

    ``url`` is the URL of a page, or empty. A higher score fits better.
    """

    source_id: str
    title: str
    url: str
    text: str
    score: float = 0.0


@cache
def has_fts5() -> bool:
    """Whether the platform's SQLite has full-text search."""
    with closing(sqlite3.connect(":memory:")) as database, suppress(sqlite3.OperationalError):
        database.execute(_WORDS)
        return True
    return False


def build(passages: Iterable[Passage]) -> bytes:
    """Return the file with these passages."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.execute("BEGIN")
        database.execute(_TABLES)
        if has_fts5():
            database.execute(_WORDS)
            database.execute(_RANK)
        for number, passage in enumerate(passages, 1):
            values = (number, *passage[:4])
            database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", values)
            if has_fts5():
                words = (number, _joined(passage.title), _joined(passage.text))
                database.execute("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", words)
        database.execute("COMMIT")
        return database.serialize()


def search(path: Path, question: str, limit: int, answers: Callable[[str], bool]) -> list[Passage]:
    """Return up to ``limit`` passages of the sources that answer, best match first.

    Args:
        path: the file.
        question: any text.
        limit: maximum number of passages.
        answers: whether passages of a source, by its id, may be returned.

    Raises:
        sqlite3.Error: the file is missing or damaged.
    """
    question_stems = list(islice(dict.fromkeys(stems(question)), MAX_QUESTION_STEMS))
    if not question_stems:
        return []
    # The file never changes, so SQLite needs neither locks nor a journal.
    place = f"file:{quote(str(path))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(place, uri=True)) as database:
        if not has_fts5() or not _is_searchable(database):
            everything = [Passage(*row) for row in database.execute(_SCAN)]
            return _scan(
                question, limit, [passage for passage in everything if answers(passage.source_id)]
            )
        ranked = database.execute(_SEARCH, [" OR ".join(f'"{stem}"' for stem in question_stems)])
        # Only returned passages are read, and passages of deleted sources that precede these.
        ranked_passages = (
            Passage(*database.execute(_PASSAGE, [number]).fetchone())._replace(score=-rank)
            for number, rank in ranked
        )
        return list(
            islice((passage for passage in ranked_passages if answers(passage.source_id)), limit)
        )


def _joined(text: str) -> str:
    return " ".join(stems(text))


def _is_searchable(database: sqlite3.Connection) -> bool:
    """Whether the file was made on a platform with FTS5."""
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
    return database.execute(tables).fetchone() is not None


def _scan(question: str, limit: int, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that share words with a question, without an index."""
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    best = extracts.most_relevant(question, texts)[:limit]
    return [passages[at]._replace(score=1.0 / place) for place, at in enumerate(best, 1)]


MAX_FILES = 20
MAX_BYTES = 100 * 2**20
LOADERS = 4
"""Files that a process loads at the same time."""


class _Copy(NamedTuple):
    path: Path
    size: int


class IndexCache:
    """Cache of the index files that were used last, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(LOADERS, "knowledge-index")
        self._loading: dict[str, Future[Path]] = {}
        self._copies: OrderedDict[str, _Copy] = OrderedDict()

    def request(self, key: str) -> "Future[Path]":
        """Return the future path of an index. Calls for one key share one download.

        The download continues if the caller does not wait. The future raises
        FileNotFoundError if the object does not exist, and UnavailableError if the store fails.
        """
        with self._lock:
            if copy := self._copies.get(key):
                self._copies.move_to_end(key)
                future: Future[Path] = Future()
                future.set_result(copy.path)
                return future
            if key not in self._loading:
                self._loading[key] = self._pool.submit(self._load, key)
            return self._loading[key]

    def forget(self, key: str) -> None:
        """Remove an index, so that the next request loads it again."""
        with self._lock:
            self._remove(key)

    def _load(self, key: str) -> Path:
        try:
            body = object_store().get(key)
            if body is None:
                raise FileNotFoundError(key)
            path = self._folder / f"{token_hex(16)}.sqlite"
            # Another thread may still read an earlier copy of the same index.
            path.write_bytes(body)
            with self._lock:
                self._copies[key] = _Copy(path, len(body))
                while len(self._copies) > MAX_FILES or self._size > MAX_BYTES:
                    self._remove(next(iter(self._copies)))
            return path
        finally:
            with self._lock:
                # A failed download must not be shared by later callers.
                self._loading.pop(key, None)

    @property
    def _size(self) -> int:
        return sum(copy.size for copy in self._copies.values())

    def _remove(self, key: str) -> None:
        if copy := self._copies.pop(key, None):
            copy.path.unlink(missing_ok=True)


@cache
def index_cache() -> IndexCache:
    """Return the cache of this process."""
    folder = tempfile.mkdtemp(prefix="knowledge-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return IndexCache(Path(folder))


LOADING_SECONDS = 0.3
"""Seconds to wait for an index. A bot then answers without it, and loading continues."""
NOT_LOADED = "a knowledge index was not loaded"
"""A line of the log, which a metric counts."""

log = logging.getLogger(__name__)


def find(workspace_id: str, bot_id: str, question: str, limit: int) -> list[Passage]:
    """Return up to ``limit`` passages that fit a question, best match first.

    The result is empty if nothing fits, if there is no index yet, or if the index cannot be loaded
    in ``LOADING_SECONDS``. Passages of sources that were deleted since are left out.

    Raises:
        UnavailableError: the database cannot be read.
    """
    row = sources.find(workspace_id, bot_id)
    if row is None:
        # A bot or an installation from before the first index. Later changes schedule the job.
        jobs.schedule(jobs.for_changes(KNOWLEDGE_STALE, workspace_id))
        return []
    if row.key is None:
        return []
    # The index loads while the database is read.
    begun, loading = monotonic(), index_cache().request(row.key)
    answering = sources.answering_ids(workspace_id, bot_id)
    path = _loaded(loading, LOADING_SECONDS - (monotonic() - begun), row.key)
    if path is None:
        return []
    try:
        return search(path, question, limit, lambda id_: is_page(id_) or id_ in answering)
    except sqlite3.Error:
        # Another thread has removed the file to make room, or the disk has damaged it.
        index_cache().forget(row.key)
        log.warning(NOT_LOADED, exc_info=True, extra={"index": row.key})
        return []


def _loaded(loading: "Future[Path]", seconds: float, key: str) -> Path | None:
    """Return the path of a loaded index, or None if it fails or takes too long."""
    try:
        return loading.result(max(0.0, seconds))
    except (OSError, UnavailableError) as error:
        log.warning(NOT_LOADED, extra={"index": key, "cause": type(error).__name__})
        return None
