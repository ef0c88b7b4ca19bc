"""How texts compare: one folding for search, sorting and uniqueness, in any script."""

import unicodedata

_SAME = str.maketrans({"ё": "е"} | dict.fromkeys(map(chr, range(32)), " "))  # noqa: RUF001  Cyrillic, meant


def fold(text: str) -> str:
    """Return the text case-folded, in compatibility form, with Cyrillic yo as ye.

    Control characters, which the list engine separates parts with, become spaces.

    The rule of every order and search (contract, Envelope).
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_SAME)


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest beginning of the text that takes at most ``limit`` bytes of UTF-8."""
    return text.encode()[:limit].decode(errors="ignore")
