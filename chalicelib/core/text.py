"""How texts compare, in any script, and which of them can be shown."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
"""Control characters (Unicode's category Cc, which is closed)."""
BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What turns the text around it, so that a name reads as another (UAX 9, Bidi_Control).

Joiners and variation selectors, which scripts and emoji need, are not among them.
"""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp", "Zs"})
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs, by their category, that show nothing: fillers of Hangul, empty Braille."""

_SAME = str.maketrans({"ё": "е"} | dict.fromkeys(map(chr, range(32)), " "))  # noqa: RUF001  Cyrillic, meant


def fold(text: str) -> str:
    """Return the text case-folded, in compatibility form, with Cyrillic yo as ye.

    Control characters, which the list engine separates parts with, become spaces.

    Texts that fold alike are the same to a reader: what is unique compares so.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_SAME)


SEARCH_FOLDING = 2
"""The version of ``search_fold`` and ``line_fold``.

Raise it with a change that folds a text differently, or that indexes more of a record: a deployment
then has all that is stored indexed again (ADR 42).
"""
_ZERO_WIDTH = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
_MARKS_OF_LETTERS = re.compile(
    # Letters of Latin and Greek, then what stands above, below or through them.
    "(?<=[a-z\u00df-\u024f\u0250-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
    "\u0370-\u03ff\u1f00-\u1fff])"
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
_STROKES = str.maketrans(
    {"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"}
)
"""Letters that Unicode does not decompose, as they are typed without them; none gets longer."""


def search_fold(text: str) -> str:
    """Return the text folded, and without zero-width characters and diacritics: for every search.

    Diacritics of Latin and Greek alone: elsewhere a mark makes another letter, as in Cyrillic's
    short i. The result takes no more bytes than that of ``fold``.
    """
    folded = fold(text)
    if folded.isascii():
        return folded
    apart = unicodedata.normalize("NFD", _ZERO_WIDTH.sub("", folded))
    bare = _MARKS_OF_LETTERS.sub("", apart).translate(_STROKES)
    return unicodedata.normalize("NFC", bare)


def line_fold(text: str) -> str:
    """Return the text folded, without zero-width characters, its white space as single spaces.

    For what is copied from other programs and compared as a whole, such as an SKU.
    """
    return squeezed(fold(_ZERO_WIDTH.sub("", text)))


def squeezed(text: str) -> str:
    """Return a text whose white space is single spaces, none of them at an end."""
    return " ".join(text.split())


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one was probably meant for, if there is one."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.6)), None)


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest beginning of the text that takes at most ``limit`` bytes of UTF-8."""
    return text.encode()[:limit].decode(errors="ignore")


def is_visible(text: str) -> bool:
    """Whether there is anything to see in a text."""
    return any(
        unicodedata.category(character) not in _UNSEEN and character not in _BLANK
        for character in text
    )


def one_line(text: str, limit: int) -> str:
    """Return the beginning of a text of others as a title may be, "" if there is nothing to see.

    White space becomes single spaces; other control characters and bidi controls go.
    """
    shown = BIDI_CONTROL.sub("", CONTROL.sub("", squeezed(text)))
    line = squeezed(shown)[:limit].rstrip()
    return line if is_visible(line) else ""
