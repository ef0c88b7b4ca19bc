"""E-mail addresses: one form of each, by which accounts, leads and clients are found."""

import re
from collections.abc import Iterator
from itertools import islice

from chalicelib.core.text import fold

_CANDIDATE = re.compile(r"[^\s@<>()\[\],;:\"']{1,64}@[^\s@<>()\[\],;:\"']{3,255}")
_TRIED = 50
"""Words with an at sign that are checked in one text."""


def normal_email(email: str) -> str:
    """Return an e-mail address as people are found by it: checked, trimmed and folded.

    Raises:
        ValueError: it is malformed; says how.
    """
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415  rarely needed

    try:
        found = validate_email(email.strip(), check_deliverability=False)
    except EmailNotValidError:
        msg = f'expected an address such as ada@example.com, received "{email[:80]}"'
        raise ValueError(msg) from None
    return fold(found.normalized)


def find_email(text: str) -> str | None:
    """Return the address that a text is, or None if it is none."""
    try:
        return normal_email(text)
    except ValueError:
        return None


def emails_in(text: str) -> Iterator[str]:
    """Yield the addresses within a text, in their normal forms."""
    candidates = (match[0].strip(".!?*_`") for match in _CANDIDATE.finditer(text))
    return filter(None, map(find_email, islice(candidates, _TRIED)))


def first_email_in(text: str) -> str | None:
    """Return the first address within a text, or None."""
    return next(emails_in(text), None)
