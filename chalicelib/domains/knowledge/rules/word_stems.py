"""Stems of words, which the inflected forms of a word share."""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from chalicelib.core.text import search_fold
from chalicelib.lib.extracts import carries_meaning

CACHED_WORDS = 50_000  # whose stems a process caches; a stem takes 70 microseconds to compute
LONGEST_WORD = 64  # characters that count; a longer word is hardly a word

_WORD = re.compile(r"\w+(?:-\w+)*")
# The Lambda zip has the stemmers of these languages only.
LANGUAGES = ((re.compile("[a-z]+"), "english"), (re.compile("[а-я]+"), "russian"))  # noqa: RUF001  Cyrillic, meant
# Stemmers keep the word that they work on, so each thread has its own.
_stemmers = threading.local()


def stems(text: str) -> Iterator[str]:
    """Yield the stems of a text's words, in order, without frequent words."""
    for compound in _WORD.findall(search_fold(text)):
        # A hyphenated word is found by its parts and as one word, because "Wi-Fi" is also written
        # "WiFi".
        parts = compound.split("-")
        for word in (*parts, "".join(parts)) if len(parts) > 1 else parts:
            if carries_meaning(word):
                yield _stem(word[:LONGEST_WORD])


@lru_cache(CACHED_WORDS)
def _stem(word: str) -> str:
    for letters, language in LANGUAGES:
        if letters.fullmatch(word):
            stem: str = _stemmer(language).stemWord(word)
            return stem
    return word


def _stemmer(language: str) -> Any:  # noqa: ANN401  the library has no types
    if not hasattr(_stemmers, language):
        import snowballstemmer

        setattr(_stemmers, language, snowballstemmer.stemmer(language))
    return getattr(_stemmers, language)
