"""Encodings of texts that other programs send, declared or found in the bytes."""

import codecs
import re
from collections.abc import Iterable

_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_OF_FORMS = re.compile(
    r"utf-(8|16)|cp[0-9]+|iso8859-[0-9]+|koi8-[ru]|mac-cyrillic|gb(k|2312|18030)|big5|euc_(jp|kr)"
    r"|shift_jis|ascii"
)
_ASCII_LETTER = re.compile(rb"[A-Za-z]")


def text_encoding(raw_texts: Iterable[bytes], declared: str | None = None) -> str:
    """Return the encoding of texts that one program has sent, as the name of a codec.

    The declared encoding counts if the texts fit it. Texts that are no UTF-8 are Windows-1252 if
    most of their words have accents between Latin letters, and Windows-1251 otherwise.
    """
    raw = b"\n".join(raw_texts)
    for name in (declared, "utf-8"):
        if name and _fits(raw, name):
            return name
    words = [word for word in _WORD.findall(raw) if not word.isascii()]
    latin = sum(_ASCII_LETTER.search(word) is not None for word in words)
    return "cp1252" if latin > len(words) - latin else "cp1251"


def _fits(raw: bytes, name: str) -> bool:
    try:
        # Others, such as punycode, are no encodings of forms, and may take very long.
        if not _OF_FORMS.fullmatch(codecs.lookup(name).name):
            return False
        raw.decode(name)
    except (LookupError, ValueError):
        return False
    return True


def decoded(raw: bytes, encoding: str) -> str:
    """Return a text. A byte that the encoding does not have becomes a replacement character."""
    return raw.decode(encoding, errors="replace")
