"""Spending of a workspace: of its bots, by bot and by day, and of its SMS."""

from collections import Counter
from datetime import timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, NoInput, Wire
from chalicelib.domains.billing.store import spent
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.listing.registry import listing_of

PERIOD_DAYS = 30


class BotSpending(Wire):
    """Spending of a bot in the period."""

    agent_id: Id = Field(description="Bot id.")
    agent_name: str | None = Field(description="Name of the bot; null if it was deleted.")
    kopecks: int = Field(description="Charged amount in kopecks.")
    answers: int = Field(description="Number of paid answers.")
    days: list[int] = Field(description="Kopecks on each day of the period.")


class SmsSpending(Wire):
    """Spending of SMS to clients in the period."""

    kopecks: int = Field(description="Charged amount in kopecks.")
    messages: int = Field(description="Number of SMS.")
    segments: int = Field(description="Segments that were charged.")


class Spending(Wire):
    """Spending of all bots of a workspace in the period, and of its SMS."""

    timezone: str = Field(description="The time zone of the days.")
    days: list[str] = Field(description="The last 30 days, today included.")
    kopecks: int = Field(description="Charged amount in kopecks.")
    answers: int = Field(description="Number of paid answers.")
    bots: list[BotSpending] = Field(description="Bots that spent something, the highest first.")
    sms: SmsSpending = Field(description="SMS to clients, which the amount above does not contain.")


@operation(title="Read what bots spend", role=Role.OWNER)
def get_spending(ctx: Context, args: NoInput) -> Spending:
    """Return what each bot of the workspace spent on each of the last 30 days.

    It reads the counters of the days in two queries, and the names of the bots in one request.
    Answers are counted on the day on which they began.
    """
    zone = workspaces.get(ctx.workspace_id).timezone
    today = clock.local_day(clock.now(), zone)
    first = today - timedelta(PERIOD_DAYS - 1)
    days = spent.read(ctx.workspace_id, first, last=today)
    sms = spent.read_sms(ctx.workspace_id, first, last=today)
    kopecks, answers = Counter[str](), Counter[str]()
    for of_day in days.values():
        for agent_id, amount in of_day.items():
            kopecks[agent_id] += amount.kopecks
            answers[agent_id] += amount.answers
    names = {bot.id: bot.name for bot in listing_of("AGENT").fetch(ctx.workspace_id, answers)}
    nothing = spent.Spent(0, 0)
    bots = [
        BotSpending(
            agent_id=agent_id,
            agent_name=names.get(agent_id),
            kopecks=kopecks[agent_id],
            answers=answers[agent_id],
            days=[of_day.get(agent_id, nothing).kopecks for of_day in days.values()],
        )
        for agent_id in sorted(answers, key=lambda bot_id: (-kopecks[bot_id], bot_id))
    ]
    return Spending(
        timezone=zone,
        days=[str(day) for day in days],
        kopecks=kopecks.total(),
        answers=answers.total(),
        bots=bots,
        sms=SmsSpending(**sms._asdict()),
    )
