"""Look-ups: values other than the id that lead to a record, and values that must be unique.

A look-up is a row that is written in the transaction of its record. Values from callers are hashed,
because folding may make them longer than a key may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pynamodb.attributes import UnicodeAttribute

from chalicelib.core.text import fold
from chalicelib.engine.claims import ClaimRow, claim, name_hash
from chalicelib.engine.reading import Cost, Key, Partition, fetch
from chalicelib.engine.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

SORT_KEY = "-"


@dataclass(frozen=True, slots=True)
class Lookup(Generic[R]):
    """A value that leads to records.

    ``value`` returns the value, several values, or None. Values compare folded. ``unique`` allows
    one record per value, among records with the same ``within``. A ``platform_wide`` look-up is
    unique over all workspaces and leads from a name without a workspace (``engine.claims``). Its
    values compare exactly.

    Values compare by their ``key``. If the rule of ``key`` has changed, older rows may still have
    their ``former_key``. The change can make the values of several records equal. The record that
    is found first then keeps the value. The others store theirs in the attribute that ``displaced``
    names, so they are not found by it.
    """

    name: str
    value: Callable[[R], str | Sequence[str] | None]
    unique: bool = False
    within: Callable[[R], str] | None = None
    platform_wide: bool = False
    key: Callable[[str], str] = fold
    former_key: Callable[[str], str] | None = None
    displaced: str | None = None

    def values(self, record: R) -> list[str]:
        """Return the values of the look-up for a record."""
        found = self.value(record) or ()
        return list(filter(None, [found] if isinstance(found, str) else found))


def id_claim(noun: str) -> str:
    """Return the name of the claim on the ids of a noun's records, such as ``form-id``."""
    return f"{noun.lower()}-id"


def by_id(noun: str) -> Lookup[R]:
    """Return the look-up from a record's id to its workspace."""
    return Lookup(id_claim(noun), lambda record: record.id, platform_wide=True)


class SideRow(NamedTuple):
    """A row that is stored with a record. ``unique`` is the look-up that the row claims, if any."""

    row: Row
    unique: str | None = None


class LookupRow(ContentRow):
    """A row that leads from a value to a record."""

    target = UnicodeAttribute()


def rows(lookup: Lookup[R], workspace_id: str, noun: str, record: R) -> list[SideRow]:
    """Return the rows that a look-up requires of a record: one for each of its values."""
    values = lookup.values(record)
    if lookup.platform_wide:
        claims = [claim(lookup.name, value, record.id, workspace_id) for value in values]
        return [SideRow(row, lookup.name) for row in claims]
    within = lookup.within(record) if lookup.within else ""
    keys = [
        unique_key(workspace_id, noun, lookup.name, lookup.key(value), within) for value in values
    ]
    sk = SORT_KEY if lookup.unique else record.id
    name = lookup.name if lookup.unique else None
    return [SideRow(LookupRow(key.pk, sk, target=record.id), name) for key in keys]


class KeyChange(NamedTuple):
    """The row of a unique value, and its row under the former key."""

    current: LookupRow
    former: LookupRow

    def existing(self) -> list[LookupRow]:
        """Return the rows of the two that exist."""
        keys = [Key(LookupRow, row.pk, row.sk) for row in self]
        return [row for row in fetch(keys) if isinstance(row, LookupRow)]

    def existing_for(self, record_id: str) -> list[LookupRow]:
        """Return the existing rows that lead to a record."""
        return [row for row in self.existing() if row.target == record_id]


def key_change(lookup: Lookup[R], workspace_id: str, noun: str, record: R) -> KeyChange | None:
    """Return both rows of a record's unique value if its key has changed; otherwise None."""
    value = next(iter(lookup.values(record)), None)
    if not value or lookup.former_key is None or lookup.former_key(value) == lookup.key(value):
        return None
    within = lookup.within(record) if lookup.within else ""
    current, former = (
        unique_key(workspace_id, noun, lookup.name, key(value), within)
        for key in (lookup.key, lookup.former_key)
    )
    return KeyChange(
        LookupRow(current.pk, SORT_KEY, target=record.id),
        LookupRow(former.pk, SORT_KEY, target=record.id),
    )


def unique_key(workspace_id: str, noun: str, name: str, value: str, within: str = "") -> Key:
    """Return the key of a unique value's row. ``fetch`` it to find whether the value is taken."""
    hashed = name_hash(value, within)
    return Key(LookupRow, f"W#{workspace_id}#{noun}#BY#{name}#{hashed}", SORT_KEY)


def find(  # noqa: PLR0913  the parts of the look-up's key
    lookup: Lookup[R],
    workspace_id: str,
    noun: str,
    value: str,
    *,
    within: str = "",
    cost: Cost | None = None,
) -> list[str]:
    """Return the ids of the records with a value, oldest first."""
    if lookup.platform_wide:
        held = ClaimRow.find_claim(lookup.name, value)
        return [held.target] if held else []
    key = unique_key(workspace_id, noun, lookup.name, lookup.key(value), within)
    rows = Partition(key.pk, cost or Cost()).items(consistent_read=True)
    return [row["target"]["S"] for row in rows]
