"""Comparison, cleaning and patterns of strings in any script."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache

CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")  # Unicode's category Cc, which is closed
# Characters that change the direction of the characters around them (UAX 9, Bidi_Control). They can
# make one name look like another. Joiners and variation selectors, which scripts and emoji need,
# are not included.
BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Mn", "Me", "Zl", "Zp", "Zs"})
# Hangul fillers and the empty Braille pattern display nothing although their category is letter or
# symbol.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")

_SAME = str.maketrans({"ё": "е"} | dict.fromkeys(map(chr, range(32)), " "))  # noqa: RUF001  Cyrillic, meant


def fold(text: str) -> str:
    """Return the string case-folded, in compatibility form, with Cyrillic yo as ye."""
    # Uniqueness compares folded strings, which look the same to a reader.
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Case folding can make characters that are not in compatibility form (Unicode, 3.13).
    # Control characters become spaces, because the list engine uses them as separators.
    return unicodedata.normalize("NFKC", folded).translate(_SAME)


_ZERO_WIDTH = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
_MARKS_OF_LETTERS = re.compile(
    # Letters of Latin and Greek, then the marks above, below or through them.
    "(?<=[a-z\u00df-\u024f\u0250-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
    "\u0370-\u03ff\u1f00-\u1fff])"
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]+"
)
# Unicode does not decompose these, and users type them without strokes. No replacement is longer.
_STROKES = str.maketrans(
    {"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"}
)


def search_fold(text: str) -> str:
    """Return the string folded for search, without zero-width characters and diacritics.

    Only Latin and Greek letters lose diacritics: elsewhere a mark makes another letter, such as the
    Cyrillic short i. The result takes no more bytes than the result of ``fold``.
    Stored rows have folded strings, so a change of a fold is a new ``STORED_FORMAT`` (ADR 103).
    """
    folded = fold(text)
    if folded.isascii():
        return folded
    apart = unicodedata.normalize("NFD", _ZERO_WIDTH.sub("", folded))
    # In other scripts than Latin and Greek a mark makes another letter, such as Cyrillic short i.
    bare = _MARKS_OF_LETTERS.sub("", apart).translate(_STROKES)
    # The result takes no more bytes than the result of ``fold``.
    return unicodedata.normalize("NFC", bare)


def line_fold(text: str) -> str:
    """Return the string folded on one line, to compare copied values, such as an SKU, whole."""
    return collapse_spaces(fold(_ZERO_WIDTH.sub("", text)))


_BETWEEN_WORDS = re.compile(
    # Dashes and minus signs.
    "[-\u058a\u05be\u1400\u1806\u2010-\u2015\u2043\u2212\u2e00-\u2e5d\u301c\u3030\u30a0\U00010ead"
    # Quotes.
    '"\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\u301d-\u301f'
    # Apostrophes and primes, among them letters and accents that users type instead.
    "'`\u02b9-\u02bf\u02c8\u02ca\u02cb\u02ee\u055a\u05f3\u05f4\u2032-\u2037\ua78b\ua78c"
    # Commas and brackets, in the form that folding leaves.
    r",;:!?()\[\]{}/\s]"
    # The accent of an acute that was typed as an apostrophe: folding makes it a space and a mark.
    "|(?<!\\w)[\u0300-\u0303]"
)
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def matches_search(texts: Iterable[str], search: str) -> bool:
    """Whether the searchable fields of one record match a search, which may be empty."""
    return is_found(map(search_fold, texts), search_words(search))


def search_words(text: str) -> str:
    """Return a string as searches compare it: folded, its words divided by single spaces.

    Dashes, quotes, apostrophes, commas and brackets count as spaces, unless the string has no
    letter or digit: then a search is for these characters.
    """
    folded = search_fold(text)
    divided = _divide(folded)
    return divided if _has_word(divided) else collapse_spaces(folded)


def _divide(folded: str) -> str:
    return collapse_spaces(_BETWEEN_WORDS.sub(" ", folded))


def is_found(lines: Iterable[str], query: str) -> bool:
    """Whether folded lines of one record match a search, which ``search_words`` returned.

    They match if one line contains the whole search, such as a part of a number. They also match if
    each word of the search begins a word of any line. A search without a letter or digit matches
    only lines that contain it as it stands.
    """
    if not _has_word(query):
        return not query or any(query in collapse_spaces(line) for line in lines)
    divided = [_divide(line) for line in lines]
    return any(query in line for line in divided) or all(
        any(_begins_word(word, line=line) for line in divided) for word in query.split()
    )


def _has_word(folded: str) -> bool:
    return any(map(str.isalnum, folded))


def _begins_word(word: str, *, line: str) -> bool:
    if _UNSPACED.match(word):
        return word in line
    place = line.find(word)
    while place > 0 and line[place - 1].isalnum() and word[0].isalnum():
        place = line.find(word, place + 1)
    return place >= 0


def collapse_spaces(text: str) -> str:
    """Return the string trimmed, with white space as single spaces."""
    return " ".join(text.split())


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is closest to a mistyped one, if any is close."""
    return next(iter(get_close_matches(name, list(names), n=1, cutoff=0.6)), None)


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest beginning of the string that takes at most ``limit`` bytes of UTF-8."""
    # The cut may divide a character, whose remaining bytes are dropped.
    return text.encode()[:limit].decode(errors="ignore")


def is_visible(text: str) -> bool:
    """Whether a string contains a visible character."""
    return any(
        unicodedata.category(character) not in _UNSEEN and character not in _BLANK
        for character in text
    )


def one_line(text: str, limit: int) -> str:
    """Return an outside text cut to one line of ``limit`` characters, for use as a title.

    White space becomes single spaces. Other control characters and bidi controls are removed. The
    result is empty if no visible character remains.
    """
    visible = BIDI_CONTROL.sub("", CONTROL.sub("", collapse_spaces(text)))
    line = collapse_spaces(visible)[:limit].rstrip()
    return line if is_visible(line) else ""


_JOINERS = "\u200c\u200d"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63"
_SPACES = frozenset({"Zs", "Zl", "Zp"})
_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_PLAIN = str.maketrans(dict.fromkeys(_DASHES, "-") | dict.fromkeys(_JOINERS, ""))


def clean_typed(text: str) -> str:
    """Return a string on one line, trimmed, with plain spaces and without format characters."""
    if text.isascii():
        return " ".join(text.split())
    # Messengers and web pages add direction marks, byte order marks and soft hyphens (Unicode's
    # category Cf) to copied content. Zero-width joiners are kept, because they are letters of words
    # in Persian and in Indic scripts (RFC 5892, appendix A).
    return " ".join("".join(map(_cleaned, text)).split())


def replace_dashes(text: str) -> str:
    """Return a string with each kind of dash as a hyphen, and without zero-width joiners."""
    return text.translate(_PLAIN)


def clean_digits(text: str) -> str:
    """Return a cleaned text with spaces, dashes and digits of ASCII."""
    cleaned = replace_dashes(clean_typed(text))
    if cleaned.isascii():
        return cleaned
    plain = cleaned.translate(_FULL_WIDTH)
    return "".join(str(unicodedata.decimal(digit, digit)) for digit in plain)


def _cleaned(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" and character not in _JOINERS:
        return ""
    return " " if category in _SPACES else character


# Browsers and mail programs read these as the dot of a domain (UTS 46, NFKC).
_DOT = "[.\u2024\u3002\uff0e\uff61]"
_SLASHES = "/\uff0f"


@cache
def _link_pattern() -> re.Pattern[str]:
    # Compiling the pattern takes 1 % of the base imports.
    return re.compile(
        rf"[:\uff1a][{_SLASHES}]{{2}}"
        rf"|\bwww{_DOT}(?=\w)"
        # Any Latin word after a dot may be a domain some day. Of the Cyrillic ones only domains
        # count, because Russian abbreviations often have no space. No domain ends with .js.
        rf"|(?<=[\w-]){_DOT}(?=(?!js\b)[a-z\uff41-\uff5a]{{2}}"
        r"|(?:рф|рус|сайт|онлайн|орг|ком|бел|укр|срб|мкд|мон|қаз|ею|бг)\b)"  # noqa: RUF001  Cyrillic, meant
        # After one letter it is an initial or an abbreviation, such as a city's in an address.
        rf"|(?<=[\w-]{{2}}){_DOT}(?=(?:москва|дети|католик)\b"
        r"|(?![\u0000-\u036f\u0400-\u052f])[^\W\d_])",
        re.IGNORECASE,
    )


def has_link(text: str) -> bool:
    """Whether an e-mail client or a reader may see a link in a string."""
    # A zero-width character hides an address from the pattern, but not from the reader.
    return _link_pattern().search(_ZERO_WIDTH.sub("", text)) is not None


def unlinked(text: str) -> str:
    """Return a string with a space after each dot that may make a link, and without ``://``."""
    if not has_link(text):
        return text
    return _link_pattern().sub(
        lambda match: f"{match[0].rstrip(_SLASHES)} ", _ZERO_WIDTH.sub("", text)
    )
