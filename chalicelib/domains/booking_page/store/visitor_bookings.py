"""Store the upcoming bookings that a visitor has made, to limit them."""

from collections.abc import Iterable
from datetime import timedelta

from pynamodb.attributes import ListAttribute, VersionAttribute

from chalicelib.core import clock
from chalicelib.engine.claims import exact_hash
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow
from chalicelib.lib import emails

# Visitors' hashes change daily, so the list cannot be found later.
VISITOR_BOOKINGS_KEPT_FOR = timedelta(days=2)


class VisitorBookingsRow(ContentRow):
    """Upcoming bookings that one visitor, or a network, has made for one contact.

    The key is a hash of both. One more row, without a contact, has the unpaid bookings.
    """

    version = VersionAttribute()
    ids: ListAttribute[str] = ListAttribute(default=list)


def visitor_keys(workspace_id: str, *, visitor: str, contacts: Iterable[str | None]) -> list[Key]:
    """Return the keys of the rows of a visitor's bookings, one for each contact."""
    pk = f"W#{workspace_id}#BOOKING#VISITOR"
    hashes = [exact_hash(emails.key(contact), group=visitor) for contact in contacts if contact]
    return [Key(VisitorBookingsRow, pk, contact_hash) for contact_hash in hashes]


def holds_key(workspace_id: str, *, visitor: str) -> Key:
    """Return the key of the row of a visitor's unpaid bookings."""
    return Key(
        VisitorBookingsRow, f"W#{workspace_id}#BOOKING#VISITOR", exact_hash("", group=visitor)
    )


def made_by_visitor(key: Key, rows: Rows) -> VisitorBookingsRow:
    """Return the row of a visitor's bookings with a key, to save with the new booking."""
    row = rows.find(VisitorBookingsRow, key) or VisitorBookingsRow(key.pk, key.sk)
    row.expires = clock.now() + VISITOR_BOOKINGS_KEPT_FOR
    return row
