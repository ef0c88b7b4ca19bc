"""The text beside the box by which a client agrees to e-mail that advertises (ADR 140)."""

import hashlib
from functools import cache
from typing import NamedTuple

from chalicelib.domains.booking_page.rules.refusals import LOCALE
from chalicelib.lib import po_files, quotes
from chalicelib.lib.localized import LANGUAGES, Language

MAX_VERSION = 32


class AdvertisingText(NamedTuple):
    """What a client agrees to. The version is a hash of the text, so another text has another."""

    language: Language
    text: str
    version: str


@cache
def _template(language: Language) -> str:
    return str(po_files.read(LOCALE, language, "advertising").texts["advertising_consent"])


def text(language: Language, business: str) -> AdvertisingText:
    """Return the text that names the business, with its version."""
    shown = quotes.nest(_template(language).format(business=business))
    return AdvertisingText(language, shown, hashlib.sha256(shown.encode()).hexdigest()[:16])


def find(version: str, business: str) -> AdvertisingText | None:
    """Return the present text with a version, in whichever language, or None."""
    return next(
        (each for language in LANGUAGES if (each := text(language, business)).version == version),
        None,
    )
