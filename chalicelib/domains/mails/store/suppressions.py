"""Store the hashes of addresses that get no e-mail."""

import hashlib
from datetime import timedelta
from typing import cast

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.mails.rules.mail_reputation import Suppression
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ControlRow
from chalicelib.lib import emails

SORT_KEY = "-"
# How long an address is suppressed. A mailbox that did not exist may exist a quarter later, and one
# more bounce then costs little. A complaint is the recipient's wish. It ends only so that the hash
# is not kept for ever.
LIFE = {"bounce": timedelta(days=90), "complaint": timedelta(days=730)}


class SuppressionRow(ControlRow):
    """An address that gets no e-mail, as a hash."""

    reason = UnicodeAttribute()  # ``bounce`` or ``complaint``
    since = UTCDateTimeAttribute()


def suppress(address: str, reason: Suppression) -> None:
    """Suppress an address. A bounce does not shorten the time after a complaint.

    Raises:
        UnavailableError: the database is unavailable.
    """
    key = key_of(address)
    if key is None:
        return
    now = clock.now()
    expires = now + LIFE[reason]
    update_if(
        SuppressionRow(key.pk, key.sk),
        [
            SuppressionRow.reason.set(reason),
            SuppressionRow.since.set(now),
            SuppressionRow.expires.set(expires),
        ],
        # A complaint lasts longer than a bounce, and a later bounce must not shorten it.
        SuppressionRow.expires.does_not_exist() | (SuppressionRow.expires < expires),
    )


def find(address: str, rows: Rows | None = None) -> SuppressionRow | None:
    """Return the suppression of an address, unless it has expired."""
    key = key_of(address)
    if key is None:
        return None
    row = rows.find(SuppressionRow, key) if rows else SuppressionRow.find(key.pk, key.sk)
    # DynamoDB deletes expired rows late.
    return row if row and row.expires and row.expires > clock.now() else None


def reason(address: str) -> Suppression | None:
    """Return why an address is suppressed, or None if it is not."""
    row = find(address)
    return cast("Suppression", row.reason) if row else None


def key_of(address: str) -> Key | None:
    """Return the key of an address's row, or None for a string that is not an address."""
    email = emails.find_email(address)
    if email is None:
        return None
    digest = hashlib.sha256(emails.key(email).encode()).hexdigest()
    return Key(SuppressionRow, f"W#{PLATFORM}#MAIL-SUPPRESSION#{digest}", SORT_KEY)
