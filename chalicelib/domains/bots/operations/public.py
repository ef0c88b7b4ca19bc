"""Operations of a bot's widget: read the bot's public settings, and count visits."""

from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.bots.flows import bots
from chalicelib.domains.bots.operations.bots import AgentRef
from chalicelib.domains.bots.store import visits
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.metrics import Increments
from chalicelib.lib.sources import without_query

SETTINGS_READS = Limit(
    "widget-settings",
    "reads of a bot's settings a minute",
    300,
    timedelta(minutes=1),
    fails_open=True,
    within=lambda args: args.id,
)


class PublicAgent(Wire):
    """Public settings of a bot. For a private bot, only its id and ``isPrivate`` are set."""

    id: Id = Field(description="Bot id.")
    name: str = Field(description="Name.")
    is_private: bool = Field(description="Whether it requires a bot key. Then no widget shows it.")
    welcome_message: str | None = Field(description="First message in the widget, or null.")
    allowed_origins: list[str] = Field(description="Origins the widget works on; empty: all.")


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
    """Return a bot's name, welcome message, and the origins that its widget works on.

    For a private bot, the name is empty and the message is null.
    """
    agent, _ = bots.active_bot(ctx.workspace_id, args.id)
    if agent.is_private:
        shown = PublicAgent(
            id=agent.id, name="", is_private=True, welcome_message=None, allowed_origins=[]
        )
    else:
        shown = PublicAgent.from_row(agent.values)
    return PublicAgentResult(agent=shown)


EVENTS = Limit(
    "widget",
    "events per minute of a bot's widget",
    60,
    timedelta(minutes=1),
    within=lambda args: args.agent_id,
)


class WidgetEvent(Wire):
    """A visit of a bot's widget has reached a stage."""

    agent_id: Id = Field(description="Bot id.")
    visit_id: Id = Field(description="Random id that the page generates for its browser tab.")
    stage: Literal["loaded", "opened", "started", "engaged"] = Field(
        description="Stage that the visit has reached. The server itself counts leads."
    )
    page_url: Annotated[str, StringConstraints(max_length=8192)] | None = optional(
        "URL of the page. Its query is not stored."
    )
    project_id: Id | None = optional("Site id.")


class WidgetEventResult(Wire):
    """Whether an event was counted."""

    counted: bool = Field(description="False if the visit had already reached the stage.")


@operation(
    rest="POST /api/public/widget-event",
    title="Report a stage of a widget visit",
    audience=PUBLIC,
    resolve=lambda args: AGENTS.found_for_visitor(AGENTS.workspace_of(args.agent_id)),
    limit=EVENTS,
    idempotent=True,
    audit=False,
    example={
        "agentId": "AGENT_ID",
        "visitId": "visit-1",
        "stage": "opened",
        "pageUrl": "https://bakery.example/menu",
    },
)
def widget_event(ctx: Context, args: WidgetEvent) -> WidgetEventResult:
    """Count a visit that has reached a stage.

    A visit is counted once for each stage, on the day of its first event. Earlier stages that were
    not reported are counted too.
    """
    with deadline.side_by_side() as start:
        visit = start(partial(visits.find, ctx.workspace_id, args.agent_id, args.visit_id))
        site = start(partial(SITES.find, ctx.workspace_id, args.project_id or ""))
        agent, workspace = bots.active_bot(ctx.workspace_id, args.agent_id)
        if args.project_id:
            SITES.found_for_visitor(site.result())
    today = clock.local_day(clock.now(), workspace.timezone)
    counts = Increments(ctx.workspace_id)
    counted = visits.reach(
        ctx.unit,
        counts,
        agent.id,
        args.visit_id,
        args.stage,
        visit=visit.result(),
        today=today,
        page_url=without_query(args.page_url),
        project_id=args.project_id,
    )
    counts.stage(ctx.unit)
    return WidgetEventResult(counted=counted)
