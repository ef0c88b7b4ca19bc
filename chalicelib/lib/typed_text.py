"""Cleans contacts and codes that people typed or pasted, before anything else reads them."""

import unicodedata

_JOINERS = "\u200c\u200d"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63"
_SPACES = frozenset({"Zs", "Zl", "Zp"})
_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_PLAIN = str.maketrans(dict.fromkeys(_DASHES, "-") | dict.fromkeys(_JOINERS, ""))


def clean(text: str) -> str:
    """Return a text on one line, trimmed, with plain spaces and without format characters.

    Format characters (Unicode's category Cf) are invisible: direction marks, byte order marks, soft
    hyphens. Texts that are copied from messengers and web pages contain them. Zero-width joiners
    stay, because they are letters of words in Persian and in Indic scripts (RFC 5892, appendix A).
    """
    if text.isascii():
        return " ".join(text.split())
    return " ".join("".join(map(_cleaned, text)).split())


def with_plain_dashes(text: str) -> str:
    """Return a text with each kind of dash as a hyphen, and without zero-width joiners."""
    return text.translate(_PLAIN)


def clean_digits(text: str) -> str:
    """Return a cleaned text with spaces, dashes and digits of ASCII."""
    cleaned = with_plain_dashes(clean(text))
    if cleaned.isascii():
        return cleaned
    plain = cleaned.translate(_FULL_WIDTH)
    return "".join(str(unicodedata.decimal(each, each)) for each in plain)


def _cleaned(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" and character not in _JOINERS:
        return ""
    return " " if category in _SPACES else character
