"""What a bot may spend a day, a week and a month."""

from pydantic import Field

from chalicelib.core.operations import operation
from chalicelib.core.principals import Audience
from chalicelib.core.schema import Id, Kopecks, Patch, Wire, optional
from chalicelib.domains.agents.records import existing_agent, workspace_of
from chalicelib.flows.invoke import Context
from chalicelib.rules.spending import WINDOWS
from chalicelib.store import budgets


class BotLimits(Patch):
    """Changes to a bot's limits, in kopecks; 0 blocks it."""

    CONDITIONS = frozenset({"agent_id"})

    agent_id: Id = Field(description="Bot id.")
    daily: Kopecks | None = optional("A day; null lifts it.")
    weekly: Kopecks | None = optional("A week from Monday on; null lifts it.")
    monthly: Kopecks | None = optional("A month; null lifts it.")


class BotLimitsResult(Wire):
    """A bot's limits, in kopecks; days, weeks and months are those of the workspace's zone."""

    agent_id: Id = Field(description="Bot id.")
    daily: int | None = Field(description="A day, or null: no limit.")
    weekly: int | None = Field(description="A week from Monday on, or null: no limit.")
    monthly: int | None = Field(description="A month, or null: no limit.")


def _workspace_of(args: BotLimits) -> str:
    return workspace_of(args.agent_id)


@operation(
    title="Set a bot's spending limits",
    audience=(Audience.SESSION, Audience.OPERATOR),
    resolve=_workspace_of,
    idempotent=True,
)
def set_bot_limits(ctx: Context, args: BotLimits) -> BotLimitsResult:
    """Set what a bot may spend; what it has spent before counts."""
    agent = existing_agent(ctx, args.agent_id)
    budget = budgets.budget(ctx.workspace_id, agent.id)
    changes = args.changes
    wanted = {window: changes[window] for window in WINDOWS if window in changes}
    limits = budgets.set_limits(ctx.unit, budget, wanted)
    ctx.unit.mention(f"agent:{agent.id}")
    return BotLimitsResult(agent_id=agent.id, **limits)
