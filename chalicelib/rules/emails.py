"""E-mail addresses: one form of each, by which accounts, leads and clients are found."""

from chalicelib.core.text import fold


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
