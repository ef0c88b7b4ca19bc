"""Read the widget content and the allowed origins of a bot."""

from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.test_workspaces import is_test
from chalicelib.core.wire.schema import Id, Wire
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.operations.bots import AgentRef
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.lib import accents

SETTINGS_READS = Limit(
    "widget-settings",
    "reads of a bot's settings per minute",
    300,
    timedelta(minutes=1),
    fails_open=True,
    within=lambda args: args.id,
)


class PublicBrand(Wire):
    """The business of a bot, as its pages show it."""

    name: str | None = Field(description="Name of the business; null if the bot has the same.")
    logo_url: str | None = Field(description="URL of its logo, or null.")
    colors: list[str] = Field(description="Colour on light and on dark pages, as #rrggbb.")


class PublicAgent(Wire):
    """Public settings of a bot. For a private bot, only its id and ``isPrivate`` are set."""

    id: Id = Field(description="Bot id.")
    name: str = Field(description="Name of the bot.")
    is_private: bool = Field(description="Whether it requires a bot key. Then no widget shows it.")
    welcome_message: str | None = Field(description="First message in the widget, or null.")
    allowed_origins: list[str] = Field(description="Origins the widget works on; empty: all.")
    offers_times: bool = Field(description="Whether it finds free times for bookings.")
    privacy_url: str | None = Field(description="Privacy policy, or null.")
    is_test: bool = Field(description="Whether it is a bot of a test workspace.")
    brand: PublicBrand | None = Field(description="Its business; null for a private bot.")


class PublicAgentResult(Wire):
    """One bot."""

    agent: PublicAgent = Field(description="The bot.")


@operation(
    rest="GET /api/public/agents/{id}",
    title="Read a bot's widget settings",
    audience=PUBLIC,
    resolve=lambda args: AGENTS.found_for_visitor(AGENTS.workspace_of(args.id)),
    limit=SETTINGS_READS,
    audit=False,
    example={"id": "AGENT_ID"},
)
def get_public_agent(ctx: Context, args: AgentRef) -> PublicAgentResult:
    """Return a bot's name, welcome message and business, and the origins its widget works on.

    For a private bot, the name is empty and the message is null.
    """
    agent, workspace = active_bot.active_bot(ctx.workspace_id, agent_id=args.id)
    if agent.is_private:
        public_agent = PublicAgent(
            id=agent.id,
            name="",
            is_private=True,
            welcome_message=None,
            allowed_origins=[],
            offers_times=False,
            privacy_url=None,
            is_test=is_test(ctx.workspace_id),
            brand=None,
        )
    else:
        public_agent = PublicAgent.from_row(
            agent.values,
            offers_times=not {"slots", "booking"}.isdisjoint(agent.capabilities),
            privacy_url=agent.privacy_url or workspace.privacy_url,
            is_test=is_test(ctx.workspace_id),
            brand=PublicBrand(
                name=None if workspace.name == agent.name else workspace.name,
                logo_url=workspace.logo_url,
                colors=list(accents.colours(workspace.accent)),
            ),
        )
    return PublicAgentResult(agent=public_agent)
