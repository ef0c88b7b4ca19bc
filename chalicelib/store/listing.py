"""The list engine: pages by number, exact totals, orders, filters and search over one noun.

A noun declares a ``Listing``; its rows are stamped with the compact attributes when a unit of work
writes them. This is the plan for small collections: read the compact index once, consistently, and
do the rest in memory. It is exact at any size and cheap up to a few hundred rows (about 18 read
units for 500).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, cast

from chalicelib.core.clock import epoch_ms
from chalicelib.core.ids import new_id
from chalicelib.core.text import cut_bytes, fold
from chalicelib.store.tables import ContentRow, Facets, Record, connection, reaching

INLINE_TEXT_BYTES = 512
"""Search text kept in the compact index.

A longer one is flagged and looked up when the inline part does not match.
"""
BATCH_GET_KEYS = 100
"""Keys in one BatchGetItem (DynamoDB quota)."""
NO_PARENT = "-"

SortKey = Literal["id", "t", "n1", "n2"]
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """How a noun is listed.

    ``text`` gives the searched texts, the first of which is also the name to sort by; ``facets``
    fill ``f1``-``f3`` and ``numbers`` ``n1``-``n2`` with the record's attributes of these names;
    ``sorts`` maps wire names to what they sort by; ``parent`` is the attribute that groups rows,
    such as a page's site.
    """

    row: type[R]
    noun: str
    text: Callable[[R], Sequence[str]]
    sorts: Mapping[str, SortKey]
    status: str | None = None
    facets: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    parent: str | None = None

    def partition(self, workspace_id: str) -> str:
        """Return the partition key of the noun's live records."""
        return f"W#{workspace_id}#{self.noun}"

    def trash(self, workspace_id: str) -> str:
        """Return the partition key of soft-deleted records, which expire by time-to-live."""
        return f"W#{workspace_id}#{self.noun}#TRASH"

    def stamp(self, record: R) -> None:
        """Set the compact attributes from the record's own."""
        text = self._folded(record)
        record.t = cut_bytes(text, INLINE_TEXT_BYTES)
        record.x = None if record.t == text else 1
        record.r = getattr(record, self.parent) if self.parent else NO_PARENT
        record.s = getattr(record, self.status) if self.status else None
        for slot, name in zip(("f1", "f2", "f3"), self.facets, strict=False):
            setattr(record, slot, getattr(record, name))
        for slot, name in zip(("n1", "n2"), self.numbers, strict=False):
            value = getattr(record, name)
            setattr(record, slot, epoch_ms(value) if isinstance(value, datetime) else value)

    def counted(self, facets: Facets) -> list[str]:
        """Return the names of the counters that a record with these facets is in."""
        names = ("status", *self.facets)
        return [
            "total",
            *(f"{name}:{value}" for name, value in zip(names, facets, strict=False) if value),
        ]

    def new(self, workspace_id: str, **attributes: Any) -> R:  # noqa: ANN401  the noun's attributes
        """Return a new record with an id of its own, to be staged."""
        return self.row(self.partition(workspace_id), new_id(), **attributes)

    def find(self, workspace_id: str, record_id: str) -> R | None:
        """Return a live record by id, read consistently, or None.

        Another workspace's id is None, too.
        """
        return self.row.find(self.partition(workspace_id), record_id)

    def key(self, workspace_id: str, record_id: str) -> "Key":
        """Return the record's key, for ``fetch``."""
        return Key(self.row, self.partition(workspace_id), record_id)

    def compact(self, workspace_id: str, parent: str | None = None) -> list["Compact"]:
        """Return the noun's compact rows, or those under one parent, in the order of creation."""
        rows: list[Compact] = []
        start: Any = None
        table = self.row._get_connection()  # noqa: SLF001  raw items: a Model a row would cost ten times the CPU
        while True:
            with reaching():
                answer = table.query(
                    self.partition(workspace_id),
                    range_key_condition=None if parent is None else ContentRow.r == parent,
                    index_name="by_row",
                    consistent_read=True,
                    exclusive_start_key=start,
                )
            rows.extend(map(Compact.read, answer["Items"]))
            start = answer.get("LastEvaluatedKey")
            if start is None:
                return sorted(rows, key=lambda row: row.id)

    def page(self, workspace_id: str, query: "Query") -> "Page[R]":
        """Return one page of records and the exact number of all that match."""
        rows = [
            row
            for row in self.compact(workspace_id, query.parent)
            if query.admits(row, self.facets)
        ]
        sort_key = self.sorts[query.sort]
        if query.search or sort_key == "t":
            rows = self._with_whole_texts(workspace_id, rows)
        if query.search:
            wanted = fold(query.search)
            rows = [row for row in rows if any(wanted in part for part in row.texts)]
        rows.sort(key=lambda row: (row.sort_value(sort_key), row.id), reverse=query.descending)
        start = (query.page - 1) * query.size
        keys = [self.key(workspace_id, row.id) for row in rows[start : start + query.size]]
        return Page([record for record in fetch(keys) if isinstance(record, self.row)], len(rows))

    def _with_whole_texts(self, workspace_id: str, rows: list["Compact"]) -> list["Compact"]:
        """Fetch the records whose texts are too long for the index, and put the whole text in."""
        whole = {
            record.id: self._folded(record)
            for record in fetch(self.key(workspace_id, row.id) for row in rows if row.cut)
            if isinstance(record, self.row)
        }
        return [replace(row, text=whole.get(row.id, row.text)) if row.cut else row for row in rows]

    def _folded(self, record: R) -> str:
        return "\n".join(fold(part) for part in self.text(record))


@dataclass(frozen=True, slots=True)
class Query:
    """What a list operation asks for.

    ``page`` counts from 1; ``facets`` names a record's attribute values.
    """

    page: int
    size: int
    sort: str
    descending: bool = False
    status: str | None = None
    facets: Mapping[str, str] = field(default_factory=dict)
    search: str | None = None
    parent: str | None = None

    def admits(self, row: "Compact", facets: Sequence[str]) -> bool:
        """Whether a row passes the status and facet filters."""
        if self.status is not None and row.status != self.status:
            return False
        return all(row.facets[facets.index(name)] == value for name, value in self.facets.items())


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list, and how many records match over all pages."""

    records: list[R]
    total: int


@dataclass(frozen=True, slots=True)
class Compact:
    """A row of the compact index."""

    id: str
    status: str | None
    facets: tuple[str | None, ...]
    numbers: tuple[float, ...]
    text: str
    cut: bool

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> "Compact":
        """Read a raw DynamoDB item."""

        def text(name: str) -> str | None:
            value = item.get(name)
            return None if value is None else value.get("S")

        numbers = tuple(
            float(item[n]["N"]) if "N" in item.get(n, ()) else 0.0 for n in ("n1", "n2")
        )
        return cls(
            id=item["sk"]["S"],
            status=text("s"),
            facets=(text("f1"), text("f2"), text("f3")),
            numbers=numbers,
            text=text("t") or "",
            cut="N" in item.get("x", ()),
        )

    @property
    def texts(self) -> list[str]:
        """The folded texts, the name first."""
        return self.text.split("\n")

    def sort_value(self, key: SortKey) -> Any:  # noqa: ANN401  text or number, alike within one sort
        """Return what the row sorts by."""
        match key:
            case "id":
                return self.id
            case "t":
                return self.texts[0]
            case _:
                return self.numbers[int(key[1]) - 1]


@dataclass(frozen=True, slots=True)
class Key:
    """A row's class and full key."""

    row: type[ContentRow]
    pk: str
    sk: str


def fetch(keys: Iterable[Key]) -> list[ContentRow]:
    """Return the rows of ``content`` with these keys, in their order; missing ones are left out.

    Read consistently, by one BatchGetItem per hundred keys, whatever the nouns; keys that DynamoDB
    leaves unprocessed are asked again.
    """
    wanted = {(key.pk, key.sk): key.row for key in keys}
    found: dict[tuple[str, str], ContentRow] = {}
    pending = list(wanted)
    table = ContentRow._get_connection()  # noqa: SLF001  PynamoDB's own batch_get reads one model only
    while pending:
        batch, pending = pending[:BATCH_GET_KEYS], pending[BATCH_GET_KEYS:]
        with reaching():
            answer = connection().batch_get_item(
                table.table_name,
                cast("Any", [{"pk": pk, "sk": sk} for pk, sk in batch]),
                consistent_read=True,
            )
        for item in answer["Responses"].get(table.table_name, ()):
            place = (item["pk"]["S"], item["sk"]["S"])
            found[place] = wanted[place].from_raw_data(item)
        left = answer.get("UnprocessedKeys", {}).get(table.table_name, {}).get("Keys", ())
        pending.extend((key["pk"]["S"], key["sk"]["S"]) for key in left)
    return [found[place] for place in wanted if place in found]
