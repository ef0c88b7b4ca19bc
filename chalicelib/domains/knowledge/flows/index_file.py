"""The file of an index: passages in SQLite and an FTS5 table of their stems (ADR 56)."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from chalicelib.domains.knowledge.rules.word_stems import stems
from chalicelib.lib import extracts

MAX_QUESTION_STEMS = 50  # different stems of a question that are searched
# How much a word counts in the title of a source, and in a passage.
TITLE_WEIGHT, TEXT_WEIGHT = 2.0, 1.0
_TABLES = "CREATE TABLE passages (id INTEGER PRIMARY KEY, source_id, title, url, text)"
# The stems contain only letters and digits, so the simplest tokenizer reads them back unchanged.
_WORDS = "CREATE VIRTUAL TABLE words USING fts5(title, text, content='', tokenize='ascii')"
_RANK = f"INSERT INTO words (words, rank) VALUES ('rank', 'bm25({TITLE_WEIGHT}, {TEXT_WEIGHT})')"  # noqa: S608  two constants  # nosec B608
_SEARCH = "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank"
_PASSAGE = "SELECT source_id, title, url, text FROM passages WHERE id = ?"
_SCAN = "SELECT source_id, title, url, text FROM passages ORDER BY id"


class Passage(NamedTuple):
    """A passage of a source."""

    source_id: str
    title: str
    url: str  # of a page, or empty
    text: str
    score: float = 0.0  # A higher one fits better.


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

    ``answers`` is whether passages of a source, by its id, may be returned. Raises sqlite3.Error if
    the file is missing or damaged.
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
    # Only if the file was made on a platform with FTS5.
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'words'"
    return database.execute(tables).fetchone() is not None


def _scan(question: str, limit: int, passages: Sequence[Passage]) -> list[Passage]:
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    best = extracts.most_relevant(question, texts)[:limit]
    return [passages[at]._replace(score=1.0 / place) for place, at in enumerate(best, 1)]
