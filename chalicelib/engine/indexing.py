"""The rows that follow from a unit's records: index entries, look-ups, counters and file uses."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.file_uses import RAISE, FileUseTracker
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.index_entries import EntryRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import LISTINGS
from chalicelib.engine.tables import Record, Row
from chalicelib.engine.transactions import (
    MAX_ITEMS,
    Staged,
    Transaction,
    delete_stage,
    put_stage,
    update_stage,
)

LATE_ENTRIES = "late-entries"
"""The scheduled job of writing index entries that did not fit into their transaction."""
LATE_FILE_USES = "late-file-uses"
"""The same of rows that say which records show which files."""
Taken = Mapping[str, AppError | Callable[[str], AppError]]
"""What it means that a unique look-up is held by another, by its name; or made of the holder's id.

Without one the operation begins again.
"""
NOTHING: Taken = {}


@dataclass
class Indexer:
    """Stages, in one transaction, the rows that follow from the records that it writes."""

    tenant: str
    transaction: Transaction
    file_uses: FileUseTracker = field(init=False)
    _entries: list[tuple[str, Staged]] = field(default_factory=list)
    _counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        """Follow which files the tenant's records show."""
        self.file_uses = FileUseTracker(self.tenant)

    def add(self, row: Row, taken: Taken) -> None:
        """Set a record's times, revision and index keys, and count it. Other rows are not listed.

        The rows that go with it are written with it.
        """
        if (listing := self._listing(row)) and isinstance(row, Record):
            row.updated_at = clock.now()
            row.created_at = row.created_at or row.updated_at
            row.revision = int(row.version or 0) + 1
            listing.set_index_keys(row)
            self._counts[listing.noun].update(listing.counters(row.facets))
            self._keep_in_step(listing, row.as_read, row, taken)

    def subtract(self, row: Row) -> None:
        """Take a record out of the counters it was in when it was read."""
        if (listing := self._listing(row)) and isinstance(row, Record):
            self._counts[listing.noun].subtract(listing.counters(row.facets_read))

    def remove(self, row: Row) -> None:
        """Stage the removal of the rows that go with a record, as it was read."""
        self.subtract(row)
        if (listing := self._listing(row)) and isinstance(row, Record):
            self._keep_in_step(listing, row.as_read or row, None, NOTHING)

    def stage(self) -> list[JobRow]:
        """Stage what the records have added up to; return the jobs of what does not fit."""
        for noun, deltas in self._counts.items():
            for shard, additions in counters.shard_updates(self.tenant, noun, deltas):
                self.transaction.updates.append((update_stage(shard, additions), None))
        return [*self._stage_file_uses(), *self._stage_entries()]

    def _keep_in_step(
        self,
        listing: Listing[Any],
        before: Record | None,
        after: Record | None,
        taken: Taken,
    ) -> None:
        """Stage what changes of the rows that go with a record; note which files it shows."""
        if listing.files and (record := after or before):
            name = f"{listing.noun}#{record.id}"
            self.file_uses.note(name, listing.files, before, after)
        new = listing.side_rows(self.tenant, after) if after else {}
        old = listing.held_side_rows(self.tenant, before, new) if before else {}
        for key in old.keys() - new.keys():
            row = old[key].row
            self.transaction.deletes.append((delete_stage(row), None))
        for key, side in new.items():
            if key not in old and side.unique:
                stage = put_stage(side.row, Row.pk.does_not_exist())
                self.transaction.puts.append((stage, taken.get(side.unique)))
            elif key not in old or old[key].row.serialize() != side.row.serialize():
                put = (put_stage(side.row), None)
                if isinstance(side.row, EntryRow):
                    self._entries.append((f"{listing.noun}#{side.row.sk}", put))
                else:
                    self.transaction.puts.append(put)

    def _stage_file_uses(self) -> list[JobRow]:
        """Stage the rows of which records show which files, if they fit into the transaction.

        If not, as when a page with fifty new images is imported, they are written right after it,
        as entries are. A place is left for the job of those, and for the audit event.
        """
        transaction, changes = self.transaction, self.file_uses.changes()
        rows = file_uses.rows(self.tenant, changes, self.file_uses.created)
        there = Row.pk.exists()
        if len(transaction.staged) + len(rows) < MAX_ITEMS - 1:
            transaction.puts += [(put_stage(row), None) for row in rows.put]
            transaction.deletes += [(delete_stage(row), None) for row in rows.deleted]
            transaction.updates += [(update_stage(row, RAISE, there), None) for row in rows.shown]
        elif rows:
            payload = {record: list(files) for record, files in changes.items()}
            return [self._job(LATE_FILE_USES, payload)]
        return []

    def _stage_entries(self) -> list[JobRow]:
        """Stage the entries in partitions of values, if they fit into the transaction.

        If not, as when ninety products are put in another order, they are written right after it; a
        job that is committed with it sees to that if this process does not.
        """
        if len(self.transaction.staged) + len(self._entries) < MAX_ITEMS:
            self.transaction.puts += [put for _, put in self._entries]
            return []
        records = sorted({record for record, _ in self._entries})
        return [self._job(LATE_ENTRIES, {"records": records})]

    def _job(self, kind: str, payload: dict[str, Any]) -> JobRow:
        job = jobs.row(kind, self.tenant, payload)
        self.transaction.puts.append((put_stage(job, Row.pk.does_not_exist()), None))
        return job

    def _listing(self, row: Row) -> Listing[Any] | None:
        """Return the listing of a noun's live record.

        Rows of no noun, and those in its trash, have none.
        """
        listing = LISTINGS.get(type(row))
        return listing if listing and row.pk == listing.partition(self.tenant) else None
