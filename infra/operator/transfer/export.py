"""Write a workspace to a file, with the parts that ``contents`` defines.

Rows are read consistently, page by page, while the workspace is in use. The export is not a
snapshot, but rows that belong together are read together. If a record's long part, messages or
objects change while they are read, the record is read again. Derived rows are left to the import.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from chalicelib import VERSION
from chalicelib.core import clock, retry
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError
from chalicelib.core.operations import load_all
from chalicelib.core.settings import settings
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.billing.store import spent
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.chat.store import chat_sessions
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.files.store.files import FileRow
from chalicelib.domains.identity.store import accounts, workspace_metrics, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.knowledge.store.sources import SourceRow
from chalicelib.domains.leads.store import crm_metrics, leads
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.sites.store import pages, site_visits, sites
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import SiteRow
from chalicelib.engine import audit, jobs
from chalicelib.engine.connection import reaching
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.declaration import INDEX_SLOTS
from chalicelib.engine.listing.index_entries import ENTRY_ATTRIBUTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Cost, Item, Key, Partition, fetch
from chalicelib.engine.tables import Record
from chalicelib.gateways.object_store import object_store
from infra.operator.transfer import contents, members
from infra.operator.transfer.file_format import Writer
from infra.operator.transfer.lines import StoredObject

READERS = 8
"""Records that are read at the same time, each with an object of up to 20 MB and its thumbnail."""
ATTEMPTS = 20
LEFT_ATTRIBUTES = {"pk", *ENTRY_ATTRIBUTES, *INDEX_SLOTS, "saved_by", "kept_for", "token_secret"}
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

T = TypeVar("T")


@dataclass
class _Whole:
    """A record with the parts and objects that belong to its export."""

    item: Item
    parts: list[tuple[str, Item]] = field(default_factory=list)
    objects: list[StoredObject] = field(default_factory=list)
    rows: list[tuple[contents.Kind, str, Item]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Keys of objects that should exist but do not."""
    domain: str | None = None


def export(workspace_id: str, path: Path) -> dict[str, Any]:
    """Write a workspace to a file; return its counts.

    Raises:
        NotFoundError: the workspace does not exist.
        ClickException: the file exists already, or cannot be written.
        UnavailableError: the database or the object store is unavailable; the incomplete file has
            the suffix ``.part``.
    """
    load_all()
    begun, started = clock.now(), time.monotonic()
    workspace = workspaces.get(workspace_id)
    with Writer(path) as writer, ThreadPoolExecutor(READERS) as pool:
        run = _Export(workspace, writer, pool)
        run.write()
    changes = sum(row.at >= begun for row in audit.latest(workspace_id))
    event = AuditEvent("export_workspace", "operator", resources=(f"workspace:{workspace_id}",))
    with reaching():
        audit.row(workspace_id, event).save()
    if changes:
        click.echo(
            f"The workspace was changed {changes} time(s) or more while it was read: what refers to"
            " each other may not fit. Export again when it is quiet, if that matters.",
            err=True,
        )
    for key in run.missing:
        click.echo(f"The object {key} is missing from the object store.", err=True)
    return {
        "workspaceId": workspace_id,
        "file": str(path),
        "bytes": path.stat().st_size,
        "counts": dict(sorted(writer.counts.items())),
        "objectsMissing": len(run.missing),
        "changedMeanwhile": changes,
        "notIncluded": dict(contents.NOT_INCLUDED),
        "seconds": round(time.monotonic() - started, 1),
    }


class _Export:
    """State of an export."""

    def __init__(self, workspace: WorkspaceRow, writer: Writer, pool: ThreadPoolExecutor) -> None:
        self.missing: list[str] = []
        self._workspace, self._writer, self._pool = workspace, writer, pool
        self._groups: defaultdict[str, set[str]] = defaultdict(set)

    def write(self) -> None:
        """Write the complete file."""
        listings = contents.nouns()
        totals = {
            listing.noun: counters.read(self._workspace.id, noun=listing.noun)[counters.TOTAL]
            for listing in listings
        }
        self._header()
        with click.progressbar(
            length=sum(totals.values()), label=f"exporting {self._workspace.slug}", file=sys.stderr
        ) as bar:
            for listing in listings:
                for at in (listing.noun, listing.noun + contents.TRASH):
                    for record_number in self._records(listing, at):
                        bar.update(record_number)
        for kind in contents.PLAIN:
            self._rows(kind, kind.at, self._items(kind, kind.at))
        self._statistics()
        for job in jobs.read_workspace_jobs(self._workspace.id):
            if job.kind not in contents.EXCLUDED_JOBS:
                due = job.due_at.isoformat()
                line = {"kind": job.kind, "id": job.job_id, "due": due, "payload": job.payload}
                self._writer.line("jobs", {"job": line})

    def _header(self) -> None:
        workspace, place = self._workspace, settings()
        self._writer.header(
            {
                "service": VERSION,
                "stage": place.stage,
                "publicUrl": place.public_url,
                "sitesDomain": place.sites_domain,
                "workspaceId": workspace.id,
                "slug": workspace.slug,
                "exportedAt": iso(clock.now()),
                "notIncluded": dict(contents.NOT_INCLUDED),
            }
        )
        left_out = {"pk", "owner_id", "version", "webhook_events"}
        row = {k: v for k, v in workspace.serialize().items() if k not in left_out}
        line = {
            "workspace": row,
            "owner": accounts.get(workspace.owner_id).email,
            "members": members.list_members(workspace),
        }
        self._writer.line("workspace", line)

    def _items(self, kind: contents.Kind, at: str) -> Iterator[Item]:
        pk = contents.partition(self._workspace.id, at=at)
        return Partition(pk, Cost(), kind.row).items(consistent_read=True)

    def _rows(self, kind: contents.Kind, at: str, items: Iterable[Item]) -> None:
        for item in items:
            cleaned = kind.clean(item)
            if cleaned is None:
                continue
            row = {k: v for k, v in cleaned.items() if k != "pk"}
            self._writer.line(kind.at.rstrip("#"), {"at": at, "item": row})

    def _records(self, listing: Listing[Any], at: str) -> Iterator[int]:
        """Write the records of a partition, and yield the size of each batch."""
        pk = contents.partition(self._workspace.id, at=at)
        items = Partition(pk, Cost(), listing.row).items(consistent_read=True)
        if listing.row not in _LOOKS:
            for item in items:
                self._record(at, _Whole(item))
                yield 1
            return
        for batch in _batches(items, READERS):
            for full_record in self._pool.map(lambda item: _full_record(listing, item), batch):
                if full_record is not None:
                    self._record(at, full_record)
            yield len(batch)

    def _record(self, at: str, full_record: _Whole) -> None:
        """Write a record with its parts and objects."""
        for blob in full_record.objects:
            self._writer.object(blob)
        if not at.endswith(contents.TRASH):
            self.missing += full_record.missing
        item = {k: v for k, v in full_record.item.items() if k not in LEFT_ATTRIBUTES}
        line: dict[str, Any] = {"at": at, "item": item}
        if full_record.parts:
            line["parts"] = [
                {"at": part, "item": {k: v for k, v in row.items() if k != "pk"}}
                for part, row in full_record.parts
            ]
        if full_record.domain:
            line["domain"] = full_record.domain
        self._writer.line(at, line)
        for kind, place, row in full_record.rows:
            self._rows(kind, place, [row])
        if group := STATISTICS_OF.get(at.removesuffix(contents.TRASH)):
            self._groups[group].add(item["sk"]["S"])
        for name, group in GROUPS.items():
            if value := item.get(name, {}).get("S"):
                self._groups[group].add(value)

    def _statistics(self) -> None:
        """Write the daily counters of all subjects that the workspace has or its records name."""
        group_ids = {name: sorted(ids) for name, ids in self._groups.items()}
        all_sites, agents = group_ids.get("sites", []), group_ids.get("agents", [])
        subjects = [crm_metrics.subject(), workspace_metrics.SUBJECT, spent.SUBJECT]
        subjects += [crm_metrics.subject(form_id=form_id) for form_id in group_ids.get("forms", [])]
        for site in all_sites:
            subjects += [crm_metrics.subject(project_id=site), site_visits.subject(site)]
        for agent in agents:
            subjects += [bot_metrics.subject(agent, test=test) for test in (False, True)]
            subjects += [bot_metrics.widget_subject(agent, site) for site in (None, *all_sites)]
        kind = contents.METRICS
        for batch in _batches(subjects, READERS):
            places = [kind.at + subject for subject in batch]
            for place, items in zip(
                places, self._pool.map(lambda at: list(self._items(kind, at)), places), strict=True
            ):
                self._rows(kind, place, items)


def _full_record(listing: Listing[Any], item: Item) -> _Whole | None:
    """Return a record with its parts and objects of one moment, or None if it was deleted."""
    record, look = listing.row.from_raw_data(item), _LOOKS[listing.row]
    for number in range(ATTEMPTS):
        workspace_id = record.pk.split("#")[1]
        with suppress(ConcurrentUpdateError):
            return look(workspace_id, record)
        retry.backoff(number)
        (record,) = fetch([Key(listing.row, record.pk, record.sk)]) or (None,)
        if record is None:
            return None
    raise UnavailableError


def _lead(workspace_id: str, lead: LeadRow) -> _Whole:
    full_record = _Whole(lead.stored or {})
    if lead.data_revision is not None:
        data = fetch([leads.data_key(workspace_id, lead_id=lead.id)])
        leads.attach_data([lead], data)
        full_record.parts = [(contents.LEAD_DATA.at, row.serialize()) for row in data]
    return full_record


def _page(workspace_id: str, page: PageRow) -> _Whole:
    full_record = _Whole(page.stored or {})
    if page.design_revision is not None:
        designs = fetch([pages.design_key(workspace_id, page_id=page.id)])
        if [row.attribute_values["revision"] for row in designs] != [page.design_revision]:
            raise ConcurrentUpdateError
        full_record.parts = [(contents.DESIGN.at, row.serialize()) for row in designs]
    _take_objects(full_record, page, page.html_key)
    return full_record


def _file(_: str, file: FileRow) -> _Whole:
    full_record = _Whole(file.stored or {})
    _take_objects(full_record, file, file.key, file.thumbnail_key)
    return full_record


def _source(_: str, source: SourceRow) -> _Whole:
    full_record = _Whole(source.stored or {})
    _take_objects(full_record, source, source.text_key)
    return full_record


def _take_objects(full_record: _Whole, record: Record, *keys: str | None) -> None:
    """Read a record's objects. A missing object may belong to an earlier state of the record.

    Raises:
        ConcurrentUpdateError: the record has changed since it was read.
    """
    for key in keys:
        if key is None:
            continue
        body = object_store().get(key)
        if body is not None:
            full_record.objects.append(StoredObject(key, body))
            continue
        now = fetch([Key(type(record), record.pk, record.sk)])
        if [row.serialize() for row in now] != [record.serialize()]:
            raise ConcurrentUpdateError
        full_record.missing.append(key)


def _dialog(workspace_id: str, dialog: DialogRow) -> _Whole:
    """Return a dialog with its messages and the chat session that continues it."""
    full_record = _Whole(dialog.stored or {})
    kind, place = contents.MESSAGES, contents.MESSAGES.at + dialog.id
    for item in Partition(contents.partition(workspace_id, at=place), Cost(), kind.row).items(
        consistent_read=True
    ):
        if int(item["sk"]["S"]) <= dialog.last_number:
            full_record.rows.append((kind, place, item))
    if dialog.session_hash is not None:
        session = chat_sessions.find_by_hash(workspace_id, token_hash=dialog.session_hash)
        if session is not None:
            kind = contents.SESSIONS
            full_record.rows.append((kind, kind.at + dialog.session_hash, session.serialize()))
    return full_record


def _site(_: str, site: SiteRow) -> _Whole:
    full_record = _Whole(site.stored or {})
    if site.domain is not None:
        claim = sites.find_domain_claim(site.domain.name)
        if claim is not None and claim.target == site.id:
            full_record.domain = site.domain.name
    return full_record


_LOOKS: dict[type, Callable[[str, Any], _Whole]] = {
    LeadRow: _lead,
    PageRow: _page,
    FileRow: _file,
    SourceRow: _source,
    DialogRow: _dialog,
    SiteRow: _site,
}
"""Functions that read records which consist of more than their row."""


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
