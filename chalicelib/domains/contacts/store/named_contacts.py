"""Contacts that a record names besides those that it is listed by (ADR 38).

An address in the text of a form, a second one in a chat, a client's former number: each has a
look-up row, written in the transaction of the record, so that an erasure finds the record by it.
"""

from collections.abc import Collection, Iterable

NAMED = "named"
"""The look-up that leads from such a contact to records."""
MAX_NAMED = 30
"""Contacts kept of one record: a text with more is a list, and a transaction has a limit."""


def added(
    known: Collection[str] | None,
    new: Iterable[str | None],
    *,
    besides: Iterable[str | None] = (),
) -> list[str] | None:
    """Return the known contacts with new ones, without those that the record is listed by."""
    listed = set(besides)
    every = dict.fromkeys(each for each in (*(known or ()), *new) if each and each not in listed)
    return list(every)[:MAX_NAMED] or None
