"""Addresses that get no mail. A row has the hash of an address, and not the address."""

import hashlib
from datetime import timedelta
from typing import cast

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.notifications.rules.mail_rates import Suppression
from chalicelib.engine.conditional_updates import update_if
from chalicelib.engine.tables import ControlRow
from chalicelib.lib.emails import find_email

SORT_KEY = "-"
LIFE = {"bounce": timedelta(days=90), "complaint": timedelta(days=730)}
"""How long an address is suppressed.

A mailbox that did not exist may exist a quarter later, and one more bounce then costs little. A
complaint is a person's wish. It ends only so that the hash is not kept for ever.
"""


class SuppressionRow(ControlRow):
    """An address that gets no mail, with the reason: ``bounce`` or ``complaint``."""

    reason = UnicodeAttribute()
    since = UTCDateTimeAttribute()


def suppress(address: str, reason: Suppression) -> None:
    """Suppress an address. A bounce does not shorten the time after a complaint.

    Raises:
        UnavailableError: the database is unavailable.
    """
    row = _row(address)
    if row is None:
        return
    now = clock.now()
    expires = now + LIFE[reason]
    update_if(
        row,
        [
            SuppressionRow.reason.set(reason),
            SuppressionRow.since.set(now),
            SuppressionRow.expires.set(expires),
        ],
        SuppressionRow.expires.does_not_exist() | (SuppressionRow.expires < expires),
    )


def find(address: str) -> SuppressionRow | None:
    """Return the suppression of an address, or None if there is none or it has expired."""
    row = _row(address)
    found = row and SuppressionRow.find(row.pk, row.sk)
    # DynamoDB deletes expired rows late.
    return found if found and found.expires and found.expires > clock.now() else None


def reason(address: str) -> Suppression | None:
    """Return why an address is suppressed, or None if it is not."""
    found = find(address)
    return cast("Suppression", found.reason) if found else None


def _row(address: str) -> SuppressionRow | None:
    """Return an empty row of an address, or None if the text is no address."""
    email = find_email(address)
    if email is None:
        return None
    digest = hashlib.sha256(email.encode()).hexdigest()
    return SuppressionRow(f"W#{PLATFORM}#MAIL-SUPPRESSION#{digest}", SORT_KEY)
