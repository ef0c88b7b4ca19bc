"""Contacts in a record, in addition to the e-mail address and phone that it is indexed by (ADR 38).

Examples are an e-mail address in the text of a form, and a client's former phone number. Each has a
lookup row, which is written in the record's transaction. An erasure finds the record by it.
"""

from collections.abc import Collection, Iterable

NAMED = "named"
"""Name of the lookup from such a contact to records."""
MAX_NAMED = 30
"""Maximum number of contacts kept per record. Transactions are limited in size."""


def added(
    known: Collection[str] | None,
    new: Iterable[str | None],
    *,
    besides: Iterable[str | None] = (),
) -> list[str] | None:
    """Return the known and new contacts, without those in ``besides``. None if there are none.

    ``besides`` has the contacts that the record is indexed by.
    """
    indexed = set(besides)
    found = dict.fromkeys(each for each in (*(known or ()), *new) if each and each not in indexed)
    return list(found)[:MAX_NAMED] or None
