"""Texts of SMS to clients about their bookings, which fit two segments.

They contain nothing that a visitor wrote, like the e-mails (``client_mail_texts``).
"""

from collections.abc import Iterator
from functools import cache
from typing import Final

from chalicelib.domains.notifications.rules.client_mail_texts import BookingFacts
from chalicelib.domains.notifications.rules.messages import LOCALE, mailed_name
from chalicelib.domains.notifications.rules.who_is_told import ClientKind
from chalicelib.lib import localized, po_files, sms_segments
from chalicelib.lib.localized import Language

MAX_SEGMENTS: Final = 2
# Messages about a booking that the business has accepted. The others are papers, or about money.
KINDS: Final[frozenset[ClientKind]] = frozenset({"confirmed", "moved", "cancelled", "reminder"})

# A text with one of these signs is sent as UCS-2, which has less than half of the characters.
_PLAIN: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f", " "),
        "\u2026": "...",
        "\u2060": None,
        "\u200b": None,
    }
)
_LEAST_CHARACTERS: Final = 3  # of the last word of a shortened name


def text(language: Language, kind: ClientKind, facts: BookingFacts, url: str | None) -> str:
    """Return an SMS about a booking, with the short URL at which the client manages it.

    The name of the business, and then the service, lose words until the text has at most
    ``MAX_SEGMENTS``. Only a very long URL needs more.
    """
    texts = _catalogue(language).texts
    when = localized.short_time(language, facts.starts_at)
    what = str(texts[f"sms_{kind}"]).format(when=when)
    names = (mailed_name(name).translate(_PLAIN) for name in (facts.brand.name, facts.service))
    link = None if kind == "cancelled" else url
    written = ""
    for business, service in _shorter(*names):
        sentence = f"{business}: {what}, {service}" if service else f"{business}: {what}"
        written = f"{sentence}. {link}" if link else f"{sentence}."
        if sms_segments.count(written) <= MAX_SEGMENTS:
            break
    return written


def _shorter(business: str, service: str) -> Iterator[tuple[str, str]]:
    """Yield the names, then with fewer words, and at last a few characters of the business."""
    businesses, services = list(_by_words(business)), list(_by_words(service))
    yield from ((name, service) for name in businesses)
    shortest = businesses[-1]
    yield from ((shortest, name) for name in services)
    yield from ((shortest[:length], "") for length in range(len(shortest), 0, -1))


def _by_words(name: str) -> Iterator[str]:
    yield name
    words = name.split()
    while len(words) > 1:
        words.pop()
        # Neither a preposition nor an opening quotation mark ends a name.
        while len(words) > 1 and len(words[-1].strip("«»„“\"'()[],.:;-")) < _LEAST_CHARACTERS:
            words.pop()
        yield _closed(" ".join(words))


def _closed(name: str) -> str:
    """Return a name without quotation marks and brackets whose other half was cut off."""
    name = name.rstrip(" ,.:;-")
    for opening, closing in ("«»", "„“", "()", "[]"):
        if name.count(opening) > name.count(closing):
            name = name.replace(opening, "")
    return name if name.count('"') % 2 == 0 else name.replace('"', "")


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "messages")
