"""Read the public settings of a bot: the content of its widget, and its allowed origins."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.bots.flows import bots
from chalicelib.domains.bots.operations.bots import AgentRef
from chalicelib.domains.bots.store.agents import AGENTS

READINGS = Limit(
    "widget-settings",
    "readings a minute of a bot's settings",
    300,
    timedelta(minutes=1),
    fails_open=True,
    within=lambda args: args.id,
)


class PublicAgent(Wire):
    """A bot, as visitors see it."""

    id: Id = Field(description="Bot id.")
    name: str = Field(description="Name.")
    is_private: bool = Field(description="Whether it asks for a bot key, so no page shows it.")
    welcome_message: str | None = Field(description="What the widget shows first, or null.")
    allowed_origins: list[str] = Field(description="Origins the widget works on; empty: all.")


class PublicAgentResult(Wire):
    """One bot."""

    agent: PublicAgent = Field(description="The bot.")


@operation(
    rest="GET /api/public/agents/{id}",
    title="Read what a widget shows of a bot",
    audience=(Audience.PUBLIC,),
    resolve=lambda args: AGENTS.found_for_visitor(AGENTS.workspace_of(args.id)),
    limit=READINGS,
    audit=False,
    example={"id": "AGENT_ID"},
)
def get_public_agent(ctx: Context, args: AgentRef) -> PublicAgentResult:
    """Return a bot's name, greeting and the origins that its widget works on.

    Of a private bot no more is said than that it is one.
    """
    agent, _ = bots.active_bot(ctx.workspace_id, args.id)
    if agent.is_private:
        shown = PublicAgent(
            id=agent.id, name="", is_private=True, welcome_message=None, allowed_origins=[]
        )
    else:
        shown = PublicAgent.from_row(agent.values)
    return PublicAgentResult(agent=shown)
