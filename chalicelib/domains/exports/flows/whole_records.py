"""Read a record with its parts and objects of one moment, while the workspace is in use.

If a record's long part, messages or objects change while they are read, the record is read again.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from chalicelib.core import retry
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError
from chalicelib.domains.chat.store import chat_sessions
from chalicelib.domains.chat.store.dialogs import DialogRow
from chalicelib.domains.exports.flows import contents
from chalicelib.domains.exports.rules.archive import StoredObject
from chalicelib.domains.files.store.files import FileRow
from chalicelib.domains.knowledge.store.sources import SourceRow
from chalicelib.domains.leads.store import leads
from chalicelib.domains.leads.store.leads import LeadRow
from chalicelib.domains.sites.store import pages, sites
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import SiteRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.reading import Cost, Item, Key, Partition, fetch
from chalicelib.engine.tables import Record
from chalicelib.gateways.object_store import object_store

ATTEMPTS = 20


@dataclass
class WholeRecord:
    """A record with the parts and objects that belong to its export."""

    item: Item
    parts: list[tuple[str, Item]] = field(default_factory=list)
    objects: list[StoredObject] = field(default_factory=list)
    rows: list[tuple[contents.Kind, str, Item]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Keys of objects that should exist but do not."""
    domain: str | None = None


def object_bytes(item: Item) -> int:
    """Return about how many bytes the objects of a record have."""
    return sum(int(item[name]["N"]) for name in ("size", "html_bytes") if name in item)


def has_parts(listing: Listing[Any]) -> bool:
    """Whether records of a noun consist of more than their row."""
    return listing.row in READS


def whole_record(listing: Listing[Any], item: Item) -> WholeRecord | None:
    """Return a record with its parts and objects of one moment, or None if it was deleted."""
    record, read = listing.row.from_raw_data(item), READS[listing.row]
    for number in range(ATTEMPTS):
        workspace_id = record.pk.split("#")[1]
        with suppress(ConcurrentUpdateError):
            return read(workspace_id, record)
        retry.backoff(number)
        (record,) = fetch([Key(listing.row, record.pk, record.sk)]) or (None,)
        if record is None:
            return None
    raise UnavailableError


def _lead(workspace_id: str, lead: LeadRow) -> WholeRecord:
    full_record = WholeRecord(lead.stored or {})
    if lead.data_revision is not None:
        data = fetch([leads.data_key(workspace_id, lead_id=lead.id)])
        leads.attach_data([lead], data)
        full_record.parts = [(contents.LEAD_DATA.at, row.serialize()) for row in data]
    return full_record


def _page(workspace_id: str, page: PageRow) -> WholeRecord:
    full_record = WholeRecord(page.stored or {})
    if page.design_revision is not None:
        designs = fetch([pages.design_key(workspace_id, page_id=page.id)])
        if [row.attribute_values["revision"] for row in designs] != [page.design_revision]:
            raise ConcurrentUpdateError
        full_record.parts = [(contents.DESIGN.at, row.serialize()) for row in designs]
    _take_objects(full_record, page, page.html_key)
    return full_record


def _file(_: str, file: FileRow) -> WholeRecord:
    full_record = WholeRecord(file.stored or {})
    _take_objects(full_record, file, file.key, file.thumbnail_key)
    return full_record


def _source(_: str, source: SourceRow) -> WholeRecord:
    full_record = WholeRecord(source.stored or {})
    _take_objects(full_record, source, source.text_key)
    return full_record


def _take_objects(full_record: WholeRecord, record: Record, *keys: str | None) -> None:
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


def _dialog(workspace_id: str, dialog: DialogRow) -> WholeRecord:
    """Return a dialog with its messages and the chat session that continues it."""
    full_record = WholeRecord(dialog.stored or {})
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


def _site(_: str, site: SiteRow) -> WholeRecord:
    full_record = WholeRecord(site.stored or {})
    if site.domain is not None:
        claim = sites.find_domain_claim(site.domain.name)
        if claim is not None and claim.target == site.id:
            full_record.domain = site.domain.name
    return full_record


READS: dict[type, Callable[[str, Any], WholeRecord]] = {
    LeadRow: _lead,
    PageRow: _page,
    FileRow: _file,
    SourceRow: _source,
    DialogRow: _dialog,
    SiteRow: _site,
}
"""Functions that read records which consist of more than their row."""
