"""Store requested bookings that wait for the link in an e-mail.

A requested booking is found by the hash of the link's token. Its row is deleted when the link has
booked, and expires soon after the link has ended.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta

from pynamodb.attributes import ListAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.engine.tables import ControlRow, JsonAttribute
from chalicelib.lib import emails, tokens

LINK_WORKS_FOR = timedelta(minutes=30)
AWAITED_KEPT_FOR = timedelta(hours=1)


class AwaitedBookingRow(ControlRow):
    """A requested booking."""

    request_id = UnicodeAttribute()
    request: JsonAttribute = JsonAttribute()  # the visitor's, with the exact start
    booking: JsonAttribute = JsonAttribute()  # what visitors see of the booking to be
    contacts: ListAttribute[str] = ListAttribute(default=list)  # all contacts in the request
    source = UnicodeAttribute()
    proposal = UnicodeAttribute(null=True)  # a bot's, which the visitor has confirmed
    language = UnicodeAttribute(null=True)
    link_ends_at = UTCDateTimeAttribute()

    @property
    def email(self) -> str:
        # The link is mailed to this address.
        return str(self.request["client"]["email"])


def find_awaited(workspace_id: str, *, token: str) -> AwaitedBookingRow | None:
    """Return the requested booking of a link, or None if the link is unknown, used or ended."""
    row = AwaitedBookingRow.find(_partition(workspace_id), tokens.digest(token))
    return row if row is not None and clock.now() < row.link_ends_at else None


def new_awaited(
    workspace_id: str, *, token: str, contacts: Iterable[str | None]
) -> AwaitedBookingRow:
    """Return the row of a link. The caller sets the request, and stages the row."""
    now = clock.now()
    return AwaitedBookingRow(
        _partition(workspace_id),
        tokens.digest(token),
        # An address and its other spelling must find the same request when a client is erased.
        contacts=[emails.key(contact) for contact in contacts if contact],
        link_ends_at=now + LINK_WORKS_FOR,
        expires=now + AWAITED_KEPT_FOR,
    )


def naming_awaited(workspace_id: str, contacts: Collection[str]) -> list[AwaitedBookingRow]:
    """Return the requested bookings with one of these contacts, to erase them."""
    keys = set(map(emails.key, contacts))
    rows = AwaitedBookingRow.partition(_partition(workspace_id))
    return [row for row in rows if keys.intersection(row.contacts)]


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#AWAITED-BOOKING"
