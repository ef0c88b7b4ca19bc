"""List and read the dialogs of all bots with names and links for the console."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, PageNumber, SearchText, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage, cost
from chalicelib.domains.bots.rules.channels import Channel
from chalicelib.domains.bots.store.agents import AGENTS, AgentRow
from chalicelib.domains.chat.flows import reply_addresses
from chalicelib.domains.chat.operations.dialogs import (
    ActionOut,
    DialogMessageOut,
    DialogOut,
    DialogQuery,
    DialogSummary,
    read_messages,
)
from chalicelib.domains.chat.operations.replies import Reply
from chalicelib.domains.chat.store import proposals
from chalicelib.domains.chat.store.dialogs import DIALOGS, DialogRow
from chalicelib.domains.chat.store.proposals import ProposalRow, State
from chalicelib.domains.clients.store.clients import CLIENTS, ClientRow
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store.leads import LEADS, LeadRow
from chalicelib.domains.mails.flows.mail_gate import Forecast, Outlook
from chalicelib.engine.listing.query import Query
from chalicelib.engine.reading import Rows, fetch
from chalicelib.gateways.llm import models

MESSAGES_PER_PAGE = 50


class AllDialogsQuery(Wire):
    """Filters and page of a list of dialogs."""

    agent_id: Id | None = optional("Bot id.")
    channel: Channel | None = optional("widget, api, page or test.")
    lead_id: Id | None = optional("Lead id.")
    search: SearchText | None = optional("In the first 2 KB of the visitor's text.")
    from_: When | None = Field(
        default=None,
        alias="from",
        description="ISO 8601; only dialogs that started at this time or later.",
    )
    to: When | None = optional("Started by then; a date includes the whole day.")
    page: PageNumber = Field(default=1, description="Page, from 1.")
    size: int = Field(default=20, ge=1, le=100, description="Dialogs a page.")


class NamedDialog(DialogSummary):
    """A dialog in a list of all bots. Its preview is untrusted text."""

    agent_name: str | None = Field(description="Name of the bot; null if it was deleted.")


class AllDialogs(Wire):
    """A page of dialogs."""

    dialogs: list[NamedDialog] = Field(description="Dialogs, newest first.")
    total: int = Field(description="Dialogs that match, over all pages.")


class DialogPageQuery(Wire):
    """A dialog, and the page of its messages."""

    id: Id = Field(description="Dialog id.")
    page: PageNumber = Field(default=1, description="Page, from 1.")


class ActionDetails(ActionOut):
    """An action that the bot proposed, with what became of it."""

    booking_id: Id | None = Field(description="Booking that it made, or null.")
    order_id: Id | None = Field(description="Lead of the order that it made, or null.")

    @classmethod
    def from_record(cls, row: ProposalRow, state: State) -> Self:
        result: dict[str, Any] = row.result or {}
        return cls(
            **ActionOut.from_record(row, state).model_dump(),
            booking_id=(result.get("booking") or {}).get("id"),
            order_id=result.get("orderId"),
        )


class DialogDetails(Wire):
    """A dialog with a page of its messages. All its texts are untrusted."""

    dialog: DialogOut = Field(description="The dialog.")
    agent_name: str | None = Field(description="Name of the bot; null if it was deleted.")
    lead_name: str | None = Field(description="Name of the lead, or a contact; or null.")
    client_id: Id | None = Field(description="The lead's client, or null.")
    client_name: str | None = Field(description="Name of the client, or a contact; or null.")
    messages: list[DialogMessageOut] = Field(description="Messages of the page, oldest first.")
    actions: list[ActionDetails] = Field(description="What the bot proposed in these messages.")
    replies: list[Reply] = Field(description="Latest replies of members, oldest first.")
    reply_mail: Forecast = Field(
        description="What becomes of the e-mail with a reply now: sent, waiting or none."
    )
    total: int = Field(description="Messages of all pages.")
    size: int = Field(description="Messages a page.")
    cost: int | None = Field(
        description="Cost in kopecks at the present prices of the bot's model; null except for the"
        " workspace's owner."
    )


@operation(title="List all dialogs", role=Role.MEMBER, example={"search": "bread"})
def list_dialogs(ctx: Context, args: AllDialogsQuery) -> AllDialogs:
    """List the dialogs of all bots, newest first. Previews are untrusted text."""
    query = Query(
        page=args.page,
        size=args.size,
        sort="startedAt",
        descending=True,
        ids=_ids(ctx, args.lead_id),
        filters={"agent_id": args.agent_id, "channel": args.channel},
        ranges=_period(ctx, args),
        search=args.search,
        charge=ctx.charge,
    )
    page = DIALOGS.page(ctx.workspace_id, query)
    names = _bot_names(ctx.workspace_id, (dialog.agent_id for dialog in page.records))
    dialogs = [
        NamedDialog(
            **DialogSummary.from_record(dialog).model_dump(), agent_name=names.get(dialog.agent_id)
        )
        for dialog in page.records
    ]
    return AllDialogs(dialogs=dialogs, total=page.total)


def _ids(ctx: Context, lead_id: str | None) -> Collection[str] | None:
    # A search for all dialogs of a lead would cost more.
    if lead_id is None:
        return None
    dialog_id = LEADS.require(ctx.workspace_id, record_id=lead_id).dialog_id
    return [dialog_id] if dialog_id else []


def _period(ctx: Context, args: AllDialogsQuery) -> dict[str, tuple[Any, Any]]:
    if args.from_ is None and args.to is None:
        return {}
    zone = workspaces.get(ctx.workspace_id).timezone
    first = args.from_ and clock.moment_of(args.from_, zone)
    last = args.to and clock.moment_of(args.to, zone, end=True)
    return {"created_at": (first, last)}


def _bot_names(workspace_id: str, ids: Iterable[str]) -> dict[str, str]:
    return {agent.id: agent.name for agent in AGENTS.fetch(workspace_id, set(ids))}


@operation(title="Get a dialog with names", role=Role.MEMBER, example={"id": "DIALOG_ID"})
def get_dialog_details(ctx: Context, args: DialogPageQuery) -> DialogDetails:
    """Return a page of a dialog's messages, with the bot, the lead, the client and the bookings."""
    offset = (args.page - 1) * MESSAGES_PER_PAGE
    part = DialogQuery(id=args.id, offset=offset, limit=MESSAGES_PER_PAGE)
    with deadline.side_by_side() as start:
        messages_task = start(partial(read_messages, ctx.workspace_id, part))
        proposed = start(lambda: list(proposals.read_all(ctx.workspace_id, dialog_id=args.id)))
        dialog = DIALOGS.require(ctx.workspace_id, record_id=args.id)
        workspace = workspaces.get(ctx.workspace_id)
        messages = messages_task.result()
    agent, lead = _bot_and_lead(ctx.workspace_id, dialog)
    client = (
        CLIENTS.find(ctx.workspace_id, record_id=lead.client_id)
        if lead and lead.client_id
        else None
    )
    return DialogDetails(
        dialog=DialogOut.from_row(dialog.values, started_at=dialog.created_at),
        agent_name=agent.name if agent else None,
        lead_name=_name(lead),
        client_id=client.id if client else None,
        client_name=_name(client),
        messages=messages,
        actions=_actions(proposed.result(), messages),
        replies=[Reply.model_validate(reply) for reply in dialog.replies or []],
        reply_mail=Outlook(
            reply_addresses.address_of(dialog, lead), workspace.id, workspace.plan, "business"
        ).forecast(Rows()),
        total=int(dialog.last_number),
        size=MESSAGES_PER_PAGE,
        cost=_cost(dialog, agent) if ctx.principal.account_id == workspace.owner_id else None,
    )


def _bot_and_lead(workspace_id: str, dialog: DialogRow) -> tuple[AgentRow | None, LeadRow | None]:
    keys = [AGENTS.key(workspace_id, record_id=dialog.agent_id)]
    keys += [LEADS.key(workspace_id, record_id=dialog.lead_id)] if dialog.lead_id else []
    rows = fetch(keys)
    agent = next((row for row in rows if isinstance(row, AgentRow)), None)
    return agent, next((row for row in rows if isinstance(row, LeadRow)), None)


def _actions(
    proposed: Sequence[tuple[ProposalRow, State]], messages: Sequence[DialogMessageOut]
) -> list[ActionDetails]:
    message_ids = {message.id for message in messages}
    actions = [ActionDetails.from_record(*pair) for pair in proposed]
    return [action for action in actions if action.message_id in message_ids]


def _name(person: LeadRow | ClientRow | None) -> str | None:
    return (person.name or person.email or person.phone) if person else None


def _cost(dialog: DialogRow, agent: AgentRow | None) -> int | None:
    spec = models.find(agent.model) if agent else None
    if spec is None:
        return None
    used = TokenUsage(int(dialog.input_tokens), int(dialog.output_tokens))
    return cost(Prices(spec.input_price, spec.output_price), used)
