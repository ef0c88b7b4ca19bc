"""The erasure of a person, on demand: what is known of them goes, what was counted stays."""

from typing import Self

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
from chalicelib.store import clients, idempotency, leads, workspaces
from chalicelib.store.clients import CLIENTS, EMAIL, PHONE, ClientRow
from chalicelib.store.leads import LEADS
from chalicelib.store.messages import MessageRow
from chalicelib.store.unit import UnitOfWork, in_batches

LEADS_A_UNIT = 10
"""Leads wiped in one transaction: each takes up to seven of its items."""


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
    dialogs: int = Field(description="Dialogs that lost messages and search text.")
    stored_answers: int = Field(description="Stored answers to idempotent calls that were removed.")


def _workspace(args: ClientErase) -> str:
    return args.workspace_id


@operation(
    title="Erase a client", audience=(Audience.OPERATOR,), resolve=_workspace, idempotent=True
)
def erase_client(ctx: Context, args: ClientErase) -> ClientErased:
    """Remove what is known of a person, for good; statistics and counts stay.

    That is the client's, and that of every lead which is the client's or has its e-mail address or
    phone, or those that were named; and the dialogs with bots that such leads came of.
    """
    contacts: dict[str, str | None] = {EMAIL: args.email, PHONE: _number(ctx, args.phone)}
    client = _client(ctx, args, contacts)
    if client is not None:
        contacts = {name: contacts[name] or getattr(client, name) for name in contacts}
    ids = _leads(ctx, client, contacts)
    if client is None and not ids:
        raise NotFoundError("Nobody is known by that in this workspace.")
    spoken = _dialogs(ctx, ids)
    for dialog_id in spoken:
        _erase_dialog(ctx, dialog_id)
    for batch in in_batches(ids, LEADS_A_UNIT):

        def wipe(unit: UnitOfWork, batch: list[str] = batch) -> bytes:
            leads.wipe(unit, batch)
            return b""

        ctx.unit.commit_batch(f"{batch[0]}-{batch[-1]}-{len(batch)}", wipe)
    if client is not None:
        client.name = client.email = client.phone = client.notes = None
        client.tags = []
        ctx.unit.save(client)
    known = [*ids, *spoken, *([client.id] if client else [])]
    removed = ctx.unit.run_side_effect_once(
        f"answers {len(known)}", lambda: idempotency.forget_answers(ctx.workspace_id, known)
    )
    return ClientErased(
        client_id=client.id if client else None,
        leads=len(ids),
        dialogs=len(spoken),
        stored_answers=removed,
    )


def _dialogs(ctx: Context, lead_ids: list[str]) -> list[str]:
    """Return the ids of the dialogs that leads came of."""
    found = LEADS.fetch(ctx.workspace_id, lead_ids)
    return sorted({lead.dialog_id for lead in found if lead.dialog_id is not None})


def _erase_dialog(ctx: Context, dialog_id: str) -> None:
    """Remove what was said in a dialog: nobody can go on with it first, then its messages."""

    def end(unit: UnitOfWork) -> bytes:
        dialogs.stage_erasure(unit, dialog_id)
        return b""

    ctx.unit.commit_batch(f"dialog {dialog_id}", end)
    for number, batch in enumerate(dialogs.message_batches(ctx.workspace_id, dialog_id)):

        def remove(unit: UnitOfWork, batch: list[MessageRow] = batch) -> bytes:
            dialogs.stage_removal(unit, batch)
            return b""

        ctx.unit.commit_batch(f"dialog {dialog_id} {number}", remove)


def _number(ctx: Context, text: str | None) -> str | None:
    return phones.find_phone(text, workspaces.get(ctx.workspace_id).country) if text else None


def _client(ctx: Context, args: ClientErase, contacts: dict[str, str | None]) -> ClientRow | None:
    held = clients.holders(ctx.workspace_id, contacts)
    wanted = args.client_id or held.get(EMAIL) or held.get(PHONE)
    return CLIENTS.find(ctx.workspace_id, wanted) if wanted else None


def _leads(ctx: Context, client: ClientRow | None, contacts: dict[str, str | None]) -> list[str]:
    found = [
        lead_id
        for name, value in contacts.items()
        if value
        for lead_id in LEADS.find_by(ctx.workspace_id, name, value)
    ]
    if client is not None:
        found += [entry.id for entry in LEADS.entries(ctx.workspace_id, client_id=client.id)]
    return sorted(set(found))
