"""The rows that depend on a unit's records, such as index entries and look-ups."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ExternalIdTakenError, InTestWorkspaceError
from chalicelib.core.jobs import JobKind
from chalicelib.core.test_workspaces import MAX_RECORDS, is_test
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.file_uses import RAISE, FileUseTracker
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.index_entries import EntryRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import EXTERNAL_ID
from chalicelib.engine.listing.registry import LISTINGS, listing_of
from chalicelib.engine.reading import Cost, Partition
from chalicelib.engine.tables import Record, Row
from chalicelib.engine.transactions import (
    MAX_ITEMS,
    Staged,
    Transaction,
    delete_stage,
    put_stage,
    update_stage,
)

# A job that writes index entries that did not fit into their transaction.
LATE_ENTRIES = JobKind("late-entries")
# A job that writes file uses that did not fit into their transaction.
LATE_FILE_USES = JobKind("late-file-uses")
# Errors for unique look-ups that another record holds, by the look-up's name. A function receives
# the holder's id. Without an error, the operation starts again.
ClaimErrors = Mapping[str, AppError | Callable[[str], AppError] | None]
NO_CLAIM_ERRORS: ClaimErrors = {}
_COMMON_CLAIM_ERRORS: ClaimErrors = {EXTERNAL_ID.name: ExternalIdTakenError}


@dataclass(eq=False, repr=False)
class Indexer:
    """Stages the rows that depend on the records of one transaction."""

    tenant: str
    transaction: Transaction
    file_uses: FileUseTracker = field(init=False)
    _entries: list[tuple[str, Staged]] = field(default_factory=list)
    _counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # Records that the transaction adds, by noun.
    _more: Counter[str] = field(default_factory=Counter)
    _followed_by: dict[JobKind, None] = field(default_factory=dict)
    # Counters that the transaction deletes, by noun and name.
    uncounted: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.file_uses = FileUseTracker(self.tenant)

    def add(self, row: Row, claim_errors: ClaimErrors) -> None:
        """Set a record's times, revision and index keys, count it and stage its dependent rows."""
        if (listing := self.listing_of(row)) and isinstance(row, Record):
            row.updated_at = clock.now()
            row.created_at = row.created_at or row.updated_at
            row.revision = int(row.version or row.follows) + 1
            listing.set_index_keys(row)
            self._counts[listing.noun].update(listing.counters(row.facets))
            errors = {**_COMMON_CLAIM_ERRORS, **claim_errors}
            self._more[listing.noun] += 1
            self._sync_side_rows(listing, row.original, new_record=row, claim_errors=errors)

    def subtract(self, row: Row) -> None:
        """Subtract a record from the counters that counted it when it was read."""
        if (listing := self.listing_of(row)) and isinstance(row, Record):
            self._counts[listing.noun].subtract(listing.counters(row.facets_read))
            self._more[listing.noun] -= 1

    def remove(self, row: Row) -> None:
        self.subtract(row)
        if (listing := self.listing_of(row)) and isinstance(row, Record):
            self._sync_side_rows(
                listing, row.original or row, new_record=None, claim_errors=NO_CLAIM_ERRORS
            )

    def stage(self) -> list[JobRow]:
        """Stage the dependent rows, and return jobs for rows that exceed the transaction."""
        for noun, name in self.uncounted:
            self._counts[noun].pop(name, None)
        if is_test(self.tenant):
            self._check_room()
        for noun, deltas in self._counts.items():
            for shard, additions in counters.shard_updates(self.tenant, noun=noun, deltas=deltas):
                self.transaction.updates.append((update_stage(shard, additions), None))
        for kind in self._followed_by:
            job = jobs.for_changes(kind, self.tenant)
            self.transaction.puts.append((put_stage(job), None))
        return [*self._stage_file_uses(), *self._stage_entries()]

    def _check_room(self) -> None:
        # Concurrent calls may exceed the maximum by what they create.
        for noun, more in self._more.items():
            if more > 0 and self._count(listing_of(noun)) + more > MAX_RECORDS:
                msg = (
                    f"A test workspace has at most {MAX_RECORDS:,} records of one kind. Nothing "
                    "was changed. Delete records of this kind, or wipe the test workspace."
                )
                raise InTestWorkspaceError(
                    msg, key="too_many_records", details={"maximum": MAX_RECORDS}
                )

    def _count(self, listing: Listing[Any]) -> int:
        if listing.uncounted:
            partition = Partition(listing.partition(self.tenant), Cost())
            return partition.count(MAX_RECORDS, consistent_read=True)
        return counters.read(self.tenant, noun=listing.noun)[counters.TOTAL]

    def _sync_side_rows(
        self,
        listing: Listing[Any],
        old_record: Record | None,
        *,
        new_record: Record | None,
        claim_errors: ClaimErrors,
    ) -> None:
        if listing.followed_by:
            self._followed_by[listing.followed_by] = None
        if listing.files and (record := new_record or old_record):
            name = f"{listing.noun}#{record.id}"
            self.file_uses.note(name, listing.files, old_record, new_record=new_record)
        new = listing.side_rows(self.tenant, new_record) if new_record else {}
        old = listing.side_rows(self.tenant, old_record) if old_record else {}
        for key in old.keys() - new.keys():
            row = old[key].row
            self.transaction.deletes.append((delete_stage(row), None))
        for key, side in new.items():
            if key not in old and side.unique:
                stage = put_stage(side.row, Row.pk.does_not_exist())
                self.transaction.puts.append((stage, claim_errors.get(side.unique)))
            # Each item of a transaction costs twice its write units, so unchanged rows are left
            # out.
            elif key not in old or old[key].row.serialize() != side.row.serialize():
                put = (put_stage(side.row), None)
                if isinstance(side.row, EntryRow):
                    self._entries.append((f"{listing.noun}#{side.row.sk}", put))
                else:
                    self.transaction.puts.append(put)

    def _stage_file_uses(self) -> list[JobRow]:
        transaction, changes = self.transaction, self.file_uses.changes()
        rows = file_uses.rows(self.tenant, changes, self.file_uses.created)
        there = Row.pk.exists()
        # The limit leaves room for the job and for the audit event. The import of a page with fifty
        # new images exceeds it.
        if len(transaction.staged) + len(rows) < MAX_ITEMS - 1:
            transaction.puts += [(put_stage(row), None) for row in rows.put]
            transaction.deletes += [(delete_stage(row), None) for row in rows.deleted]
            transaction.updates += [(update_stage(row, RAISE, there), None) for row in rows.raised]
        elif rows:
            payload = {record: list(files) for record, files in changes.items()}
            return [self._job(LATE_FILE_USES, payload)]
        return []

    def _stage_entries(self) -> list[JobRow]:
        if len(self.transaction.staged) + len(self._entries) < MAX_ITEMS:
            self.transaction.puts += [put for _, put in self._entries]
            return []
        # As when ninety products are reordered. They are written directly after the transaction, or
        # by the job if this process fails to do so.
        records = sorted({record for record, _ in self._entries})
        return [self._job(LATE_ENTRIES, {"records": records})]

    def _job(self, kind: JobKind, payload: dict[str, Any]) -> JobRow:
        job = jobs.row(kind, self.tenant, payload)
        self.transaction.puts.append((put_stage(job, Row.pk.does_not_exist()), None))
        return job

    def listing_of(self, row: Row) -> Listing[Any] | None:
        """Return the listing of a live record, or None for other rows and for the trash."""
        listing = LISTINGS.get(type(row))
        return listing if listing and row.pk == listing.partition(self.tenant) else None
