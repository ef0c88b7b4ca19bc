"""The erasure of a person, on demand: what is known of them goes, what was counted stays."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.core.errors import NotFoundError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.schema import Id, Wire, optional
from chalicelib.flows import dialogs
from chalicelib.flows.invoke import Context
from chalicelib.flows.people import Email, PhoneText
from chalicelib.rules import phones
from chalicelib.store import bookings, clients, idempotency, leads, workspaces
from chalicelib.store.bookings import BOOKINGS
from chalicelib.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.store.leads import LEADS
from chalicelib.store.listing import Listing
from chalicelib.store.unit import UnitOfWork, in_batches

LEADS_A_UNIT = 10
"""Leads, or bookings, wiped in one transaction: each takes up to seven of its items."""
REASONS_A_UNIT = 90


class ClientErase(Wire):
    """Whom to erase."""

    workspace_id: Id = Field(description="Workspace id.")
    client_id: Id | None = optional("Client id.")
    email: Email | None = optional("E-mail address.")
    phone: PhoneText | None = optional("Phone number in any spelling.")

    @model_validator(mode="after")
    def _names_somebody(self) -> Self:
        if not (self.client_id or self.email or self.phone):
            raise PydanticCustomError("nobody", "name a client, an e-mail address or a phone")
        return self


class ClientErased(Wire):
    """What was removed of a person."""

    client_id: Id | None = Field(description="The client, which keeps its counts alone, or null.")
    leads: int = Field(description="Leads that lost contacts, data, notes, search text, look-ups.")
    bookings: int = Field(description="Bookings that lost contacts, notes, reasons, look-ups.")
    dialogs: int = Field(description="Dialogs that lost messages and search text.")
    stored_answers: int = Field(description="Stored answers to idempotent calls that were removed.")


def _workspace(args: ClientErase) -> str:
    return args.workspace_id


@operation(
    title="Erase a client", audience=(Audience.OPERATOR,), resolve=_workspace, idempotent=True
)
def erase_client(ctx: Context, args: ClientErase) -> ClientErased:
    """Remove what is known of a person, for good; statistics and counts stay.

    That is the client's, and that of every lead and booking which is the client's or has its e-mail
    address or phone, or those that were named; and the dialogs with bots that such leads came of.
    """
    contacts: dict[str, str | None] = {EMAIL: args.email, PHONE: _number(ctx, args.phone)}
    client = _client(ctx, args, contacts)
    if client is not None:
        contacts = {name: contacts[name] or getattr(client, name) for name in contacts}
    ids = _of(LEADS, ctx, client, contacts)
    booked = _of(BOOKINGS, ctx, client, contacts)
    if client is None and not ids and not booked:
        raise NotFoundError("Nobody is known by that in this workspace.")
    spoken = _dialogs(ctx, ids)
    for dialog_id in spoken:
        _erase_dialog(ctx, dialog_id)
    for batch in in_batches(ids, LEADS_A_UNIT):
        _commit(ctx, batch, partial(leads.wipe, ids=batch))
    for batch in in_batches(booked, LEADS_A_UNIT):
        _commit(ctx, batch, partial(bookings.wipe, ids=batch))
    given = [event for each in booked for event in bookings.reasons(ctx.workspace_id, each)]
    for events in in_batches(given, REASONS_A_UNIT):
        names = [event.sk for event in events]
        _commit(ctx, names, partial(bookings.wipe_reasons, events=events))
    if client is not None:
        client.name = client.email = client.phone = client.notes = None
        client.tags = []
        ctx.unit.save(client)
    known = [*ids, *booked, *spoken, *([client.id] if client else [])]
    removed = ctx.unit.run_side_effect_once(
        f"answers {len(known)}", lambda: idempotency.forget_answers(ctx.workspace_id, known)
    )
    return ClientErased(
        client_id=client.id if client else None,
        leads=len(ids),
        bookings=len(booked),
        dialogs=len(spoken),
        stored_answers=removed,
    )


def _commit(ctx: Context, names: list[str], wipe: Callable[[UnitOfWork], None]) -> None:
    """Wipe some records in a transaction of their own."""

    def stage(unit: UnitOfWork) -> bytes:
        wipe(unit)
        return b""

    ctx.unit.commit_batch(f"{names[0]}-{names[-1]}-{len(names)}", stage)


def _dialogs(ctx: Context, lead_ids: list[str]) -> list[str]:
    """Return the ids of the dialogs that leads came of."""
    found = LEADS.fetch(ctx.workspace_id, lead_ids)
    return sorted({lead.dialog_id for lead in found if lead.dialog_id is not None})


def _erase_dialog(ctx: Context, dialog_id: str) -> None:
    """Remove what was said in a dialog: nobody can go on with it first, then its messages."""
    _commit(ctx, [dialog_id], partial(dialogs.stage_erasure, dialog_id=dialog_id))
    for batch in dialogs.message_batches(ctx.workspace_id, dialog_id):
        names = [message.id for message in batch]
        _commit(ctx, names, partial(dialogs.stage_removal, batch=batch))


def _number(ctx: Context, text: str | None) -> str | None:
    return phones.find_phone(text, workspaces.get(ctx.workspace_id).country) if text else None


def _client(ctx: Context, args: ClientErase, contacts: dict[str, str | None]) -> ClientRow | None:
    held = clients.holders(ctx.workspace_id, contacts)
    wanted = args.client_id or held.get(EMAIL) or held.get(PHONE)
    return CLIENTS.find(ctx.workspace_id, wanted) if wanted else None


def _of(
    listing: Listing[Any], ctx: Context, client: ClientRow | None, contacts: dict[str, str | None]
) -> list[str]:
    """Return the ids of the leads, or bookings, of a client, and of those with some contacts."""
    found = [
        record_id
        for name, value in contacts.items()
        if value
        for record_id in listing.find_by(ctx.workspace_id, name, value)
    ]
    if client is not None:
        found += [entry.id for entry in listing.entries(ctx.workspace_id, client_id=client.id)]
    return sorted(set(found))
