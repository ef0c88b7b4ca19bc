"""Write a workspace to an archive, with the parts that ``contents`` defines, and continue it.

Rows are read consistently, page by page, while the workspace is in use. The export is not a
snapshot, but rows that belong together are read together. Derived rows are left to the import.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from chalicelib import VERSION
from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.settings import settings
from chalicelib.domains.billing.store import spent
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.exports.flows import contents, members, whole_records
from chalicelib.domains.exports.flows.whole_records import WholeRecord, whole_record
from chalicelib.domains.exports.rules.archive import Archive, Line
from chalicelib.domains.identity.store import accounts, workspace_metrics
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.sites.store import site_visits
from chalicelib.engine import jobs
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.declaration import INDEX_SLOTS
from chalicelib.engine.listing.index_entries import ENTRY_ATTRIBUTES, UPDATED_SLOT
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Cost, Item, Partition

READERS = 8
"""Records that are read at the same time."""
BATCH_BYTES = 20_000_000
"""Objects of records that are read at the same time: several small ones, or one large one."""
LEFT_ATTRIBUTES = {
    *("pk", *ENTRY_ATTRIBUTES, UPDATED_SLOT, *INDEX_SLOTS),
    *("saved_by", "kept_for", "token_secret"),
}
"""Attributes of records that the import sets, callers that are known to this stage only, and the
secret by which a client manages a booking."""
GROUPS = {
    "project_id": "sites",
    "site_id": "sites",
    "form_id": "forms",
    "agent_id": "agents",
}
"""Attributes in which records name subjects of statistics, even if those were deleted."""
STATISTICS_OF = {"SITE": "sites", "FORM": "forms", "AGENT": "agents"}
WORKSPACE, STATISTICS, JOBS, END = "workspace", "statistics", "jobs", "end"

T = TypeVar("T")


class Cursor(NamedTuple):
    """Where an export continues: in a step, after a sort key or a subject of statistics."""

    step: str = WORKSPACE
    after: str = ""


@dataclass
class Found:
    """What the records told that later steps, and the export's caller, need."""

    subjects: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    missing: list[str] = field(default_factory=list)
    """Keys of objects that should exist but do not."""
    records: int = 0


def new_header(workspace: WorkspaceRow, *, has_money: bool) -> Line:
    """Return the values of the manifest that are known before anything is read."""
    place = settings()
    return {
        "service": VERSION,
        "stage": place.stage,
        "publicUrl": place.public_url,
        "sitesDomain": place.sites_domain,
        "workspaceId": workspace.id,
        "slug": workspace.slug,
        "exportedAt": iso(clock.now()),
        "notIncluded": dict(not_included(has_money=has_money)),
    }


def not_included(*, has_money: bool) -> Mapping[str, str]:
    """Return what an export leaves out, with the reasons."""
    return contents.NOT_INCLUDED if has_money else contents.NOT_INCLUDED_BY_KEY


def count_records(workspace_id: str) -> int:
    """Return about how many records an export will have."""
    return sum(
        counters.read(workspace_id, noun=listing.noun)[counters.TOTAL]
        for listing in contents.nouns()
    )


class Exporter:
    """Writes a workspace to an archive."""

    def __init__(
        self, workspace: WorkspaceRow, archive: Archive, found: Found, *, has_money: bool
    ) -> None:
        self._workspace, self._archive, self._found = workspace, archive, found
        self._has_money = has_money
        listings = {
            at: partial(self._records, listing, at)
            for listing in contents.nouns()
            for at in (listing.noun, listing.noun + contents.TRASH)
        }
        plain = {
            kind.at: partial(self._plain, kind)
            for kind in contents.PLAIN
            if has_money or kind.row not in contents.MONEY
        }
        self._steps: dict[str, Callable[[str], Iterator[str]]] = {
            WORKSPACE: self._members,
            **listings,
            **plain,
            STATISTICS: self._statistics,
            JOBS: self._jobs,
        }

    def write(self, cursor: Cursor, pool: ThreadPoolExecutor) -> Iterator[Cursor]:
        """Write what follows a cursor. Yield another one after each batch, and ``END`` at last."""
        self._pool = pool
        names = [*self._steps, END]
        for name, following in pairwise(names):
            if name == cursor.step:
                for after in self._steps[name](cursor.after):
                    yield Cursor(name, after)
                cursor = Cursor(following)
                yield cursor

    def _members(self, _: str) -> Iterator[str]:
        workspace = self._workspace
        # An import has the account at the payment provider for reading only.
        left_out = {"pk", "owner_id", "version", "webhook_events", "takes_rubles_only"}
        line = {
            "workspace": {k: v for k, v in workspace.serialize().items() if k not in left_out},
            "owner": accounts.get(workspace.owner_id).email,
            "members": members.list_members(workspace, is_by_key=not self._has_money),
        }
        self._archive.line("workspace", line)
        yield from ()

    def _jobs(self, _: str) -> Iterator[str]:
        for job in jobs.read_workspace_jobs(self._workspace.id):
            if job.kind not in contents.EXCLUDED_JOBS:
                due = job.due_at.isoformat()
                line = {"kind": job.kind, "id": job.job_id, "due": due, "payload": job.payload}
                self._archive.line("jobs", {"job": line})
        yield from ()

    def _items(self, kind: type[Any], at: str, after: str = "") -> Iterator[Item]:
        pk = contents.partition(self._workspace.id, at=at)
        start = {"pk": {"S": pk}, "sk": {"S": after}} if after else None
        partition = Partition(pk, Cost(), kind)
        return partition.items(consistent_read=True, exclusive_start_key=start)

    def _plain(self, kind: contents.Kind, after: str) -> Iterator[str]:
        for item in self._items(kind.row, kind.at, after):
            self._rows(kind, kind.at, [item])
            yield item["sk"]["S"]

    def _rows(self, kind: contents.Kind, at: str, items: Iterable[Item]) -> None:
        for item in items:
            cleaned = kind.clean(item)
            if cleaned is not None:
                row = {k: v for k, v in cleaned.items() if k != "pk"}
                self._archive.line(kind.at.rstrip("#"), {"at": at, "item": row})

    def _records(self, listing: Listing[Any], at: str, after: str) -> Iterator[str]:
        items = self._items(listing.row, at, after)
        if not whole_records.has_parts(listing):
            for item in items:
                self._record(listing, at, WholeRecord(item))
                yield item["sk"]["S"]
            return
        for batch in _batches(items):
            read = partial(whole_record, listing)
            for full_record in self._pool.map(read, batch):
                if full_record is not None:
                    self._record(listing, at, full_record)
            yield batch[-1]["sk"]["S"]

    def _record(self, listing: Listing[Any], at: str, full_record: WholeRecord) -> None:
        """Write a record with its parts and objects."""
        self._found.records += 1
        for stored_object in full_record.objects:
            self._archive.object(stored_object)
        if not at.endswith(contents.TRASH):
            self._found.missing += full_record.missing
        left_out = LEFT_ATTRIBUTES | contents.LEFT_OF_NOUN.get(listing.row, frozenset())
        if listing.row is BookingRow and not self._has_money:
            left_out |= contents.PAYMENT_ATTRIBUTES
        item = {k: v for k, v in full_record.item.items() if k not in left_out}
        line: Line = {"at": at, "item": item}
        if full_record.parts:
            line["parts"] = [
                {"at": part, "item": {k: v for k, v in row.items() if k != "pk"}}
                for part, row in full_record.parts
            ]
        if full_record.domain:
            line["domain"] = full_record.domain
        self._archive.line(at, line)
        for kind, place, row in full_record.rows:
            self._rows(kind, place, [row])
        subjects = self._found.subjects
        if group := STATISTICS_OF.get(at.removesuffix(contents.TRASH)):
            subjects[group].add(item["sk"]["S"])
        for name, group in GROUPS.items():
            if value := item.get(name, {}).get("S"):
                subjects[group].add(value)

    def _statistics(self, after: str) -> Iterator[str]:
        """Write the daily counters of all subjects that the workspace has or its records name."""
        kind = contents.METRICS
        left = sorted(subject for subject in self._subjects() if subject > after)
        for number in range(0, len(left), READERS):
            batch = left[number : number + READERS]
            places = [kind.at + subject for subject in batch]
            days = self._pool.map(lambda at: list(self._items(kind.row, at)), places)
            for place, items in zip(places, days, strict=True):
                self._rows(kind, place, items)
            yield batch[-1]

    def _subjects(self) -> Iterator[str]:
        ids = {name: sorted(found) for name, found in self._found.subjects.items()}
        all_sites, agents = ids.get("sites", []), ids.get("agents", [])
        yield from (crm_metrics.subject(), workspace_metrics.SUBJECT)
        if self._has_money:
            yield from (spent.SUBJECT, spent.SMS_SUBJECT)
        for form_id in ids.get("forms", []):
            yield crm_metrics.subject(form_id=form_id)
        for site in all_sites:
            yield from (crm_metrics.subject(project_id=site), site_visits.subject(site))
        for agent in agents:
            for is_test in (False, True):
                yield bot_metrics.subject(agent, test=is_test)
            yield bot_metrics.widget_subject(agent, None)
            for site in all_sites:
                yield bot_metrics.widget_subject(agent, site)


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield records whose objects are in memory at the same time."""
    batch: list[Item] = []
    size = 0
    for item in items:
        weight = whole_records.object_bytes(item)
        if batch and (len(batch) == READERS or size + weight > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += weight
    if batch:
        yield batch
