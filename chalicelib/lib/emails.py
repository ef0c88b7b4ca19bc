"""E-mail addresses in one normal form, used to look up accounts, leads and clients."""

import re
from collections.abc import Iterator
from itertools import islice

from chalicelib.core.text import fold

_CANDIDATE = re.compile(r"[^\s@<>()\[\],;:\"']{1,64}@[^\s@<>()\[\],;:\"']{3,255}")
_MAX_CANDIDATES = 50
"""Words with an at sign that are checked in one text."""


def normalize_email(email: str) -> str:
    """Return the normal form of an e-mail address: validated, trimmed and case-folded.

    Raises:
        ValueError: the address is malformed. The message gives an example of a valid one.
    """
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415  rarely needed

    try:
        found = validate_email(email.strip(), check_deliverability=False)
    except EmailNotValidError:
        msg = f'expected an address such as ada@example.com, received "{email[:80]}"'
        raise ValueError(msg) from None
    return fold(found.normalized)


def find_email(text: str) -> str | None:
    """Return the normal form of an e-mail address, or None if the text is not one."""
    try:
        return normalize_email(text)
    except ValueError:
        return None


def emails_in(text: str) -> Iterator[str]:
    """Yield the e-mail addresses in a text, in their normal form."""
    candidates = (match[0].strip(".!?*_`") for match in _CANDIDATE.finditer(text))
    return filter(None, map(find_email, islice(candidates, _MAX_CANDIDATES)))


def first_email_in(text: str) -> str | None:
    """Return the first e-mail address in a text, or None."""
    return next(emails_in(text), None)
