"""One client a person: found by e-mail address, then by phone number, or made (ADR 19).

Clients are never merged. What a visitor gives makes a client, but changes none: it stays on the
lead or the booking, for nobody has verified it. Keys and the workspace's people fill empty contacts
of a client, unless another client has them; nothing is overwritten.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.domains.contacts.store import clients
from chalicelib.domains.contacts.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import emails, phones
from chalicelib.lib.contact_fields import MAX_NAME


class Contact(NamedTuple):
    """How to reach a person; in normal forms, but for a phone that is no number."""

    name: str | None
    email: str | None
    phone: str | None

    @property
    def identity(self) -> dict[str, str | None]:
        """What the person is known by."""
        return {EMAIL: self.email, PHONE: self.phone if phones.is_number(self.phone) else None}


def contact_of(name: str | None, email: str | None, phone: str | None, country: str) -> Contact:
    """Return a contact from texts that a visitor entered.

    A text that is no e-mail address is left out. A phone that is no number, by the
    plan of a country, stays as it was written.
    """
    return Contact(
        name[:MAX_NAME] if name else None,
        emails.find_email(email) if email else None,
        phone_of(phone, country) if phone else None,
    )


def named_in(texts: Iterable[str], country: str) -> list[str]:
    """Return the e-mail addresses and phone numbers within some texts, in their normal forms."""
    found = (
        each
        for text in texts
        for each in (*emails.emails_in(text), *phones.possible_phones_in(text, country))
    )
    return list(dict.fromkeys(found))


def phone_of(text: str, country: str) -> str:
    """Return a phone number in its normal form, or the text if it is none."""
    return phones.find_phone(text, country) or text[: phones.MAX_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Match:
    """The client that a contact belongs to; new, or with contacts that were empty before."""

    client: ClientRow
    is_new: bool
    is_filled: bool

    def count(
        self, unit: UnitOfWork, at: datetime | None, *, leads: int = 0, bookings: int = 0
    ) -> None:
        """Stage the client with so many more, or only with what is new of it if they are 0.

        ``at`` is when the lead or the booking came, if that is news of the client.
        """
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


NOTHING = Contact(None, None, None)


def match(workspace_id: str, contact: Contact, *, fills: Contact = NOTHING) -> Match | None:
    """Return the client that a contact belongs to, to be staged; None without address and number.

    A client that is there takes what it has not had yet of ``fills``: the part of the contact that
    a key or one of the workspace's people gave.
    Of several units that make one person's client, one commits; the others begin again and find it.

    Raises:
        ConcurrentUpdateError: the client that was found is gone.
    """
    known_by = contact.identity
    if not any(known_by.values()):
        return None
    held = clients.holders(workspace_id, known_by)
    found = held.get(EMAIL) or held.get(PHONE)
    if found is None:
        client = clients.new_client(
            workspace_id, name=contact.name, leads_count=0, bookings_count=0, **known_by
        )
        return Match(client, is_new=True, is_filled=False)
    held_by = CLIENTS.find(workspace_id, found)
    if held_by is None:
        raise ConcurrentUpdateError
    offered = {name: value for name, value in fills.identity.items() if name not in held}
    missing = {
        name: value
        for name, value in {**offered, "name": fills.name}.items()
        if value and not getattr(held_by, name)
    }
    for name, value in missing.items():
        setattr(held_by, name, value)
    return Match(held_by, is_new=False, is_filled=bool(missing))
