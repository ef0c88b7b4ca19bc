"""Store the hashes of addresses that get no e-mail."""

import hashlib
from datetime import timedelta
from typing import cast

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.principals import PLATFORM
from chalicelib.core.text import fold
from chalicelib.domains.mails.rules.mail_reputation import Suppression
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ControlRow
from chalicelib.lib import emails

SORT_KEY = "-"
LIFE = {"bounce": timedelta(days=90), "complaint": timedelta(days=730)}
"""How long an address is suppressed.

A mailbox that did not exist may exist a quarter later, and one more bounce then costs little. A
complaint is the recipient's wish. It ends only so that the hash is not kept for ever.
"""


class SuppressionRow(ControlRow):
    """An address that gets no e-mail, with the reason: ``bounce`` or ``complaint``.

    Earlier releases stored the hash of the folded address, and did not set ``is_exact``.
    """

    reason = UnicodeAttribute()
    is_exact = BooleanAttribute(null=True)
    since = UTCDateTimeAttribute()


def suppress(address: str, reason: Suppression) -> None:
    """Suppress an address. A bounce does not shorten the time after a complaint.

    Raises:
        UnavailableError: the database is unavailable.
    """
    now = clock.now()
    expires = now + LIFE[reason]
    for key in _keys(address)[:1]:
        update_if(
            SuppressionRow(*key),
            [
                SuppressionRow.reason.set(reason),
                SuppressionRow.since.set(now),
                SuppressionRow.is_exact.set(True),
                SuppressionRow.expires.set(expires),
            ],
            # A complaint lasts longer than a bounce, and a later bounce must not shorten it.
            SuppressionRow.expires.does_not_exist() | (SuppressionRow.expires < expires),
        )


def keys(address: str) -> list[Key]:
    """Return the keys of the rows that suppress an address, to read them ahead for ``find``."""
    return [Key(SuppressionRow, *key) for key in _keys(address)]


def find(address: str, read: Rows | None = None) -> list[SuppressionRow]:
    """Return the suppressions of an address that have not expired.

    There are at most two.
    """
    rows = [
        read.find(SuppressionRow, key) if read else SuppressionRow.find(key.pk, key.sk)
        for key in keys(address)
    ]
    return [
        row
        for number, row in enumerate(rows)
        # DynamoDB deletes expired rows late.
        if row and row.expires and row.expires > clock.now() and not (number and row.is_exact)
    ]


def reason(address: str) -> Suppression | None:
    """Return why an address is suppressed, or None if it is not."""
    return next((cast("Suppression", row.reason) for row in find(address)), None)


def _keys(address: str) -> list[tuple[str, str]]:
    """Return the key of an address's row, and its key in earlier releases if that differs.

    They mailed the folded address. Its key is read for ever: a hash cannot be converted (ADR 69).
    A string that is not an address has no hash.
    """
    email = emails.find_email(address)
    if email is None:
        return []
    names = emails.key(email), fold(email)
    hashes = (hashlib.sha256(name.encode()).hexdigest() for name in names)
    prefix = f"W#{PLATFORM}#MAIL-SUPPRESSION#"
    return [(prefix + digest, SORT_KEY) for digest in dict.fromkeys(hashes)]
