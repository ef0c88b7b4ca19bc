"""Normalization and comparison of e-mail addresses (ADR 69)."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from string import ascii_lowercase, ascii_uppercase

from chalicelib.core.text import clean_typed, replace_dashes

_CANDIDATE = re.compile(r"[^\s@<>()\[\],;:\"']{1,64}@[^\s@<>()\[\],;:\"']{3,255}")
_MAX_CANDIDATES = 50  # words with an at sign that are checked in one text
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def normalize_email(email: str) -> str:
    """Return the validated form of an e-mail address, or raise ValueError with a valid example."""
    from email_validator import EmailNotValidError, validate_email

    # The local part is not changed, because only the receiving server determines which of its
    # letters are equal (RFC 5321, section 2.4). The domain is in the form of UTS 46,
    # non-transitional, so the A-label for delivery is the same as for the entered domain.
    local, at, domain = clean_typed(email).rpartition("@")
    local, domain = _plain_if_ascii(local), _plain_if_ascii(domain)
    try:
        parsed_email = validate_email(f"{local}{at}{domain}", check_deliverability=False)
    except EmailNotValidError:
        msg = f'expected an address such as ada@example.com, received "{email[:80]}"'
        raise ValueError(msg) from None
    # The same letter can be one character or two, and addresses are compared by their characters.
    return f"{unicodedata.normalize('NFC', local)}@{parsed_email.domain}"


def _plain_if_ascii(part: str) -> str:
    # In a part in another script, a joiner may be a letter. Without it, mail would go elsewhere.
    plain = replace_dashes(part)
    return plain if plain.isascii() else part


def find_email(text: str) -> str | None:
    """Return the normal form of an e-mail address, or None if the input is not one."""
    try:
        return normalize_email(text)
    except ValueError:
        return None


def emails_in(text: str) -> Iterator[str]:
    """Yield the normal forms of the e-mail addresses in a string."""
    candidates = (match[0].strip(".!?*_`") for match in _CANDIDATE.finditer(text))
    # Checking an address is slow, so a string full of at signs is checked only in part.
    return filter(None, map(find_email, islice(candidates, _MAX_CANDIDATES)))


def first_email_in(text: str) -> str | None:
    """Return the first e-mail address in a string, or None."""
    return next(emails_in(text), None)


def key(address: str) -> str:
    """Return the key of an e-mail address. Two addresses are the same if their keys are equal."""
    # The key has the local part with ASCII letters in lower case, and the A-label of the domain. A
    # string without an at sign, such as a phone number, is its own key.
    local, at, domain = address.rpartition("@")
    return f"{local.translate(_ASCII_LOWER)}@{_a_label(domain)}" if at else address


def is_same(one: str, other: str) -> bool:
    """Whether two strings are the same e-mail address."""
    return key(find_email(one) or one) == key(find_email(other) or other)


def mailbox(address: str) -> str:
    """Return the address with its domain in ASCII, as an SMTP server needs it."""
    local, _, domain = address.rpartition("@")
    return f"{local}@{_a_label(domain)}"


def _a_label(domain: str) -> str:
    if domain.isascii():
        return domain.lower()
    import idna

    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:  # The domain was stored by other versions of the tables.
        return domain
