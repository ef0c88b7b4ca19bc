"""Count the stages that a visit of a bot's widget reaches."""

from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from chalicelib.application.context import Context
from chalicelib.core import clock, deadline
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, operation
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.bots.flows import active_bot
from chalicelib.domains.bots.store import visits
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine.metrics import Increments
from chalicelib.lib.sources import drop_query

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


class WidgetEventCounted(Wire):
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
def widget_event(ctx: Context, args: WidgetEvent) -> WidgetEventCounted:
    """Count a visit that has reached a stage.

    A visit is counted once for each stage, on the day of its first event. Earlier stages that were
    not reported are counted too.
    """
    with deadline.side_by_side() as start:
        visit = start(
            partial(visits.find, ctx.workspace_id, agent_id=args.agent_id, visit_id=args.visit_id)
        )
        site = start(partial(SITES.find, ctx.workspace_id, record_id=args.project_id or ""))
        agent, workspace = active_bot.active_bot(ctx.workspace_id, agent_id=args.agent_id)
        if args.project_id:
            SITES.found_for_visitor(site.result())
    today = clock.local_day(clock.now(), workspace.timezone)
    counts = Increments(ctx.workspace_id)
    is_counted = visits.reach(
        ctx.unit,
        counts,
        agent.id,
        visit_id=args.visit_id,
        stage=args.stage,
        visit=visit.result(),
        today=today,
        page_url=drop_query(args.page_url),
        project_id=args.project_id,
    )
    counts.stage(ctx.unit)
    return WidgetEventCounted(counted=is_counted)
