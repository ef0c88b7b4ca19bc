"""Declare how records of a noun are listed, found and counted.

Units of work write the index keys, entries, look-ups and counters that follow
(``engine.indexing``), and ``engine.listing.queries`` reads pages.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any, Generic, NamedTuple, TypeVar

from pynamodb.expressions.condition import Condition

from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import JobKind
from chalicelib.core.text import cut_bytes, search_fold
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.engine.file_uses import ShownFiles
from chalicelib.engine.listing import counters, lookups
from chalicelib.engine.listing.event_rules import EventRules
from chalicelib.engine.listing.index_entries import (
    ENTRY_ATTRIBUTES,
    INLINE_TEXT_BYTES,
    NAME_BYTES,
    UPDATED_SLOT,
    EntryRow,
    IndexEntry,
    SortKey,
    TextRow,
    group,
    number_key,
    partition_of,
    texts_partition,
    token,
)
from chalicelib.engine.listing.lookups import EXTERNAL_ID, Lookup, SideRow
from chalicelib.engine.reading import Cost, Key, fetch
from chalicelib.engine.tables import ContentRow, Facets, ProgramRecord, Record

R = TypeVar("R", bound=Record)

FACET_SLOTS = ("s", "f1", "f2", "f3")
NUMBER_SLOTS = ("n1", "n2", "y1")  # for numbers; lists can also be sorted by the first two
INDEX_SLOTS = ("o1", "o2", "o3", "o4")


class SortIndex(NamedTuple):
    """An index for large collections in the order of a sort, separate for each value of a facet."""

    sort: str
    partition_by: str | None = None  # a facet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Declaration(Generic[R]):
    """How a noun is listed. A declaration that would produce wrong pages raises ValueError."""

    row: type[R]
    noun: str  # its name in partition keys and in the audit log
    # Searchable strings; the first one is also the name to sort by.
    text: Callable[[R], Sequence[str]]
    # Wire names of sorts, each with its key: ``id`` (creation), ``t`` (the name), or the slot of a
    # number, ``n1`` or ``n2``. Each listing also sorts by ``updatedAt``.
    sorts: Mapping[str, SortKey]
    label: str = ""  # in English error messages; the noun in lower case by default
    plural: str = ""  # "the" and the label with an "s" by default
    listed_by: str = ""  # the ``word`` of the operation that lists its records
    not_found_message: str = ""  # the error for an unknown id, if the usual sentence does not fit
    unavailable_message: str = ""  # for a visitor, if a record does not exist or is not public
    status: str | None = None  # the attribute that holds the status; records are counted by it
    facets: tuple[str, ...] = ()  # up to three attributes to filter by
    uncounted: bool = False  # has no counters, because nobody reads its totals
    counted: tuple[str, ...] = ()  # facets whose values have a counter of their records
    # Facets whose values each have a partition of index entries. The cost of listing one value is
    # then proportional to its records. Each record takes one more row, which is in the compact
    # index only: lists of one value sort in memory.
    partitioned: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # attributes to filter by that hold several strings
    presence: tuple[str, ...] = ()  # attributes to filter by whether they are set and true
    # Up to three attributes, integers or times, to filter by ranges, besides ``updated_at``. Lists
    # can be sorted by the first two.
    numbers: tuple[str, ...] = ()
    # The attribute with a price in minor units of the workspace's currency, which then stays.
    price: str | None = None
    # The number that orders the entries, instead of creation. The cost of a search within a range
    # of the number depends only on the records in the range.
    scan_along: str | None = None
    # The attribute that groups records, such as a page's site. Each list covers one parent.
    parent: str | None = None
    # Up to four, for nouns with large collections. The order of creation needs none. A noun without
    # indexes is always scanned whole.
    indexes: tuple[SortIndex, ...] = ()
    lookups: tuple[Lookup[R], ...] = ()
    files: ShownFiles[Any] | None = None
    # Bytes of search text in an index entry. A longer text takes one more row.
    inline_bytes: int = INLINE_TEXT_BYTES
    events: EventRules = field(default_factory=dict)
    deletion_event: str = ""  # the name of the event that a record is deleted, if it is one
    # The job that follows each change of a record. The changes of a workspace within some seconds
    # share it (``engine.jobs.for_changes``).
    followed_by: JobKind | None = None

    def __post_init__(self) -> None:
        names = {self.status, *self.facets}
        problems = {
            "more than three facets": len(self.facets) >= len(FACET_SLOTS),
            "more than three numbers": len(self.numbers) > len(NUMBER_SLOTS),
            "more than four indexes": len(self.indexes) > len(INDEX_SLOTS),
            "counted attributes that are no facets": bool(set(self.counted) - set(self.facets)),
            "counters that it does not keep": bool(
                self.uncounted and (self.status or self.counted or self.indexes)
            ),
            "indexes by what is no sort": any(i.sort not in self.sorts for i in self.indexes),
            "indexes by what is not counted": any(
                i.partition_by not in {None, self.status, *self.counted} for i in self.indexes
            ),
            "sorts by numbers that there are not": any(
                slot in NUMBER_SLOTS[len(self.numbers) :] for slot in self.sorts.values()
            ),
            "indexes, which know no parent": bool(self.parent and self.indexes),
            "entries along no number, or with no index by creation or by that number": (
                self.scan_along is not None and not self._serves_scans_along()
            ),
            "a sort by names longer than an entry holds": (
                "t" in self.sorts.values() and self.inline_bytes < NAME_BYTES
            ),
            "an attribute of the record that it has not": not all(
                name is None or hasattr(self.row, name) for name in (*names, self.price)
            ),
        }
        if wrong := [problem for problem, there in problems.items() if there]:
            msg = f"the listing of {self.noun} has {', '.join(wrong)}"
            raise ValueError(msg)
        object.__setattr__(self, "sorts", {**self.sorts, UPDATED_AT: UPDATED_SLOT})
        if issubclass(self.row, ProgramRecord):
            object.__setattr__(self, "lookups", (*self.lookups, EXTERNAL_ID))

    def _serves_scans_along(self) -> bool:
        slots = {self.sorts[index.sort] for index in self.indexes if index.partition_by is None}
        slot = self.number_slots.get(self.scan_along or "")
        return slot is not None and not self.parent and {"id", slot} <= slots

    def partition(self, workspace_id: str) -> str:
        return f"W#{workspace_id}#{self.noun}"

    def trash(self, workspace_id: str) -> str:
        """Return the partition key of soft-deleted records. Time-to-live removes them."""
        return f"W#{workspace_id}#{self.noun}#TRASH"

    @property
    def facet_slots(self) -> dict[str, str]:
        names = (self.status, *self.facets)
        return {name: slot for name, slot in zip(names, FACET_SLOTS, strict=False) if name}

    @property
    def number_slots(self) -> dict[str, str]:
        slots = dict(zip(self.numbers, NUMBER_SLOTS, strict=False))
        return {**slots, "updated_at": UPDATED_SLOT}

    def set_index_keys(self, record: R) -> None:
        text = self.folded(record)
        record.t = cut_bytes(text, self.inline_bytes)
        record.x = None if record.t == text else 1
        record.r = self._key_prefix(record) + record.id
        record.c = self._tokens(record)
        for name, slot in self.facet_slots.items():
            setattr(record, slot, getattr(record, name))
        numbers = [_to_integer(getattr(record, name)) for name in self.numbers]
        for slot, number in zip(NUMBER_SLOTS, numbers, strict=False):
            setattr(record, slot, number)
        record.y2 = _to_integer(record.updated_at)
        n1, n2, *_ = (*(number or 0 for number in numbers), 0, 0)
        entry = IndexEntry(record.id, (n1, n2), text, cut=False)
        for slot, index in zip(INDEX_SLOTS, self.indexes, strict=False):
            group_prefix = group(getattr(record, index.partition_by)) if index.partition_by else ""
            setattr(record, slot, group_prefix + entry.sort_key(self.sorts[index.sort]))

    def _key_prefix(self, record: R) -> str:
        if self.scan_along:
            return group(number_key(_to_integer(getattr(record, self.scan_along)) or 0))
        return group(getattr(record, self.parent)) if self.parent else ""

    def _tokens(self, record: R) -> str | None:
        tokens = [
            token(name, value=value) for name in self.tags for value in getattr(record, name) or ()
        ]
        tokens += [token("has", value=name) for name in self.presence if getattr(record, name)]
        return "".join(tokens) or None

    def side_rows(self, workspace_id: str, record: R) -> dict[tuple[str, str], SideRow]:
        """Return the rows stored with a record by key: entries, long text and look-ups."""
        rows: list[SideRow] = []
        for facet in self.partitioned:
            if value := getattr(record, facet):
                attributes = {name: getattr(record, name) for name in ENTRY_ATTRIBUTES}
                place = partition_of(workspace_id, noun=self.noun, facet=facet, value=value)
                rows.append(SideRow(EntryRow(place, record.id, **attributes)))
        if record.x:
            place = texts_partition(workspace_id, noun=self.noun)
            rows.append(SideRow(TextRow(place, record.id, whole=self.folded(record))))
        for lookup in self.lookups:
            rows += lookups.rows(lookup, workspace_id, noun=self.noun, record=record)
        return {(side.row.pk, side.row.sk): side for side in rows}

    def counters(self, facets: Facets) -> list[str]:
        """Return the names of the counters that count a record with these facets."""
        if self.uncounted:
            return []
        values = dict(zip(FACET_SLOTS, facets, strict=True))
        attributes = {self.status, *self.counted}
        return [
            counters.TOTAL,
            *(
                counters.name("status" if name == self.status else name, value=value)
                for name, slot in self.facet_slots.items()
                if name in attributes and (value := values[slot])
            ),
        ]

    def having(self, filters: Mapping[str, str]) -> Condition | None:
        slots = self.facet_slots
        conditions: list[Condition] = [
            ContentRow.c.contains(token(name, value=value))
            if name in self.tags
            else getattr(ContentRow, slots[name]) == value
            for name, value in filters.items()
        ]
        return reduce(and_, conditions) if conditions else None

    def key(self, workspace_id: str, *, record_id: str) -> Key:
        return Key(self.row, self.partition(workspace_id), record_id)

    def fetch(
        self,
        workspace_id: str,
        ids: Iterable[str],
        cost: Cost | None = None,
        *,
        consistent: bool = True,
    ) -> list[R]:
        """Return the live records with these ids, in their order, without missing ones."""
        keys = (self.key(workspace_id, record_id=record_id) for record_id in ids)
        records = fetch(keys, cost, consistent=consistent)
        return [record for record in records if isinstance(record, self.row)]

    def lookup(self, name: str) -> Lookup[R]:
        (declared,) = (lookup for lookup in self.lookups if lookup.name == name)
        return declared

    def folded(self, record: R) -> str:
        """Return the folded searchable strings, one per line."""
        return "\n".join(search_fold(part) for part in self.text(record))


def _to_integer(value: int | datetime | None) -> int | None:
    return epoch_ms(value) if isinstance(value, datetime) else value
