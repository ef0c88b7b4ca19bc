"""Texts of the embedded model, in the visitor's language."""

import re
from functools import cache
from pathlib import Path

from chalicelib.lib import po_files
from chalicelib.lib.localized import Language

LOCALE = Path(__file__).parent / "locale"
"""Folder of the PO files, with one folder per language."""
LANGUAGES: tuple[Language, ...] = ("en", "ru")


def sentence(language: Language, key: str, **values: object) -> str:
    """Return a text with values in its placeholders."""
    text = str(_catalogue(language).texts[key])
    return text.format(**values) if values else text


@cache
def _catalogue(language: Language) -> po_files.Catalogue:
    return po_files.read(LOCALE, language, "reception")


_ERRORS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Several [^']* match .*Expected one of: (?P<names>.+)\.$", re.DOTALL), "which_of"),
    (re.compile(r"No [^']* match .*: there are no .*", re.DOTALL), "not_found"),
    (re.compile(r"No [^']* match .*Expected one of: (?P<names>.+)\.$", re.DOTALL), "not_found_but"),
    (re.compile("None of (?P<name>.+) are in stock", re.DOTALL), "sold_out"),
    (re.compile(r"Fewer than (?P<count>\d+) of (?P<name>.+) are in stock", re.DOTALL), "few_left"),
    (re.compile(".*cannot be booked", re.DOTALL), "not_bookable"),
    (re.compile(".*has to be paid", re.DOTALL), "needs_payment"),
    (re.compile(".*no longer free", re.DOTALL), "taken"),
    (re.compile(".*does not take orders", re.DOTALL), "no_orders"),
    (re.compile("Ask the visitor for a phone", re.DOTALL), "contact_first"),
)
"""Errors of tools, which are written for models, with the texts for visitors."""


def error_sentence(language: Language, error: str) -> str:
    """Return the sentence for a visitor about the error of a tool."""
    for pattern, key in _ERRORS:
        if match := pattern.match(error):
            return sentence(language, key, **match.groupdict())
    return sentence(language, "failed")
