"""Writes the rows and objects of a file, and derives the other rows as units of work do.

Writing them again has the same result. An interrupted import therefore starts again and completes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from chalicelib.core.jobs import KNOWLEDGE_STALE, JobKind
from chalicelib.domains.bookings.flows.holds import lapse_job
from chalicelib.domains.bookings.rules import booking_tokens
from chalicelib.domains.bookings.rules.slots import BusyEntry
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bots.store.agents import AgentRow
from chalicelib.domains.chat.flows.dialog_removal import expiry_job
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.client_profiles.flows.tracing import has_personal_data
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.rules.archive import Line, StoredObject
from chalicelib.domains.files.rules import stored_files
from chalicelib.domains.files.store import files
from chalicelib.domains.files.store.files import FileRow
from chalicelib.domains.knowledge.flows.source_texts import TEXT_TYPE
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.domains.services.store.dated_starts import DatedStartRow
from chalicelib.domains.sites.flows.page_objects import HTML_TYPE
from chalicelib.domains.sites.store import sites
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import SiteRow
from chalicelib.domains.webhooks.store import webhooks
from chalicelib.domains.webhooks.store.webhooks import WebhookRow
from chalicelib.engine import file_uses, jobs
from chalicelib.engine.claims import ClaimRow
from chalicelib.engine.jobs import JobRow
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.counters import CounterRow
from chalicelib.engine.listing.declaration import INDEX_SLOTS
from chalicelib.engine.listing.index_entries import ENTRY_ATTRIBUTES, UPDATED_SLOT
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Item
from chalicelib.engine.tables import Record
from chalicelib.gateways.object_store import object_store
from infra.operator.transfer.batch_writes import BatchWriter
from infra.operator.transfer.erased import Erased
from infra.operator.transfer.file_format import read
from infra.operator.transfer.preflight import FILES, progress
from infra.operator.transfer.rewriting import Rewriting


@dataclass
class Restoring:
    """Writes the contents of a file into a workspace that does not exist yet.

    ``slugs`` maps the sites' slugs in the file to those here. Memory use is about 100 bytes for
    each page, booking and counter.
    """

    path: Path
    workspace_id: str
    rewriting: Rewriting
    slugs: Mapping[str, str]
    erased: Erased
    payments: set[str]
    """Ids of the payments in the file, as the import writes them."""
    claims: list[ClaimRow] = field(default_factory=list)
    """Claims of the records, which are created after all rows."""
    counts: Counter[str] = field(default_factory=Counter)
    _totals: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _busy: list[tuple[str, BusyEntry]] = field(default_factory=list)
    _dated: list[tuple[str, DatedStart]] = field(default_factory=list)
    _used: int = 0
    _html_bytes: dict[str, int] = field(default_factory=dict)
    """Lengths of pages' HTML by key, because rewritten links may change them."""

    def write(self) -> None:
        """Write everything but the workspace itself, its claims and its jobs."""
        with progress(self.path, "importing") as advance, BatchWriter() as writer:
            for line in self._lines(advance):
                if isinstance(line, StoredObject):
                    self._put_object(writer, line)
                elif "at" in line:
                    self._put_row(writer, line)
            for noun, totals in self._totals.items():
                for item in counters.whole_rows(self.workspace_id, noun=noun, counts=totals):
                    writer.put(CounterRow, item)
            for day in calendar_days.new_rows(self.workspace_id, self._busy, self._dated):
                writer.put(type(day), day.serialize())
            if self._used:
                usage = files.usage_row(self.workspace_id, self._used)
                writer.put(type(usage), usage.serialize())

    def write_jobs(self) -> int:
        """Write the scheduled jobs after the workspace was created, and return their number."""
        job_count = 0
        with progress(self.path, "scheduling") as advance, BatchWriter() as writer:
            for line in self._lines(advance):
                for job in self._jobs(line) if not isinstance(line, StoredObject) else ():
                    writer.put(JobRow, job.serialize())
                    job_count += 1
        return job_count

    def _lines(self, advance: Any) -> Iterator[Line | StoredObject]:  # noqa: ANN401  of a progress bar
        return read(self.path, advance, self.rewriting.rewrite_text)

    def _jobs(self, line: Line) -> Iterator[JobRow]:
        if job := line.get("job"):
            due = datetime.fromisoformat(job["due"])
            kind = JobKind(job["kind"])  # The jobs of deletions, which are all in the main queue.
            yield jobs.row(kind, self.workspace_id, job["payload"], due, job_id=job["id"])
        listing = contents.noun_at(line.get("at", ""))
        if listing is None or line["at"] != listing.noun:
            return
        if listing.row is BookingRow:
            booking: BookingRow = self._record(listing, line)
            if hold := lapse_job(self.workspace_id, booking):
                yield hold
        elif listing.row is AgentRow:
            agent_id = line["item"]["sk"]["S"]
            yield jobs.row(KNOWLEDGE_STALE, self.workspace_id, {}, job_id=agent_id)
        elif listing.row is DialogRow:
            yield expiry_job(self.workspace_id, self._record(listing, line))

    def _put_object(self, writer: BatchWriter, stored_object: StoredObject) -> None:
        key, body = stored_object
        if key.startswith(FILES):
            headers = stored_files.headers_for_file(body, key.rpartition("/")[2])
            kind = headers["Content-Type"]
            writer.do(partial(object_store().put, key, body, kind, headers))
        elif "/knowledge/" in key:
            writer.do(partial(object_store().put, key, body, TEXT_TYPE))
        else:  # a page's HTML: the preflight has rejected all other objects
            if self.rewriting:
                # Links in a page contain ids and slugs, which a copy replaces.
                body = self.rewriting.rewrite_text(body.decode()).encode()
            self._html_bytes[key] = len(body)
            writer.do(partial(object_store().put, key, body, HTML_TYPE))
        self.counts["objects"] += 1

    def _put_row(self, writer: BatchWriter, line: Line) -> None:
        at: str = line["at"]
        self.counts["rows"] += 1
        if listing := contents.noun_at(at):
            self._put_record(writer, listing, line)
            return
        kind = contents.kind_at(at)
        assert kind is not None, at  # noqa: S101  the preflight has rejected it
        if item := self.erased.clean_row(kind, at, line["item"]):
            writer.put(kind.row, self._item(at, item))
            if kind.row is DatedStartRow:
                row = DatedStartRow.from_raw_data(self._item(at, item))
                self._dated.append((row.resource_id, row.dated))

    def _item(self, at: str, item: Item) -> Item:
        return {"pk": {"S": contents.partition(self.workspace_id, at=at)}, **item}

    def _record(self, listing: Listing[Any], line: Line) -> Any:  # noqa: ANN401  a record of any noun
        """Return the record of a line, with the attributes that differ here."""
        item = self._item(line["at"], line["item"])
        if listing.row is SiteRow:
            if self.rewriting.ids is not None:
                item.pop("domain_binding", None)  # the owner must verify it again for another site
            elif binding := item.get("domain_binding"):
                sites.forget_host(binding["M"])
            slug = item["slug"]["S"]
            item["slug"] = {"S": self.slugs.get(slug, slug)}
        elif listing.row is PageRow and (key := item.get("html_key")):
            size = self._html_bytes.get(key["S"])
            if size is not None:
                item["html_bytes"] = {"N": str(size)}
        elif listing.row is BookingRow:
            paid_by = item.get("paid_by", {}).get("S")
            if paid_by is not None and paid_by not in self.payments:
                # Without its payment, the booking is not paid.
                left_out = contents.PAYMENT_ATTRIBUTES
                item = {name: item[name] for name in item if name not in left_out}
        elif listing.row is WebhookRow:
            # The receiver belongs to the original, so a person switches the webhook on here.
            version = int(item["secret_version"]["N"]) + 1
            item |= {
                "status": {"S": webhooks.OFF},
                "off_because": {"S": webhooks.IMPORTED},
                "secret_version": {"N": str(version)},
                "first_version": {"N": str(version)},
                "key_ids": {"L": []},
            }
        record = listing.row.from_raw_data(item)
        self.erased.wipe(record)
        return record

    def _put_record(self, writer: BatchWriter, listing: Listing[Any], line: Line) -> None:
        record = self._record(listing, line)
        parts = []
        for part in () if self.erased.has(record) else line.get("parts", ()):
            kind = contents.kind_at(part["at"])
            assert kind is not None, part["at"]  # noqa: S101  as above
            item = self._item(part["at"], part["item"])
            writer.put(kind.row, item)
            parts.append(kind.row.from_raw_data(item))
        if isinstance(record, LeadRow):
            leads.attach_data([record], parts)
        is_live = line["at"] == listing.noun
        listing.set_index_keys(record)
        if not is_live:
            listing.set_trash_keys(record)
        attributes = record.serialize()
        keys = {
            name: attributes[name]
            for name in (*ENTRY_ATTRIBUTES, UPDATED_SLOT, *INDEX_SLOTS)
            if name in attributes
        }
        item = record.stored or {}
        if self.erased.has(record):
            item = attributes
            self.erased.count += 1
        elif isinstance(record, BookingRow) and has_personal_data(record):
            # The secret of its links is not in the file. An erased booking has no links.
            item = item | {"token_secret": {"S": booking_tokens.new_secret()}}
        writer.put(listing.row, item | keys)
        if is_live:
            self._put_side_rows(writer, listing, record)
            self._totals[listing.noun].update(listing.counters(record.facets))
            self._note(record)
        if domain := line.get("domain"):
            self._claim_domain(domain, site_id=record.id)

    def _put_side_rows(self, writer: BatchWriter, listing: Listing[Any], record: Record) -> None:
        for side in listing.side_rows(self.workspace_id, record).values():
            if isinstance(side.row, ClaimRow):
                self.claims.append(side.row)
            else:
                writer.put(type(side.row), side.row.serialize())
        if listing.files:
            name = f"{listing.noun}#{record.id}"
            for file_id in set(listing.files.ids(record)):
                use = file_uses.use_row(self.workspace_id, file_id=file_id, record=name)
                writer.put(type(use), use.serialize())

    def _note(self, record: Record) -> None:
        """Add a live record to the totals that are written at the end."""
        if isinstance(record, BookingRow) and record.blocks:
            self._busy.append((record.resource_id, record.busy))
        elif isinstance(record, FileRow):
            self._used += int(record.size)
        elif isinstance(record, PageRow):
            self._used += int(record.html_bytes)

    def _claim_domain(self, domain: str, *, site_id: str) -> None:
        if self.rewriting.ids is None:
            self.claims.append(
                sites.domain_claim(self.workspace_id, domain=domain, site_id=site_id)
            )
