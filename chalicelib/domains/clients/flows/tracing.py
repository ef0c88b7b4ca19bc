"""Finds what a workspace keeps of a person: clients, leads, bookings and dialogs (ADR 38).

A search begins with contacts or a client, and follows what belongs to the person from one record to
the next. What a stranger typed is no proof, so a lead with two contacts does not lead to the client
of the other one, unless nothing else is left of that client. Such clients are named as linked.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.contacts.store import clients
from chalicelib.domains.contacts.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.domains.contacts.store.named_contacts import NAMED
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.engine.listing.listing import Listing
from chalicelib.lib import phones

FoundBy = Literal["id", "contact", "client", "lead", "dialog", "nothing else left"]


class Found(NamedTuple):
    """A record of a person, and what led to it."""

    row: Any
    by: FoundBy

    @property
    def contacts(self) -> dict[str, str | None]:
        """The address and the number that it is listed by."""
        return contacts_of(self.row)

    @property
    def named(self) -> list[str]:
        """Other contacts that it names."""
        return list(self.row.named_contacts or ())


def contacts_of(row: Any) -> dict[str, str | None]:  # noqa: ANN401  a row of one of four nouns
    """Return the address and the number that a record is listed by; a dialog has neither."""
    prefix = "client_" if isinstance(row, BookingRow) else ""
    email, phone = (getattr(row, prefix + name, None) for name in (EMAIL, PHONE))
    return {EMAIL: email, PHONE: phone if phones.is_number(phone) else None}


@dataclass
class Trace:
    """What was found of a person, in waves: each record was found by one of an earlier wave.

    So an erasure that works through the waves from the last to the first can be interrupted at any
    point: what is left is found again in the same way.
    """

    workspace_id: str
    waves: list[list[Found]] = field(default_factory=list)
    contacts: set[str] = field(default_factory=set)
    """The person's contacts, those that were asked for included."""
    _seen: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, workspace_id: str, client_id: str | None, values: Iterable[str]) -> "Trace":
        """Find what is kept of a client, and of whoever has one of these contacts."""
        trace = cls(workspace_id)
        wave = trace._add(CLIENTS, [client_id] if client_id else [], "id")
        new = set(values)
        while True:
            for value in sorted(new - trace.contacts):
                wave += trace._having(value)
            trace.contacts |= new
            wave = wave or trace._left_with_nothing()
            if not wave:
                return trace
            trace.waves.append(wave)
            rows = [found.row for found in wave if isinstance(found.row, ClientRow)]
            new = {each for row in rows for each in _values(row)}
            wave = trace._belonging_to(wave)

    @property
    def found(self) -> list[Found]:
        """All records, in the order that they were found in."""
        return [found for wave in self.waves for found in wave]

    def rows(self, kind: type[Any]) -> list[Any]:
        """Return the records of one noun."""
        return [found.row for found in self.found if isinstance(found.row, kind)]

    def linked(self) -> list[ClientRow]:
        """Return other clients that share a lead, a booking, a dialog or a contact with the person.

        They may be the same person; that is for somebody to judge.
        """
        ids = dict.fromkeys(self._clients_of_records())
        named = {each for found in self.found for each in _values(found.row)}
        for value in sorted(named - self.contacts):
            ids |= dict.fromkeys(self._clients_having(value))
        rows = CLIENTS.fetch(self.workspace_id, [each for each in ids if each not in self._seen])
        return [row for row in rows if names_somebody(row)]

    def _add(self, listing: Listing[Any], ids: Iterable[str | None], by: FoundBy) -> list[Found]:
        """Return the records that were not found before."""
        new = [each for each in dict.fromkeys(ids) if each and each not in self._seen]
        rows = listing.fetch(self.workspace_id, new)
        self._seen.update(row.id for row in rows)
        return [Found(row, by) for row in rows]

    def _having(self, value: str) -> list[Found]:
        """Return what has a contact, or names it; and the client that a record was made for by it.

        A record with one contact was given its client by that. So the client had it once.
        """
        wave = self._add(CLIENTS, self._clients_having(value), "contact")
        name = _kind(value)
        for listing in (LEADS, BOOKINGS):
            ids = [
                *listing.find_by(self.workspace_id, name, value),
                *listing.find_by(self.workspace_id, NAMED, value),
            ]
            records = self._add(listing, ids, "contact")
            sole = [
                found.row.client_id
                for found in records
                if [each for each in found.contacts.values() if each] == [value]
            ]
            wave += records + self._add(CLIENTS, sole, "lead")
        dialogs = DIALOGS.find_by(self.workspace_id, NAMED, value)
        return wave + self._add(DIALOGS, dialogs, "contact")

    def _clients_having(self, value: str) -> list[str]:
        """Return the ids of the clients that have a contact, or had it."""
        held = clients.holders(self.workspace_id, {_kind(value): value})
        return [*held.values(), *CLIENTS.find_by(self.workspace_id, NAMED, value)]

    def _belonging_to(self, wave: list[Found]) -> list[Found]:
        """Return the records of clients, the dialogs of leads, and the leads of dialogs."""
        more: list[Found] = []
        for found in wave:
            match found.row:
                case ClientRow():
                    for listing in (LEADS, BOOKINGS):
                        more += self._add(listing, self._ids(listing, found.row.id), "client")
                case LeadRow():
                    more += self._add(DIALOGS, [found.row.dialog_id], "lead")
                case DialogRow():
                    more += self._add(LEADS, [found.row.lead_id], "dialog")
        return more

    def _left_with_nothing(self) -> list[Found]:
        """Return the clients of found records that have no record of anybody else's besides."""
        left = []
        for client_id in self._clients_of_records():
            others = [
                row
                for listing in (LEADS, BOOKINGS)
                for row in listing.fetch(
                    self.workspace_id,
                    (i for i in self._ids(listing, client_id) if i not in self._seen),
                )
            ]
            if not any(map(names_somebody, others)):
                left.append(client_id)
        return self._add(CLIENTS, left, "nothing else left")

    def _clients_of_records(self) -> Iterator[str]:
        """Yield the ids of clients that found records are of, but that were not found."""
        ids = {getattr(found.row, "client_id", None) for found in self.found}
        return (each for each in sorted(filter(None, ids)) if each not in self._seen)

    def _ids(self, listing: Listing[Any], client_id: str) -> list[str]:
        return [entry.id for entry in listing.entries(self.workspace_id, client_id=client_id)]


def names_somebody(row: Any) -> bool:  # noqa: ANN401  a client, a lead or a booking
    """Whether anything is left of a record that was a person's; an erased one has counts alone."""
    names = ["name", "email", "phone", "tags", "data"]
    if isinstance(row, BookingRow):
        names = ["client_name", "client_email", "client_phone"]
    return any(getattr(row, name, None) for name in (*names, "notes", "named_contacts"))


def _values(row: Any) -> list[str]:  # noqa: ANN401  a row of one of four nouns
    """Return every contact of a record."""
    return [*filter(None, contacts_of(row).values()), *(row.named_contacts or ())]


def _kind(value: str) -> str:
    return EMAIL if "@" in value else PHONE
