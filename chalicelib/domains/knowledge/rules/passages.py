"""Texts of sources: their normal form, and their passages, which are what a search returns."""

import re
from collections.abc import Iterator

from chalicelib.lib.extracts import SENTENCE_END

MAX_LENGTH = 800
"""Characters of the longest passage."""
MIN_LENGTH = 400
"""Characters of the shortest passage that ends before its text does."""

_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\s*\n\s*\n\s*")


def normal_form(text: str) -> str:
    """Return a text without control characters, with single spaces and single blank lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", _CONTROL.sub("", lines))).strip()


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
