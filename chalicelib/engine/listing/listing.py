"""The listing of a noun, with the methods that find and list its records.

DynamoDB has no numbered pages, exact totals, free sort orders or full-text search. Units of work
write index keys and counters with each record, and ``engine.listing.queries`` reads each page in
the cheapest way that is exact (ADR 8).
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.wire.list_names import UPDATED_AT
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.listing import lookups, queries
from chalicelib.engine.listing.counters import ReadCounts
from chalicelib.engine.listing.declaration import INDEX_SLOTS, Declaration, SortIndex
from chalicelib.engine.listing.index_entries import (
    IndexEntry,
    entries,
    group,
    number_in,
    parent_condition,
    partition_of,
    token,
)
from chalicelib.engine.listing.lookups import EXTERNAL_ID, LookupRow
from chalicelib.engine.listing.ordering import SortPosition
from chalicelib.engine.listing.query import Query, ResultPage, Selection
from chalicelib.engine.reading import Cost, Key, Partition, fetch
from chalicelib.engine.tables import ContentRow, Record

if TYPE_CHECKING:
    from chalicelib.core.wire.lists import ListQuery

R = TypeVar("R", bound=Record)
T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Listing(Declaration[R]):
    """The records of a noun, read by id, by look-up, along an index or by page."""

    def new(self, workspace_id: str, **attributes: Any) -> R:  # noqa: ANN401  the noun's attributes
        """Return a new record with a new id. The caller stages it."""
        return self.row(self.partition(workspace_id), new_id(), **attributes)

    def find(self, workspace_id: str, *, record_id: str) -> R | None:
        """Return a live record of this workspace by id, read consistently, or None."""
        return self.row.find(self.partition(workspace_id), record_id)

    def find_deleted(self, workspace_id: str, *, record_id: str) -> R | None:
        """Return a soft-deleted record that can still be restored, read consistently, or None."""
        record = self.row.find(self.trash(workspace_id), record_id)
        # Time-to-live removes records late, so the clock decides.
        return record if record and record.expires > clock.now() else None

    def deleted_ids(self, workspace_id: str, *, together_with: str) -> list[str]:
        """Return ids of soft-deleted records by ``together_with``, of a noun without indexes."""
        # The ids include records that time-to-live has not removed yet.
        trash = Partition(self.trash(workspace_id), Cost())
        return [
            index_entry.id
            for index_entry in entries(
                trash, parent_condition(together_with), where=None, consistent=True
            )
        ]

    def fetch_deleted(self, workspace_id: str, ids: Iterable[str]) -> list[R]:
        """Return the soft-deleted records with these ids, in their order."""
        trash = self.trash(workspace_id)
        rows = fetch(Key(self.row, trash, record_id) for record_id in ids)
        return [row for row in rows if isinstance(row, self.row)]

    def trash_row(self, workspace_id: str, record: R, until: datetime, together_with: str) -> R:
        """Return the row of a soft-deleted record, which keeps its version and expires."""
        values = _moved_values(record) | {"expires": until, "trashed_with_id": together_with}
        deleted_record = self.row(self.trash(workspace_id), **values)
        deleted_record.follows = int(record.version) - 1
        self.set_trash_keys(deleted_record)
        return deleted_record

    def set_trash_keys(self, deleted: R) -> None:
        """Leave a record in the trash only the key by which ``deleted_ids`` finds it."""
        for slot in INDEX_SLOTS:
            setattr(deleted, slot, None)
        # The trash of a noun with indexes is not listed, so its records have no key.
        deleted.r = None if self.indexes else group(deleted.trashed_with_id) + deleted.id

    def revived(self, workspace_id: str, deleted: R) -> R:
        """Return the live record of a soft-deleted one. It continues the version."""
        record = self.row(self.partition(workspace_id), **_moved_values(deleted))
        record.follows = int(deleted.version or 0)
        return record

    def require(self, workspace_id: str, *, record_id: str) -> R:
        """Return a live record by id, read consistently, or raise NotFoundError."""
        return self.found(self.find(workspace_id, record_id=record_id))

    def found(self, result: T | None) -> T:
        """Return the result of a search by id, or raise NotFoundError if it is None."""
        if result is None:
            raise self.not_found()
        return result

    def not_found(self) -> NotFoundError:
        key = self.noun.lower()
        if self.not_found_message:
            return NotFoundError(self.not_found_message, key=key)
        label = self.label or key
        return NotFoundError.of(
            label, key=key, plural=self.plural or f"the {label}s", listed_by=self.listed_by
        )

    def found_for_visitor(self, result: T | None) -> T:
        """Return the result of a visitor's search, or raise NotFoundError if it is None."""
        if result is None:
            raise self.unavailable()
        return result

    def unavailable(self) -> NotFoundError:
        return NotFoundError(self.unavailable_message, key=self.noun.lower())

    def workspace_of(self, record_id: str) -> str | None:
        """Return the workspace of a live record, or None. Requires the look-up ``by_id``."""
        return ClaimRow.workspace_of(lookups.id_claim(self.noun), name=record_id)

    def find_by(self, workspace_id: str, *, lookup: str, value: str, group: str = "") -> list[str]:
        """Return the ids of the records that have this value of a look-up, oldest first."""
        declared = self.lookup(lookup)
        return lookups.find(declared, workspace_id, noun=self.noun, value=value, group=group)

    def value_key(self, workspace_id: str, *, lookup: str, value: str, group: str = "") -> Key:
        """Return the key of the row of a unique value. ``fetch`` it to find who has the value."""
        declared = self.lookup(lookup)
        return lookups.key_of(declared, workspace_id, noun=self.noun, value=value, group=group)

    def find_unique(
        self, workspace_id: str, *, lookup: str, values: Iterable[str]
    ) -> dict[str, str]:
        """Return the ids of the records with these values of a unique look-up, by value."""
        keys = {value: self.value_key(workspace_id, lookup=lookup, value=value) for value in values}
        targets = {row.pk: row.target for row in fetch(keys.values()) if isinstance(row, LookupRow)}
        return {value: targets[key.pk] for value, key in keys.items() if key.pk in targets}

    def read_after(self, workspace_id: str, *, record_id: str, limit: int) -> list[R]:
        """Return the first records after an id, in the order of ids. Pass "" for the first."""
        items = Partition(self.partition(workspace_id), Cost()).items(
            limit,
            range_key_condition=ContentRow.sk > record_id if record_id else None,
            consistent_read=True,
        )
        return [self.row.from_raw_data(item) for item in items]

    def latest(self, workspace_id: str, limit: int) -> list[R]:
        """Return the records created last, newest first, in one request."""
        items = Partition(self.partition(workspace_id), Cost()).items(
            limit, scan_index_forward=False, consistent_read=True
        )
        return [self.row.from_raw_data(item) for item in items]

    def entries(
        self,
        workspace_id: str,
        parent: str | None = None,
        *,
        present: str | None = None,
        **filters: str,
    ) -> list[IndexEntry]:
        """Return index entries by parent, ``present`` attribute or values, in the order of keys."""
        place, conditions = self.partition(workspace_id), dict(filters)
        # For a value of a partitioned facet, only the partition of the value is read.
        for facet in self.partitioned:
            if facet in conditions:
                place = partition_of(
                    workspace_id, noun=self.noun, facet=facet, value=conditions.pop(facet)
                )
                break
        partition = Partition(place, Cost())
        keys = None if parent is None else parent_condition(parent)
        where = self.having(conditions)
        if present is not None:
            has = ContentRow.c.contains(token("has", value=present))
            where = has if where is None else where & has
        return list(entries(partition, keys, where=where, consistent=True))

    def ordered_ids(self, workspace_id: str, *, status: str) -> list[str]:
        """Return the ids of the records with a status, in their manual order."""
        in_order = self.sorts["sortOrder"]
        rows = self.entries(workspace_id, status=status)
        return [entry.id for entry in sorted(rows, key=lambda entry: entry.sort_key(in_order))]

    def read_along(
        self,
        workspace_id: str,
        index: SortIndex,
        limit: int,
        *,
        last_record: R | None = None,
        descending: bool = False,
    ) -> list[SortPosition]:
        """Return up to ``limit`` positions along an index by a number, after ``last_record``."""
        slot = INDEX_SLOTS[self.indexes.index(index)]
        key = getattr(ContentRow, slot)
        items = Partition(self.partition(workspace_id), Cost()).items(
            limit,
            index_name=f"by_{slot}",
            range_key_condition=last_record and key > getattr(last_record, slot),
            scan_index_forward=not descending,
            consistent_read=True,  # for changes that place a record between others
        )
        return [SortPosition(number_in(item[slot]["S"]), item["sk"]["S"]) for item in items]

    def query(self, args: "ListQuery", **selected: Unpack[Selection]) -> Query:
        """Return the query of a list operation, newest first unless it names a sort.

        Each field of the input with the name of the status, a facet or a tag filters by it, and the
        value "all" does not. ``filters`` adds or replaces some. The external id, the order and the
        time of changes that the input names are those of the query.
        """
        values = vars(args)
        names = {self.status, *self.facets, *self.tags} & values.keys()
        submitted = {name: values[name] for name in names if name}
        filters = {name: None if value == "all" else value for name, value in submitted.items()}
        if "sort" not in selected:
            selected |= {"sort": "createdAt", "descending": True}
        if args.sorts_by_update:
            selected |= {"sort": UPDATED_AT, "descending": False}
        if (direction := values.get("sort_dir")) is not None:
            selected["descending"] = direction == "desc"
        if args.updated_since is not None:
            since = {"updated_at": (args.updated_since, None)}
            selected["ranges"] = {**selected.get("ranges", {}), **since}
        if (external_id := values.get("external_id")) is not None:
            selected["lookups"] = {**selected.get("lookups", {}), EXTERNAL_ID.name: external_id}
        selected["filters"] = {**filters, **selected.get("filters", {})}
        return Query(args.page, args.size, **selected)

    def select(self, records: Iterable[R], args: "ListQuery") -> tuple[list[R], int]:
        """Return the page of records that were all read, and the number of all that match.

        They are in their order, unless the input names the order of changes.
        """
        since = args.updated_since
        matches = [
            record
            for record in records
            if since is None or clock.epoch_ms(record.updated_at) >= clock.epoch_ms(since)
        ]
        descending = getattr(args, "sort_dir", None) == "desc"
        if args.sorts_by_update:
            matches.sort(key=lambda record: (record.updated_at, record.id), reverse=descending)
        elif descending:
            matches.reverse()
        return matches[args.rows], len(matches)

    def page(
        self, workspace_id: str, query: Query, counts: ReadCounts | None = None
    ) -> ResultPage[R]:
        """Return one page of records and the exact number of all that match."""
        page = queries.read(self, workspace_id, query, counts)
        spent = {"units": page.cost.units, "roundTrips": page.cost.round_trips}
        log.debug("listed", extra={"noun": self.noun, "plan": page.plan, **spent})
        return page


def _moved_values(record: Record) -> dict[str, Any]:
    left_behind = {"pk", "version", "r", "expires", "trashed_with_id"}
    return {k: v for k, v in record.attribute_values.items() if k not in left_behind}
