"""Store leads, which visitors submit, with their status and history."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, Self, get_args

from pynamodb.attributes import (
    BooleanAttribute,
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    VersionAttribute,
)

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.clients.store.contact_lookups import NAMED, contact_lookup
from chalicelib.engine.history import HistoryRow
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.event_rules import changes, changes_others, is_new
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Key, Rows, fetch
from chalicelib.engine.tables import ContentRow, JsonAttribute, ProgramRecord, Row
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import phones
from chalicelib.lib.shortening import shorten, size_of

LeadStatus = Literal["new", "in_progress", "completed", "rejected", "archived"]
STATUSES: tuple[LeadStatus, ...] = get_args(LeadStatus)
# Size limit of data in the lead's row. Longer data have a separate row, and lists a short copy.
INLINE_DATA_BYTES = 4096
CONSENT = {"label", "at"}  # Keys of a stored consent: its label, and the time of consent.


class LeadRow(ProgramRecord):
    """A lead from a form, or from a dialog with a bot."""

    status = UnicodeAttribute()
    form_id = UnicodeAttribute(null=True)
    project_id = UnicodeAttribute(null=True)
    page_id = UnicodeAttribute(null=True)
    client_id = UnicodeAttribute(null=True)
    dialog_id = UnicodeAttribute(null=True)
    name = UnicodeAttribute(null=True)
    email = UnicodeAttribute(null=True)
    # Former leads also have a phone here that is not a valid number, as in ``phone_entered``.
    phone = UnicodeAttribute(null=True)
    # any phone as entered, also if it is not a valid number
    phone_entered = UnicodeAttribute(null=True)
    # Submitted values. Long ones are in a separate row, which lists do not read. This is then a
    # shortened copy.
    data: JsonAttribute = JsonAttribute(default=dict)
    data_revision = NumberAttribute(null=True)  # revision of the separate row of long data
    is_order = BooleanAttribute(null=True)
    over_quota = BooleanAttribute(null=True)  # beyond the number that the plan includes
    notes = UnicodeAttribute(null=True)
    # contacts in the data, and former contacts
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    tags: ListAttribute[Any] = ListAttribute(default=list)
    source: JsonAttribute = JsonAttribute(null=True)
    # The source in the statistics. It never changes, because counters are corrected by it.
    source_name = UnicodeAttribute()
    # Day of creation in the workspace's time zone. It never changes, because counters are corrected
    # by it.
    day = UnicodeAttribute()

    kept_when_erased = ProgramRecord.kept_when_erased | {
        *("status", "form_id", "project_id", "page_id", "client_id", "dialog_id"),
        *("data_revision", "over_quota", "source_name", "day"),
    }

    long_data: dict[str, Any] | None = None  # The full data, if they are long and were read.
    long_data_read: dict[str, Any] | None = None

    @property
    def phones(self) -> dict[str, str | None]:
        """The valid number and the phone as entered, or None for each."""
        # Former leads have a phone that is no number in the same attribute.
        number = self.phone if phones.is_number(self.phone) else None
        return {"phone": number, "phone_entered": self.phone_entered or self.phone}

    @property
    def whole_data(self) -> dict[str, Any]:
        """The full data of a lead that was read by ``find`` or a similar function."""
        data: dict[str, Any] = self.data if self.long_data is None else self.long_data
        return data

    @property
    def original(self) -> Self | None:
        old_lead = super().original
        if old_lead is not None:
            old_lead.long_data = self.long_data_read
        return old_lead


def _texts(lead: LeadRow) -> Iterator[str]:
    yield lead.name or ""
    yield lead.email or ""
    yield phones.searched_text(lead.phone, entered=lead.phone_entered)
    yield from texts_in(lead.whole_data)
    yield lead.notes or ""


def texts_in(value: Any) -> Iterator[str]:  # noqa: ANN401  JSON
    """Yield the strings and numbers in submitted data, except the labels of consents."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list():
            for element in value:
                yield from texts_in(element)
        case dict() if value.keys() != CONSENT:
            yield from texts_in(list(value.values()))


LEADS = register_listing(
    Listing(
        row=LeadRow,
        noun="LEAD",
        listed_by="svc_list_leads",
        text=lambda lead: list(dict.fromkeys(_texts(lead))),
        sorts={"createdAt": "id"},
        status="status",
        facets=("form_id", "project_id", "client_id"),
        counted=("form_id", "project_id"),
        partitioned=("form_id", "client_id"),
        tags=("tags",),
        presence=("is_order",),
        indexes=(
            SortIndex("createdAt", partition_by="status"),
            SortIndex("createdAt", partition_by="project_id"),
            SortIndex("createdAt"),
        ),
        lookups=(
            contact_lookup("email", lambda lead: lead.email),
            Lookup("phone", lambda lead: lead.phone if phones.is_number(lead.phone) else None),
            contact_lookup(NAMED, lambda lead: lead.named_contacts),
        ),
        events={
            "lead.created": is_new,
            "order.created": lambda old_row, new_row: old_row is None and bool(new_row.is_order),
            "lead.status_changed": changes("status"),
            "lead.updated": changes_others("status", "named_contacts", "data_revision"),
        },
        inline_bytes=1024,  # contacts and some sentences
    )
)


class DataRow(ContentRow):
    """Long data of a lead, and the revision of the lead that they were written with."""

    data: JsonAttribute = JsonAttribute()
    revision = NumberAttribute()


class EventRow(HistoryRow):
    """A change of a lead, stored as names of fields and statuses. No other values are stored."""

    noun = "LEAD"

    fields: ListAttribute[Any] = ListAttribute(default=list)
    status_before = UnicodeAttribute(null=True)
    status_after = UnicodeAttribute(null=True)

    kept_when_erased = HistoryRow.kept_when_erased | {"fields", "status_before", "status_after"}


class SubmissionRow(ContentRow):
    """Record that a visitor's values created a lead. They create no other one until it expires."""

    version = VersionAttribute()
    lead_id = UnicodeAttribute()


def data_key(workspace_id: str, *, lead_id: str) -> Key:
    """Return the key of a lead's long data."""
    return Key(DataRow, f"W#{workspace_id}#LEAD#DATA", lead_id)


def find(workspace_id: str, *, lead_id: str) -> LeadRow | None:
    """Return a lead with its data, in one round trip, or None.

    Raises:
        ConcurrentUpdateError: a change of the lead happened between the reads of its two rows.
    """
    leads = read_whole(workspace_id, [lead_id])
    return leads[0] if leads else None


def read_whole(workspace_id: str, ids: Iterable[str]) -> list[LeadRow]:
    """Return the leads with these ids, with their data, in order. Missing leads are left out.

    Raises:
        ConcurrentUpdateError: as for ``find``.
    """
    ids = list(ids)
    keys = [LEADS.key(workspace_id, record_id=lead_id) for lead_id in ids]
    rows = fetch([*keys, *(data_key(workspace_id, lead_id=lead_id) for lead_id in ids)])
    leads = [row for row in rows if isinstance(row, LeadRow)]
    attach_data(leads, rows)
    return leads


def add_long_data(workspace_id: str, leads: list[LeadRow]) -> list[LeadRow]:
    """Complete listed leads with their long data in a second request. Raises as ``find`` does."""
    long = [
        data_key(workspace_id, lead_id=lead.id) for lead in leads if lead.data_revision is not None
    ]
    attach_data(leads, fetch(long))
    return leads


def attach_data(leads: Iterable[LeadRow], rows: Iterable[Row]) -> None:
    """Set the long data of leads from the rows that contain them. Raises as ``find`` does."""
    long = {row.sk: row for row in rows if isinstance(row, DataRow)}
    for lead in leads:
        if lead.data_revision is not None:
            data = long.get(lead.id)
            # The rows are read in one request, but BatchGetItem is not a snapshot.
            if data is None or data.revision != lead.data_revision:
                raise ConcurrentUpdateError
            lead.long_data = lead.long_data_read = data.data


def consent(label: str, at: datetime) -> dict[str, str]:
    """Return what is stored of a consent: the text to which a visitor has agreed, and when."""
    return {"label": label, "at": iso(at)}


def set_data(unit: UnitOfWork, lead: LeadRow, data: dict[str, Any]) -> None:
    """Set the data of a lead. The caller stages the creation or update of the lead."""
    key = data_key(unit.workspace_id, lead_id=lead.id)
    if size_of(data) > INLINE_DATA_BYTES:
        # The number is the revision after the commit, by which a torn read is noticed.
        lead.data_revision = int(lead.version or 0) + 1
        unit.save(DataRow(key.pk, key.sk, data=data, revision=lead.data_revision))
        lead.data, lead.long_data = shorten(data, INLINE_DATA_BYTES), data
        return
    if lead.data_revision is not None:
        unit.delete(DataRow(key.pk, key.sk))
    lead.data, lead.data_revision, lead.long_data = data, None, None


def wipe(unit: UnitOfWork, ids: Iterable[str]) -> None:
    """Stage the removal of personal data from leads, including the contacts that searches match."""
    for lead in read_whole(unit.workspace_id, ids):
        set_data(unit, lead, {})
        lead.erase()
        unit.save(lead)


def record_event(unit: UnitOfWork, lead: LeadRow, by: str, **attributes: Any) -> None:  # noqa: ANN401  the row's attributes
    """Stage an entry of a lead's history."""
    unit.create(EventRow.new(unit.workspace_id, record_id=lead.id, by=by, **attributes))


def submission_key(workspace_id: str, *, digest: str) -> Key:
    """Return the key of the record of a submission."""
    return Key(SubmissionRow, f"W#{workspace_id}#LEAD#SUBMITTED", digest)


def submission(key: Key, rows: Rows) -> SubmissionRow:
    """Return the record of a submission, which the caller saves with the new lead.

    ``lead_id`` is None if no lead was created within the time limit.
    """
    row = rows.find(SubmissionRow, key) or SubmissionRow(key.pk, key.sk)
    # DynamoDB removes expired rows up to two days late.
    if row.expires is not None and row.expires <= clock.now():
        row.lead_id = None
    return row
