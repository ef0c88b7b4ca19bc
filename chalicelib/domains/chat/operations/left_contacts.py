"""Store the question and the contact of a visitor whose message the chat has refused."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ValidationError
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.store import bot_keys, bot_metrics
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.flows import chat_leads
from chalicelib.domains.chat.flows.chat_request import ChatRequest
from chalicelib.domains.chat.flows.dialog_removal import expiry_job
from chalicelib.domains.chat.store import messages
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.chat.store.messages import USER
from chalicelib.domains.clients.flows import contacts
from chalicelib.domains.clients.store import contact_lookups
from chalicelib.engine import limits
from chalicelib.engine.metrics import Increments
from chalicelib.lib.sources import drop_query

CONTACTS = Limit("left-contacts", "contacts left in chats a minute", 5, timedelta(minutes=1))
# Contacts of one visitor for one bot. They cost no money, which limits messages of a chat.
CONTACTS_PER_DAY = Limit("left-contacts-day", "contacts left in chats a day", 20, timedelta(days=1))


class ContactTaken(Wire):
    """The dialog that holds the question."""

    dialog_id: Id = Field(description="Dialog id.")


@operation(
    rest="POST /api/agents/public/contact",
    title="Leave a contact",
    audience=PUBLIC,
    resolve=lambda args: AGENTS.found_for_visitor(AGENTS.workspace_of(args.agent_id)),
    limit=CONTACTS,
    idempotent=True,
    example={"agentId": "AGENT_ID", "message": "Hello", "contact": {"email": "ada@example.com"}},
)
def leave_contact(ctx: Context, args: ChatRequest) -> ContactTaken:
    """Store a question and a contact as a lead, in a dialog without messages of the bot.

    A widget calls it when the chat refuses the question, such as for lack of money.
    """
    agent, workspace = active_bot.switched_on(ctx.workspace_id, agent_id=args.agent_id)
    active_bot.require_active_owner(workspace)
    if agent.is_private and not (args.api_key and bot_keys.is_key_of(agent.id, token=args.api_key)):
        raise AGENTS.unavailable()
    contact = chat_leads.find_contact(args, workspace.country, channel="widget")
    if contact is None:
        msg = "expected an e-mail address or a phone number"
        raise ValidationError.of("contact", message=msg, key="no_contact")
    if not any(contact.identity.values()):
        entered = contact.phone_entered or ""
        raise contacts.wrong_phone("contact.phone", entered, country=workspace.country)
    subjects = ctx.principal.share_subjects
    # A retry of the unit must not count the contact a second time.
    ctx.unit.run_side_effect_once("contacts", partial(_count, subjects, agent.id))
    now, text = clock.now(), args.message
    dialog = DIALOGS.new(
        ctx.workspace_id,
        agent_id=agent.id,
        channel="widget",
        page_url=drop_query(args.page_url),
        named_contacts=contact_lookups.merge_contacts(
            None, chat_leads.contacts_in(args, workspace.country)
        ),
        last_number=0,
        messages_count=0,
    )
    number = dialog.record_message(text, now)
    consent = chat_leads.consent_in(args)
    chat_leads.stage_lead(ctx.unit, workspace, dialog, contact, text, now, subjects, consent)
    message = messages.row(
        ctx.workspace_id, dialog_id=dialog.id, number=number, created_at=now, role=USER
    )
    message.content, message.status = text, "ok"
    ctx.unit.create(message)
    ctx.unit.create(dialog)
    ctx.unit.create(expiry_job(ctx.workspace_id, dialog))
    counts, today = Increments(ctx.workspace_id), clock.local_day(now, workspace.timezone)
    measures = {bot_metrics.MESSAGES: 1, bot_metrics.DIALOGS: 1, bot_metrics.LEADS: 1}
    bot_metrics.count(counts, agent.id, channel=dialog.channel, day=today, measures=measures)
    counts.stage(ctx.unit)
    return ContactTaken(dialog_id=dialog.id)


def _count(subjects: Sequence[str], agent_id: str) -> None:
    limits.take_share(CONTACTS_PER_DAY, [f"{subject}#{agent_id}" for subject in subjects])
