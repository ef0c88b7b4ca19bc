"""Find all clients, leads, bookings and dialogs of a person in a workspace (ADR 38).

A search begins with contacts or a client, and follows references from one record to the next.
Contacts that a visitor entered are not verified: a lead may have the person's e-mail address and
another person's phone number. Therefore the search does not continue from such a lead to the client
with the other contact, but reports that client as linked. The client is included only if it has no
other records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from chalicelib.core.text import fold
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.clients.store import clients
from chalicelib.domains.clients.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.domains.clients.store.contact_lookups import NAMED
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.lib import emails, phones

FoundBy = Literal["id", "contact", "client", "lead", "dialog", "nothing else left"]


class Found(NamedTuple):
    """A record of a person, and the reason why it was found."""

    row: Any
    by: FoundBy

    @property
    def contacts(self) -> dict[str, str | None]:
        # Contacts by which the record is indexed.
        return contacts_of(self.row)

    @property
    def other_contacts(self) -> list[str]:
        # Contacts in the record's text.
        return list(self.row.named_contacts or ())


def contacts_of(row: Any) -> dict[str, str | None]:  # noqa: ANN401  a row of one of four nouns
    """Return the e-mail address and phone number of a record. A dialog has neither."""
    prefix = "client_" if isinstance(row, BookingRow) else ""
    email, phone = (getattr(row, prefix + name, None) for name in (EMAIL, PHONE))
    return {EMAIL: email, PHONE: phone if phones.is_number(phone) else None}


@dataclass
class Trace:
    """Records of a person, in waves. Each record was found by a record of an earlier wave.

    An erasure processes the waves from last to first. So if it is interrupted, a new search finds
    the remaining records in the same way.
    """

    workspace_id: str
    waves: list[list[Found]] = field(default_factory=list)
    contacts: set[str] = field(default_factory=set)  # of the person, with the requested ones
    _seen: set[str] = field(default_factory=set)

    @classmethod
    def run(cls, workspace_id: str, client_id: str | None, values: Iterable[str]) -> "Trace":
        """Find the records of a client, and of every person with one of these contacts."""
        trace = cls(workspace_id)
        wave = trace._add(CLIENTS, [client_id] if client_id else [], "id")
        new = set(values)
        while True:
            for value in sorted(new - trace.contacts):
                wave += trace._records_with(value)
            trace.contacts |= new
            wave = wave or trace._clients_without_other_records()
            if not wave:
                return trace
            trace.waves.append(wave)
            rows = [record.row for record in wave if isinstance(record.row, ClientRow)]
            new = {contact for row in rows for contact in _contacts_in(row)}
            wave = trace._related_records(wave)

    @property
    def records(self) -> list[Found]:
        # In the order in which they were found.
        return [record for wave in self.waves for record in wave]

    @property
    def spellings(self) -> set[str]:
        # The person's contacts as they are stored in the found records.
        keys = set(map(emails.key, self.contacts))
        stored_contacts = (
            contact for record in self.records for contact in _contacts_in(record.row)
        )
        return {contact for contact in stored_contacts if emails.key(contact) in keys}

    def rows(self, kind: type[Any]) -> list[Any]:
        return [record.row for record in self.records if isinstance(record.row, kind)]

    def linked(self) -> list[ClientRow]:
        """Return other clients that share a lead, booking, dialog or contact with the person."""
        # Whether they are the same person, the operator must decide.
        ids = dict.fromkeys(self._clients_of_records())
        known_contacts = {
            contact for record in self.records for contact in _contacts_in(record.row)
        }
        for value in sorted(known_contacts - self.contacts):
            ids |= dict.fromkeys(self._clients_with(value))
        rows = CLIENTS.fetch(
            self.workspace_id, [client_id for client_id in ids if client_id not in self._seen]
        )
        return [row for row in rows if has_personal_data(row)]

    def _add(self, listing: Listing[Any], ids: Iterable[str | None], by: FoundBy) -> list[Found]:
        # Only records that were not found before.
        new = [
            record_id
            for record_id in dict.fromkeys(ids)
            if record_id and record_id not in self._seen
        ]
        rows = listing.fetch(self.workspace_id, new)
        self._seen.update(row.id for row in rows)
        return [Found(row, by) for row in rows]

    def _records_with(self, value: str) -> list[Found]:
        # A record with only one contact was assigned to its client by that contact. So the client
        # has or had it.
        wave = self._add(CLIENTS, self._clients_with(value), "contact")
        name = _contact_kind(value)
        for listing in (LEADS, BOOKINGS):
            ids = [
                *listing.find_by(self.workspace_id, lookup=name, value=value),
                *listing.find_by(self.workspace_id, lookup=NAMED, value=value),
            ]
            records = self._add(listing, ids, "contact")
            sole_contact_clients = [
                record.row.client_id for record in records if _is_only_contact(value, record)
            ]
            wave += records + self._add(CLIENTS, sole_contact_clients, "lead")
        dialogs = DIALOGS.find_by(self.workspace_id, lookup=NAMED, value=value)
        return wave + self._add(DIALOGS, dialogs, "contact")

    def _clients_with(self, value: str) -> list[str]:
        holders = clients.holders(self.workspace_id, {_contact_kind(value): value})
        client_ids = CLIENTS.find_by(self.workspace_id, lookup=NAMED, value=value)
        return [*holders.values(), *client_ids]

    def _related_records(self, wave: list[Found]) -> list[Found]:
        more: list[Found] = []
        for record in wave:
            match record.row:
                case ClientRow():
                    for listing in (LEADS, BOOKINGS):
                        more += self._add(listing, self._ids(listing, record.row.id), "client")
                case LeadRow():
                    more += self._add(DIALOGS, [record.row.dialog_id], "lead")
                case DialogRow():
                    more += self._add(LEADS, [record.row.lead_id], "dialog")
        return more

    def _clients_without_other_records(self) -> list[Found]:
        # Erased leads and bookings do not count.
        client_ids = []
        for client_id in self._clients_of_records():
            others = [
                row
                for listing in (LEADS, BOOKINGS)
                for row in listing.fetch(
                    self.workspace_id,
                    (i for i in self._ids(listing, client_id) if i not in self._seen),
                )
            ]
            if not any(map(has_personal_data, others)):
                client_ids.append(client_id)
        return self._add(CLIENTS, client_ids, "nothing else left")

    def _clients_of_records(self) -> Iterator[str]:
        ids = {getattr(record.row, "client_id", None) for record in self.records}
        return (client_id for client_id in sorted(filter(None, ids)) if client_id not in self._seen)

    def _ids(self, listing: Listing[Any], client_id: str) -> list[str]:
        return [entry.id for entry in listing.entries(self.workspace_id, client_id=client_id)]


def has_personal_data(row: Any) -> bool:  # noqa: ANN401  a client, a lead or a booking
    """Return whether a record has anything that an erasure removes."""
    return any(getattr(row, name) for name in row.erasable())


def _contacts_in(row: Any) -> list[str]:  # noqa: ANN401  a row of one of four nouns
    return [*filter(None, contacts_of(row).values()), *(row.named_contacts or ())]


def _is_only_contact(value: str, record: Found) -> bool:
    return [emails.key(contact) for contact in record.contacts.values() if contact] in (
        [emails.key(value)],
        [emails.key(fold(value))],
    )


def _contact_kind(value: str) -> str:
    return EMAIL if "@" in value else PHONE
