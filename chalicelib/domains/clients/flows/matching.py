"""Find or create a client, by e-mail address, then by phone number (ADR 19).

Clients are never merged, and no value is overwritten. Contacts that a visitor enters are not
verified: they can create a client, but never change one. API keys and members of the workspace can
fill in empty contacts of a client, unless another client has them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.clients.flows.contacts import NOTHING, Contact
from chalicelib.domains.clients.store import clients
from chalicelib.domains.clients.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.unit import UnitOfWork


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match:
    client: ClientRow  # If neither new nor filled, perhaps a reference without attributes.
    is_new: bool
    is_filled: bool

    def count(
        self, unit: UnitOfWork, at: datetime | None, *, leads: int = 0, bookings: int = 0
    ) -> None:
        # If both counts are 0, only the changes of the client are staged. ``at`` is the
        # time of the lead or booking. None leaves the last activity unchanged.
        client = self.client
        if not self.is_new and not self.is_filled:
            if leads or bookings:
                clients.count(unit, client, at, leads=leads, bookings=bookings)
            return
        client.leads_count += leads
        client.bookings_count += bookings
        client.last_activity = at or client.last_activity
        if self.is_new:
            unit.create(client)
        else:
            unit.save(client)


def holder_keys(workspace_id: str, contact: Contact) -> Iterable[Key]:
    """Return the keys of the rows that lead from a contact to clients, to read them ahead."""
    return clients.holder_keys(workspace_id, contact.identity).values()


def name_for_own_client(
    workspace_id: str,
    contact: Contact,
    rows: Rows,
    *,
    own_client_id: str | None = None,
    is_proved: bool = False,
) -> Contact:
    """Return what a visitor's contact may add to an existing client: the name, or nothing."""
    # The visitor's dialog must have created the client, or the client has the e-mail address and
    # the visitor has proved it. Anybody can type a phone number.
    holders = clients.holders(workspace_id, contact.identity, rows)
    holder_id = holders.get(EMAIL) or holders.get(PHONE)
    proved_id = holders.get(EMAIL) if is_proved else None
    is_own = holder_id is not None and holder_id in {own_client_id, proved_id}
    return Contact(contact.name, None, None) if is_own else NOTHING


def match(
    workspace_id: str,
    contact: Contact,
    *,
    fills: Contact = NOTHING,
    rows: Rows | None = None,
) -> Match | None:
    """Return the client of a contact, or None if it has neither e-mail address nor phone number.

    Empty fields of an existing client are filled from ``fills``, the trusted part of the contact.
    The caller stages the client. Raises ConcurrentUpdateError if it was deleted meanwhile.
    """
    known_by = contact.identity
    if not any(known_by.values()):
        return None
    rows = rows or Rows()
    holders = clients.holders(workspace_id, known_by, rows)
    holder_id = holders.get(EMAIL) or holders.get(PHONE)
    if holder_id is None:
        # If several units create the same client, one commits. The others run again and find it.
        client = clients.new_client(
            workspace_id,
            name=contact.name,
            phone_entered=contact.phone_entered,
            leads_count=0,
            bookings_count=0,
            **known_by,
        )
        return Match(client, is_new=True, is_filled=False)
    key = CLIENTS.key(workspace_id, record_id=holder_id)
    if not any(fills):  # Its counts are increased in place, and the commit requires that it exists.
        return Match(ClientRow(key.pk, key.sk), is_new=False, is_filled=False)
    existing = rows.find(ClientRow, key)
    if existing is None:
        # The client was found by its look-up and then deleted, so the search is repeated.
        raise ConcurrentUpdateError
    new_contacts = {name: value for name, value in fills.identity.items() if name not in holders}
    missing = {
        name: value
        for name, value in {**new_contacts, "name": fills.name}.items()
        if value and not getattr(existing, name)
    }
    if fills.phone_entered and (
        "phone" in missing or not (existing.phone or existing.phone_entered)
    ):
        missing["phone_entered"] = fills.phone_entered
    for name, value in missing.items():
        setattr(existing, name, value)
    return Match(existing, is_new=False, is_filled=bool(missing))
