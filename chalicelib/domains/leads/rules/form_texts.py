"""Strings of capture forms for visitors, in the language of the form."""

from functools import cache
from pathlib import Path

from chalicelib.lib import po_files

LOCALE = Path(__file__).parent / "locale"  # Folder of the PO files, with one folder per language.
_FAILURES = {
    "not_found": "not_found",
    "payload_too_large": "payload_too_large",
    "rate_limited": "rate_limited",
    "too_fast": "too_fast",
    "unsupported_media_type": "malformed",
    "validation_error": "malformed",
}


@cache
def catalogue(language: str) -> po_files.Catalogue:
    """Return the texts of forms in ``ru`` or ``en``, by key."""
    return po_files.read(LOCALE, language, "forms")


def form_text(language: str, key: str, **values: object) -> str:
    """Return a template with values in its placeholders."""
    return str(catalogue(language).texts[key]).format(**values)


def for_failure(language: str, *, code: str) -> str:
    """Return the message for an error code. Programs read the code itself."""
    return form_text(language, _FAILURES.get(code, "failed"))
