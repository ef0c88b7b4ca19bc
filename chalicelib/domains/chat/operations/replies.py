"""Let a member reply to a visitor, and let the visitor's widget read the replies."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import new_id
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.store import bot_keys
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.chat.rules.job_kinds import MAIL_REPLY
from chalicelib.domains.chat.store import chat_sessions
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.identity.store import accounts, workspaces
from chalicelib.engine import jobs
from chalicelib.engine.reading import Rows

MAX_REPLY = 1_000  # characters; each message of a visitor writes the replies once more
MAX_REPLIES = 10  # of a dialog; older ones are removed
READS = Limit("replies", "reads of replies a minute", 60, timedelta(minutes=1))


class Reply(Wire):
    """A reply that a member of the workspace wrote to a visitor."""

    id: Id = Field(description="Reply id. Later replies have greater ids.")
    text: str = Field(description="Text of the reply.")
    author: str = Field(description="Name of the member.")
    at: Timestamp = Field(description="Time of the reply.")


class ReplyCreate(Wire):
    """A reply to the visitor of a dialog."""

    id: Id = Field(description="Dialog id.")
    text: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_REPLY)
    ] = Field(description="Text of the reply.")


class ReplyList(Wire):
    """The replies to a visitor."""

    replies: list[Reply] = Field(description="The latest replies, oldest first.")


class RepliesQuery(Wire):
    """The session of a visitor."""

    agent_id: Id = Field(description="Bot id.")
    session_id: str = Field(description="Session of the dialog.")
    api_key: str | None = optional("Bot key; required by a private bot.")


@operation(
    title="Reply to a visitor",
    role=Role.MEMBER,
    idempotent=True,
    example={"id": "DIALOG_ID", "text": "Hello"},
)
def reply_to_visitor(ctx: Context, args: ReplyCreate) -> ReplyList:
    """Reply to a visitor of a dialog. The widget shows the reply when it is opened.

    The reply is also sent by e-mail if the visitor has left an address.
    """
    dialog = DIALOGS.require(ctx.workspace_id, record_id=args.id)
    now, reply_id = clock.now(), new_id()
    account_id = ctx.principal.account_id or ""
    author = accounts.read_by_id([account_id]).get(account_id)
    name = author.name if author else workspaces.get(ctx.workspace_id).name
    reply = {"id": reply_id, "text": args.text, "author": name, "at": clock.iso(now)}
    dialog.replies = [*(dialog.replies or []), reply][-MAX_REPLIES:]
    ctx.unit.save(dialog)
    payload = {"dialogId": dialog.id, "replyId": reply_id, "at": clock.iso(now)}
    ctx.unit.create(jobs.row(MAIL_REPLY, ctx.workspace_id, payload, now, job_id=reply_id))
    return ReplyList.model_validate({"replies": dialog.replies})


@operation(
    rest="POST /api/agents/public/replies",
    title="Read the replies to a visitor",
    audience=PUBLIC,
    resolve=lambda args: AGENTS.found_for_visitor(AGENTS.workspace_of(args.agent_id)),
    limit=READS,
    audit=False,
    example={"agentId": "AGENT_ID", "sessionId": "SESSION_ID"},
)
def list_replies(ctx: Context, args: RepliesQuery) -> ReplyList:
    """Return the replies of the business to the visitor of a session, oldest first."""
    rows = Rows()
    agent, workspace = active_bot.switched_on(ctx.workspace_id, agent_id=args.agent_id, rows=rows)
    active_bot.require_active_owner(workspace)
    session = chat_sessions.find(ctx.workspace_id, agent_id=agent.id, token=args.session_id)
    is_refused = agent.is_private and not (
        args.api_key and bot_keys.is_key_of(agent.id, token=args.api_key)
    )
    if session is None or is_refused:
        raise NotFoundError("The bot has no session with this id.", key="dialog")
    dialog = DIALOGS.find(ctx.workspace_id, record_id=session.dialog_id)
    return ReplyList.model_validate({"replies": (dialog and dialog.replies) or []})
