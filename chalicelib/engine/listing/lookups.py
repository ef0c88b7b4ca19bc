"""Look-ups of records by values other than the id, some of which must be unique."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from pynamodb.attributes import UnicodeAttribute

from chalicelib.core.text import fold
from chalicelib.engine.claims import ClaimRow, claim, exact_hash
from chalicelib.engine.reading import Cost, Key, Partition
from chalicelib.engine.tables import ContentRow, Record, Row

R = TypeVar("R", bound=Record)

SORT_KEY = "-"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lookup(Generic[R]):
    """A value that leads to records."""

    name: str
    value: Callable[[R], str | Sequence[str] | None]  # one value, several, or None
    unique: bool = False  # one record per value, among records with the same ``within``
    within: Callable[[R], str] | None = None
    # Unique over all workspaces, leads from a name without a workspace (``engine.claims``), and
    # compares values exactly.
    platform_wide: bool = False
    key: Callable[[str], str] = fold  # values with the same key are the same

    def values(self, record: R) -> list[str]:
        text = self.value(record) or ()
        return list(filter(None, [text] if isinstance(text, str) else text))


EXTERNAL_ID: Lookup[Any] = Lookup(
    "external_id", lambda record: record.external_id, unique=True, key=str
)
"""The look-up of a ``ProgramRecord``. Only a record with an external id has its row."""


def id_claim(noun: str) -> str:
    """Return the name of the claim on the ids of a noun's records, such as ``form-id``."""
    return f"{noun.lower()}-id"


def id_lookup(noun: str) -> Lookup[R]:
    """Return the look-up from a record's id to its workspace."""
    return Lookup(id_claim(noun), lambda record: record.id, platform_wide=True)


class LookupRow(ContentRow):
    target = UnicodeAttribute()


class SideRow(NamedTuple):
    """A row that is stored with a record. ``unique`` is the look-up that the row claims, if any."""

    row: Row
    unique: str | None = None


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
    keys = [key_of(lookup, workspace_id, noun=noun, value=value, group=group) for value in values]
    if lookup.unique:
        return [SideRow(LookupRow(*key[1:], target=record.id), lookup.name) for key in keys]
    return [SideRow(LookupRow(key.pk, record.id, target=record.id)) for key in keys]


def key_of(lookup: Lookup[R], workspace_id: str, *, noun: str, value: str, group: str = "") -> Key:
    """Return the key of a unique value's row. ``fetch`` it to find whether the value is taken."""
    # Folding may make a value longer than a key may be, so the key has a hash.
    hashed = exact_hash(lookup.key(value), group=group)
    # Rows of values that are not unique have the id of their record as the sort key instead.
    return Key(LookupRow, f"W#{workspace_id}#{noun}#BY#{lookup.name}#{hashed}", SORT_KEY)


def find(  # noqa: PLR0913  the parts of the look-up's key
    lookup: Lookup[R],
    workspace_id: str,
    *,
    noun: str,
    value: str,
    group: str = "",
    cost: Cost | None = None,
) -> list[str]:
    """Return the ids of the records with a value, oldest first."""
    if lookup.platform_wide:
        claim = ClaimRow.find_claim(lookup.name, name=value)
        return [claim.target] if claim else []
    key = key_of(lookup, workspace_id, noun=noun, value=value, group=group)
    items = Partition(key.pk, cost or Cost()).items(consistent_read=True)
    return sorted(LookupRow.from_raw_data(item).target for item in items)
