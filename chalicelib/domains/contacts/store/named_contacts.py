"""Contacts that a record names besides those that it is indexed by (ADR 38).

Examples are an address in the text of a form, a second one in a chat, or a client's former number.
Each has a lookup row, which is written in the record's transaction. So an erasure finds the record
by it.
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
    """Return the known and new contacts, without those that the record is indexed by."""
    listed = set(besides)
    every = dict.fromkeys(each for each in (*(known or ()), *new) if each and each not in listed)
    return list(every)[:MAX_NAMED] or None
