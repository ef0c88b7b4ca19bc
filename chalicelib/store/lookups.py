"""What a record is found by besides its id, and what is unique among records.

A look-up is a row that is written in the transaction of the record that it leads to. Names that
people give are hashed: folding may make them longer than a key may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pynamodb.attributes import UnicodeAttribute

from chalicelib.store.claims import ClaimRow, claim, name_hash
from chalicelib.store.reading import Cost, Key, Partition
from chalicelib.store.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

SORT_KEY = "-"


@dataclass(frozen=True, slots=True)
class Lookup(Generic[R]):
    """A value that leads to records.

    ``value`` gives it, several of them, or None; they compare folded. ``unique`` says that one
    record has it at most, among those with the same ``within``. A ``platform_wide`` one is unique
    over all workspaces, and leads from a name that arrives without one (``store.claims``); it
    compares as it is.
    """

    name: str
    value: Callable[[R], str | Sequence[str] | None]
    unique: bool = False
    within: Callable[[R], str] | None = None
    platform_wide: bool = False

    def values(self, record: R) -> list[str]:
        """Return the values that lead to a record."""
        found = self.value(record) or ()
        return list(filter(None, [found] if isinstance(found, str) else found))


class SideRow(NamedTuple):
    """A row that goes with a record; ``unique`` is the look-up that it claims, if any."""

    row: Row
    unique: str | None = None


class LookupRow(ContentRow):
    """Leads from a value to a record."""

    target = UnicodeAttribute()


def rows(lookup: Lookup[R], workspace_id: str, noun: str, record: R) -> list[SideRow]:
    """Return the rows that a look-up requires of a record: one for each of its values."""
    values = lookup.values(record)
    if lookup.platform_wide:
        claims = [claim(lookup.name, value, record.id, workspace_id) for value in values]
        return [SideRow(row, lookup.name) for row in claims]
    within = lookup.within(record) if lookup.within else ""
    keys = [unique_key(workspace_id, noun, lookup.name, value, within) for value in values]
    sk = SORT_KEY if lookup.unique else record.id
    name = lookup.name if lookup.unique else None
    return [SideRow(LookupRow(key.pk, sk, target=record.id), name) for key in keys]


def unique_key(workspace_id: str, noun: str, name: str, value: str, within: str = "") -> Key:
    """Return the key of a unique value's row, to ``fetch`` whether it is held."""
    hashed = name_hash(value, within)
    return Key(LookupRow, f"W#{workspace_id}#{noun}#BY#{name}#{hashed}", SORT_KEY)


def find(  # noqa: PLR0913  what a look-up goes by
    lookup: Lookup[R],
    workspace_id: str,
    noun: str,
    value: str,
    *,
    within: str = "",
    cost: Cost | None = None,
) -> list[str]:
    """Return the ids of the records that have a value, oldest first."""
    if lookup.platform_wide:
        held = ClaimRow.find_claim(lookup.name, value)
        return [held.target] if held else []
    key = unique_key(workspace_id, noun, lookup.name, value, within)
    rows = Partition(key.pk, cost or Cost()).items(consistent_read=True)
    return [row["target"]["S"] for row in rows]
