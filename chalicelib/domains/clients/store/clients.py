"""Store clients, which are found by e-mail address or phone number (ADR 19)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.clients.store.contact_lookups import NAMED, contact_lookup
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.event_rules import changes_others, is_new
from chalicelib.engine.listing.index_entries import IndexEntry
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.lookups import Lookup, LookupRow
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow, DateAttribute, ProgramRecord, changed_now
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import phones

EMAIL = "email"
PHONE = "phone"
# What a change of other fields or a new lead or booking brings with it.
_CHANGES = changes_others(
    *("phone_entered", "named_contacts", "leads_count", "bookings_count", "last_activity")
)
_CONTACTS = ("name", "email", "phone")


def _replaces_contacts(old_row: "ClientRow | None", new_row: "ClientRow") -> bool:
    if old_row is None or new_row.is_nobody:
        return False
    return any(getattr(old_row, name) not in {None, getattr(new_row, name)} for name in _CONTACTS)


class ClientRow(ProgramRecord):
    name = UnicodeAttribute(null=True)
    # ``email`` and ``phone`` are in normal form and unique among clients.
    email = UnicodeAttribute(null=True)
    phone = UnicodeAttribute(null=True)
    phone_entered = UnicodeAttribute(null=True)  # as entered, also if it is no valid number
    tags: ListAttribute[Any] = ListAttribute(default=list)
    birthday = DateAttribute(null=True)
    notes = UnicodeAttribute(null=True)
    # Former e-mail addresses and phone numbers.
    named_contacts: ListAttribute[str] = ListAttribute(null=True)
    leads_count = NumberAttribute(default=0)
    bookings_count = NumberAttribute(default=0)
    last_activity = UTCDateTimeAttribute()  # the newest lead or booking

    # After an erasure only counts remain.
    kept_when_erased = ProgramRecord.kept_when_erased | {
        *("leads_count", "bookings_count", "last_activity"),
    }

    @property
    def is_nobody(self) -> bool:
        # A client without a name and contacts, such as after an erasure.
        return not (self.name or self.email or self.phone)


CLIENTS = register_listing(
    Listing(
        row=ClientRow,
        noun="CLIENT",
        listed_by="svc_list_clients",
        text=lambda client: (
            client.name or "",
            client.email or "",
            phones.searched_text(client.phone, entered=client.phone_entered),
        ),
        sorts={"createdAt": "id", "name": "t", "lastActivity": "n1"},
        tags=("tags",),
        numbers=("last_activity",),
        indexes=(SortIndex("lastActivity"), SortIndex("name")),
        lookups=(
            contact_lookup(EMAIL, lambda client: client.email, unique=True),
            Lookup(PHONE, lambda client: client.phone, unique=True),
            contact_lookup(NAMED, lambda client: client.named_contacts),
        ),
        events={
            "client.created": is_new,
            "client.updated": lambda old_row, new_row: (
                _CHANGES(old_row, new_row) and not new_row.is_nobody
            ),
            "client.contacts_changed": _replaces_contacts,
            "client.erased": lambda old_row, new_row: (
                old_row is not None and new_row.is_nobody and not old_row.is_nobody
            ),
        },
        inline_bytes=1400,  # a name in any script, an e-mail address and a phone number
    )
)


def holder_keys(workspace_id: str, contacts: Mapping[str, str | None]) -> dict[str, Key]:
    """Return the keys of the rows that lead to the clients with these contacts, by their names."""
    return {
        name: CLIENTS.value_key(workspace_id, lookup=name, value=value)
        for name, value in contacts.items()
        if value
    }


def holders(
    workspace_id: str, contacts: Mapping[str, str | None], rows: Rows | None = None
) -> dict[str, str]:
    """Return the ids of the clients that have these contacts, read in one request."""
    keys = holder_keys(workspace_id, contacts)
    fetched = (rows or Rows()).fetch(keys.values())
    targets = {row.pk: row.target for row in fetched if isinstance(row, LookupRow)}
    return {name: targets[key.pk] for name, key in keys.items() if key.pk in targets}


class ActivityRow(ContentRow):
    """The fields of a client that a new lead or booking changes, without reading the client."""

    leads_count = NumberAttribute()
    bookings_count = NumberAttribute()
    last_activity = UTCDateTimeAttribute()
    # Incremented, so that an update that has read the client conflicts.
    version = NumberAttribute()


def count(
    unit: UnitOfWork, client: ClientRow, at: datetime | None, *, leads: int = 0, bookings: int = 0
) -> None:
    """Stage an increment of a client's counts. ``at`` is the time of the newest lead or booking."""
    # Counts are incremented in place, so concurrent leads of one client do not conflict.
    counts = ((ActivityRow.leads_count, leads), (ActivityRow.bookings_count, bookings))
    actions: list[Action] = [number.add(change) for number, change in counts if change]
    actions += [ActivityRow.version.add(1), *changed_now()]
    if at is not None:
        index_entry = IndexEntry(client.id, (epoch_ms(at), 0), "", cut=False)
        actions += [
            ActivityRow.last_activity.set(at),
            ActivityRow.n1.set(epoch_ms(at)),
            ActivityRow.o1.set(index_entry.sort_key("n1")),
        ]
    unit.update(ActivityRow(client.pk, client.sk), actions)


def new_client(workspace_id: str, **attributes: Any) -> ClientRow:  # noqa: ANN401  the row's attributes
    """Return a new client, active now, for the caller to stage."""
    return CLIENTS.new(workspace_id, last_activity=clock.now(), **attributes)


def stage_touch(unit: UnitOfWork, client_id: str, *, on_conflict: Exception) -> None:
    """Stage that a client is still somebody, so that an erasure at the same time sees the unit.

    ``on_conflict`` is raised at commit if the client was erased.
    """
    at = CLIENTS.key(unit.workspace_id, record_id=client_id)
    is_somebody = ClientRow.name.exists() | ClientRow.email.exists() | ClientRow.phone.exists()
    version: Action = ActivityRow.version.add(1)
    unit.update(ActivityRow(at.pk, at.sk), [version], is_somebody, on_conflict=on_conflict)
