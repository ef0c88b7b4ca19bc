"""Read and set the spending limits of a bot per day, week and month."""

from typing import Literal, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import ForbiddenError
from chalicelib.core.operations import MANAGED, operation
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.core.wire.money import Kopecks
from chalicelib.core.wire.schema import Id, NoInput, Patch, Timestamp, Wire, optional
from chalicelib.domains.billing.rules.spending_windows import (
    WINDOWS,
    Window,
    WindowKeys,
    window_end,
    window_keys,
)
from chalicelib.domains.billing.store import budgets
from chalicelib.domains.billing.store.budgets import BudgetRow
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import workspaces


class BotLimits(Patch):
    """Changes to a bot's limits, in kopecks. 0 blocks the bot."""

    CONDITIONS = frozenset({"agent_id"})

    agent_id: Id = Field(description="Bot id.")
    daily: Kopecks | None = optional("Kopecks per day; null: no limit.")
    weekly: Kopecks | None = optional("Kopecks per week, from Monday; null: no limit.")
    monthly: Kopecks | None = optional("Kopecks per month; null: no limit.")


class BotLimitsResult(Wire):
    """A bot's limits, in kopecks. Days, weeks and months are in the workspace's time zone."""

    agent_id: Id = Field(description="Bot id.")
    daily: int | None = Field(description="Kopecks per day; null: no limit.")
    weekly: int | None = Field(description="Kopecks per week, from Monday; null: no limit.")
    monthly: int | None = Field(description="Kopecks per month; null: no limit.")


class BotBudgetQuery(Wire):
    """Bot whose budget to read."""

    agent_id: Id = Field(description="Bot id.")


class WindowUse(Wire):
    """Limit and spending of a bot in the current window, in kopecks."""

    limit: int | None = Field(description="Limit; null: no limit.")
    spent: int = Field(description="Amount spent, including amounts held for open answers.")
    held: int = Field(description="Amount held for open answers; the unused part is released.")
    remaining: int | None = Field(description="Remaining amount; null: no limit.")
    window: str = Field(description="Window, such as 2027-01-15, 2027-W02 (ISO 8601) or 2027-01.")
    ends_at: Timestamp = Field(description="End of the window. The next one begins with 0.")

    @classmethod
    def from_record(cls, budget: BudgetRow, window: Window, key: str, *, timezone: str) -> Self:
        used, reserved = budget.used_in(window, key)
        room = budget.room(window, key)
        return cls(
            limit=budget.limit(window),
            spent=used,
            held=reserved,
            remaining=None if room is None else max(0, room),
            window=key,
            ends_at=window_end(window, key, timezone=timezone),
        )


class BotBudget(Wire):
    """Limits and spending of a bot in the current day, week and month of the workspace."""

    agent_id: Id = Field(description="Bot id.")
    timezone: str = Field(description="IANA time zone of the days.")
    daily: WindowUse = Field(description="Limit and spending today.")
    weekly: WindowUse = Field(description="Limit and spending this week, from Monday.")
    monthly: WindowUse = Field(description="Limit and spending this month.")


class HeldBackBot(Wire):
    """A bot that cannot answer because of its limits."""

    agent_id: Id = Field(description="Bot id.")
    reason: Literal["stopped", "limit_reached"] = Field(
        description="stopped: a limit is 0; limit_reached: a limit is used up."
    )


class HeldBackBots(Wire):
    """Bots that cannot answer because of their limits."""

    bots: list[HeldBackBot] = Field(description="The bots, in no order.")


@operation(
    title="Set a bot's spending limits",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.agent_id)),
    idempotent=True,
    example={"agentId": "AGENT_ID", "daily": 500},
)
def set_bot_limits(ctx: Context, args: BotLimits) -> BotLimitsResult:
    """Set the spending limits of a bot. Amounts that it has spent already count.

    Managers may lower a limit or set one. Only the owner raises or removes one.
    """
    agent = AGENTS.require(ctx.workspace_id, record_id=args.agent_id)
    budget = budgets.budget(ctx.workspace_id, agent_id=agent.id)
    changes = args.changes
    new_limits = {window: changes[window] for window in WINDOWS if window in changes}
    if isinstance(ctx.principal, SessionPrincipal) and ctx.principal.membership is not Role.OWNER:
        for window, limit in new_limits.items():
            old = budget.limit(window)
            if old is not None and (limit is None or limit > old):
                msg = (
                    f"{window}: only the owner can raise or remove a spending limit. Ask the owner."
                )
                raise ForbiddenError(msg, key="role_required", details={"role": Role.OWNER})
    limits = budgets.set_limits(ctx.unit, budget, new_limits)
    ctx.unit.mention(f"agent:{agent.id}")
    return BotLimitsResult(agent_id=agent.id, **limits)


@operation(
    title="Read what a bot may spend and has spent",
    audience=MANAGED,
    role=Role.MANAGER,
    resolve=lambda args: AGENTS.found(AGENTS.workspace_of(args.agent_id)),
    example={"agentId": "AGENT_ID"},
)
def get_bot_limits(ctx: Context, args: BotBudgetQuery) -> BotBudget:
    """Return a bot's limits, and its spending in the current day, week and month."""
    agent = AGENTS.require(ctx.workspace_id, record_id=args.agent_id)
    zone = workspaces.get(ctx.workspace_id).timezone
    budget = budgets.budget(ctx.workspace_id, agent_id=agent.id)
    keys = budget.current(window_keys(clock.now(), zone))
    windows: dict[str, WindowUse] = {
        window: WindowUse.from_record(budget, window, key, timezone=zone)
        for window, key in zip(WINDOWS, keys, strict=True)
    }
    return BotBudget(agent_id=agent.id, timezone=zone, **windows)


@operation(title="List bots that their limits hold back", role=Role.MANAGER)
def list_held_back_bots(ctx: Context, args: NoInput) -> HeldBackBots:
    """List the bots that do not answer because a limit is 0 or used up."""
    keys = window_keys(clock.now(), workspaces.get(ctx.workspace_id).timezone)
    reasons = [(row.sk, _held_back(row, keys)) for row in budgets.read_all(ctx.workspace_id)]
    return HeldBackBots(
        bots=[
            HeldBackBot(agent_id=agent_id, reason=reason) for agent_id, reason in reasons if reason
        ]
    )


def _held_back(budget: BudgetRow, keys: WindowKeys) -> Literal["stopped", "limit_reached"] | None:
    rooms = [budget.room(w, k) for w, k in zip(WINDOWS, budget.current(keys), strict=True)]
    if 0 in budget.limits.values():
        return "stopped"
    return "limit_reached" if any(room is not None and room <= 0 for room in rooms) else None
