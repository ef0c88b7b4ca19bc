"""Look-ups of records by values other than the id, some of which must be unique.

A look-up is a row that is written in the transaction of its record. Values from callers are hashed,
because folding may make them longer than a key may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pynamodb.attributes import UnicodeAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core.text import fold
from chalicelib.engine.claims import ClaimRow, claim, exact_hash, name_hash
from chalicelib.engine.reading import Cost, Key, Partition, fetch
from chalicelib.engine.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

SORT_KEY = "-"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    Keys of an ``exact`` look-up are not folded again. Its rows are written under the ``former_key``
    too, and found there if the record's value has the searched key (ADR 69).
    """

    name: str
    value: Callable[[R], str | Sequence[str] | None]
    unique: bool = False
    within: Callable[[R], str] | None = None
    platform_wide: bool = False
    key: Callable[[str], str] = fold
    former_key: Callable[[str], str] | None = None
    displaced: str | None = None
    exact: bool = False

    def hashes(self, value: str, *, group: str = "") -> tuple[str, str]:
        """Return the hashes of a value under its key and under its former key, often the same."""
        key = self.key(value)
        current = exact_hash(key, group=group) if self.exact else name_hash(key, group=group)
        former = self.former_key and name_hash(self.former_key(value), group=group)
        return current, former or current

    def leads_to(self, record: R, value: str, *, or_folded: bool = False) -> bool:
        """Whether a record has a value.

        ``or_folded`` accepts it in the form of its former key.
        """
        return any(
            self.key(candidate) == self.key(value)
            or (or_folded and self.former_key is not None and candidate == self.former_key(value))
            for candidate in self.values(record)
        )

    def values(self, record: R) -> list[str]:
        """Return the values of the look-up for a record."""
        text = self.value(record) or ()
        return list(filter(None, [text] if isinstance(text, str) else text))


def id_claim(noun: str) -> str:
    """Return the name of the claim on the ids of a noun's records, such as ``form-id``."""
    return f"{noun.lower()}-id"


def id_lookup(noun: str) -> Lookup[R]:
    """Return the look-up from a record's id to its workspace."""
    return Lookup(id_claim(noun), lambda record: record.id, platform_wide=True)


class LookupRow(ContentRow):
    """A row that leads from a value to a record.

    ``key_form`` is the form of an exact look-up's key. Rows of the release before this one have no
    form, because their value was stored folded.
    """

    target = UnicodeAttribute()
    key_form = UnicodeAttribute(null=True)


CURRENT, FORMER = "current", "former"
"""Forms of keys. The row under a former key may be replaced by the row of a value with this key."""


class SideRow(NamedTuple):
    """A row that is stored with a record. ``unique`` is the look-up that the row claims, if any.

    A claim requires that its key is ``free``.
    """

    row: Row
    unique: str | None = None
    free: Condition = Row.pk.does_not_exist()


def rows(lookup: Lookup[R], workspace_id: str, *, noun: str, record: R) -> list[SideRow]:
    """Return the rows that a look-up requires of a record, one for each of its values."""
    values = lookup.values(record)
    if lookup.platform_wide:
        claims = [
            claim(lookup.name, name=value, target=record.id, workspace_id=workspace_id)
            for value in values
        ]
        return [SideRow(row, lookup.name) for row in claims]
    group = lookup.within(record) if lookup.within else ""
    forms = (CURRENT, FORMER) if lookup.exact else (None,)
    lookup_rows = [
        LookupRow(key.pk, key.sk if lookup.unique else record.id, target=record.id, key_form=form)
        for value in values
        for form, key in zip(
            forms, keys(lookup, workspace_id, noun=noun, value=value, group=group), strict=False
        )
    ]
    if not lookup.unique:
        return [SideRow(row) for row in lookup_rows]
    free = Row.pk.does_not_exist()
    if lookup.exact:
        free |= LookupRow.key_form == FORMER
    return [SideRow(row, lookup.name, free) for row in lookup_rows if row.key_form != FORMER]


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


def key_change(lookup: Lookup[R], workspace_id: str, *, noun: str, record: R) -> KeyChange | None:
    """Return both rows of a record's unique value if its key has changed, else None."""
    value = next(iter(lookup.values(record)), None)
    if not value or lookup.former_key is None or not lookup.unique:
        return None
    group = lookup.within(record) if lookup.within else ""
    current, former = lookup.hashes(value, group=group)
    if current == former:
        return None
    rows = [
        LookupRow(
            _partition(workspace_id, noun=noun, name=lookup.name, hashed=hashed),
            SORT_KEY,
            target=record.id,
        )
        for hashed in (current, former)
    ]
    return KeyChange(*rows)


def moved_rows(lookup: Lookup[R], workspace_id: str, *, noun: str, record: R) -> list[LookupRow]:
    """Return the rows of a record's values, not unique ones, whose keys have changed."""
    if not lookup.exact or lookup.unique:
        return []
    keys_by_value = (
        keys(lookup, workspace_id, noun=noun, value=value) for value in lookup.values(record)
    )
    return [
        LookupRow(value_keys[0].pk, record.id, target=record.id)
        for value_keys in keys_by_value
        if len(value_keys) > 1
    ]


def keys(
    lookup: Lookup[R], workspace_id: str, *, noun: str, value: str, group: str = ""
) -> list[Key]:
    """Return the key of a value's row. For an exact look-up, the former key follows if it differs.

    Rows of values that are not unique have the id of their record as the sort key instead.
    """
    hashes = lookup.hashes(value, group=group)
    return [
        Key(
            LookupRow,
            _partition(workspace_id, noun=noun, name=lookup.name, hashed=hashed),
            SORT_KEY,
        )
        for hashed in dict.fromkeys(hashes if lookup.exact else hashes[:1])
    ]


def unique_key(workspace_id: str, *, noun: str, name: str, value: str, group: str = "") -> Key:
    """Return the key of a unique value's row.

    ``fetch`` the row to find whether the value is taken.
    """
    return Key(
        LookupRow,
        _partition(workspace_id, noun=noun, name=name, hashed=name_hash(value, group=group)),
        SORT_KEY,
    )


def _partition(workspace_id: str, *, noun: str, name: str, hashed: str) -> str:
    return f"W#{workspace_id}#{noun}#BY#{name}#{hashed}"


def find(  # noqa: PLR0913  the parts of the look-up's key
    lookup: Lookup[R],
    workspace_id: str,
    *,
    noun: str,
    value: str,
    group: str = "",
    cost: Cost | None = None,
) -> list[str]:
    """Return the ids of the records with a value, oldest first.

    Records that an exact look-up has under a former key may have another value.
    """
    if lookup.platform_wide:
        claim = ClaimRow.find_claim(lookup.name, name=value)
        return [claim.target] if claim else []
    cost = cost or Cost()
    ids: set[str] = set()
    for number, key in enumerate(keys(lookup, workspace_id, noun=noun, value=value, group=group)):
        for item in Partition(key.pk, cost).items(consistent_read=True):
            row = LookupRow.from_raw_data(item)
            if may_have_value(row, is_former_key=number > 0):
                ids.add(row.target)
    return sorted(ids)


def may_have_value(row: LookupRow, *, is_former_key: bool) -> bool:
    """Whether a row leads to a record that may have the value whose key it was read by.

    Under the former key, rows of this release belong to other values: its own have the current key.
    """
    return row.key_form is None if is_former_key else row.key_form != FORMER
