"""Documents that an index is made of, and their texts, normalized and split into passages."""

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from chalicelib.lib.extracts import SENTENCE_END

MAX_LENGTH = 800  # characters of a passage
MIN_LENGTH = 400  # characters of the shortest passage that ends before its text does

_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_SPACES = re.compile(r"[^\S\n]+")
_WHITE = re.compile(r"\s{2,}")


def normal_form(text: str) -> str:
    """Return a text without control characters, with single spaces and single blank lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    spaced = _SPACES.sub(" ", _CONTROL.sub("", lines))
    return _WHITE.sub(lambda run: "\n\n" if run[0].count("\n") > 1 else run[0], spaced).strip()


def split(text: str) -> Iterator[str]:
    """Yield the passages of a text. They end where a sentence or a line ends, if possible."""
    start = 0
    while start < len(text):
        end = _passage_end(text, start)
        if passage := text[start:end].strip():
            yield passage
        start = end


def _passage_end(text: str, start: int) -> int:
    limit = start + MAX_LENGTH
    if limit >= len(text):
        return len(text)
    ends = [match.end() for match in SENTENCE_END.finditer(text, start + MIN_LENGTH, limit)]
    if ends:
        return ends[-1]
    return text.rfind(" ", start + MIN_LENGTH, limit) + 1 or limit


# The version of passages, stems and index files. Increase it to have all indexes built again.
FORMAT = 1
_PAGE = "page:"


class Document(NamedTuple):
    """A text with its place."""

    source_id: str
    title: str
    url: str
    key: str  # of its object, which never changes


def page_source(page_id: str) -> str:
    """Return the id under which passages of a site's page are indexed."""
    return f"{_PAGE}{page_id}"


def is_page(source_id: str) -> bool:
    """Whether passages with this source id belong to a site's page."""
    return source_id.startswith(_PAGE)


def fingerprint(documents: Iterable[Document]) -> str:
    """Return a hash that changes whenever an index of the documents would."""
    return sha256(json.dumps([FORMAT, *documents]).encode()).hexdigest()
