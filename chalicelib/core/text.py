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

    The rule of every order and search (contract, Envelope).
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).translate(_SAME)


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
