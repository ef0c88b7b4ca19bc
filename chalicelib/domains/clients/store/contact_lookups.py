"""Find records by other contacts than the e-mail address and phone they are indexed by (ADR 38)."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.tables import Record
from chalicelib.lib import emails

R = TypeVar("R", bound=Record)
# Lookup from such a contact to records, such as from an e-mail address in a form's message, or a
# client's former phone number. Each has a row, which is written in the record's transaction. An
# erasure finds the record by it.
NAMED = "named"
MAX_NAMED = 30  # kept per record; transactions are limited in size


def merge_contacts(
    known_contacts: Collection[str] | None,
    new: Iterable[str | None],
    *,
    besides: Iterable[str | None] = (),
) -> list[str] | None:
    """Return the known and new contacts, or None, without those that the record is indexed by."""
    indexed = {emails.key(contact) for contact in besides if contact}
    contacts_by_key: dict[str, str] = {}
    for contact in filter(None, (*(known_contacts or ()), *new)):
        contacts_by_key.setdefault(emails.key(contact), contact)
    unindexed = [contact for key, contact in contacts_by_key.items() if key not in indexed]
    return unindexed[:MAX_NAMED] or None


def contact_lookup(
    name: str, value: Callable[[R], str | Sequence[str] | None], *, unique: bool = False
) -> Lookup[R]:
    """Return a look-up from e-mail addresses or phone numbers to records."""
    return Lookup(name, value, unique, key=emails.key)
