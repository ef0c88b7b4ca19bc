"""Statistics of a bot and of its widget, computed from daily counters only."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bots.rules.channels import CHANNELS, TEST_CHANNEL, Channel
from chalicelib.domains.bots.store import bot_metrics
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.bots.store.bot_metrics import STAGES, Stage
from chalicelib.domains.identity.flows.periods import period
from chalicelib.engine import metrics
from chalicelib.engine.metrics import OTHER, DayCounts

SHOWN_PAGES = 20


class AgentPeriod(Wire):
    """Bot and period of statistics."""

    agent_id: Id = Field(description="Bot id.")
    from_: Day | None = Field(
        default=None, alias="from", description="First day; default: the last 30 days."
    )
    to: Day | None = optional("Last day; default: today.")


class WidgetPeriod(AgentPeriod):
    """Bot, period and site of widget statistics."""

    project_id: Id | None = optional("Only visits on this site.")


class TokenCounts(Wire):
    """Tokens."""

    input: int = Field(description="Tokens sent to the model.")
    output: int = Field(description="Tokens in its answers.")
    total: int = Field(description="Sum of both.")

    @classmethod
    def from_measures(cls, measures: Mapping[str, int]) -> Self:
        input_tokens = measures.get(bot_metrics.INPUT_TOKENS, 0)
        answered = measures.get(bot_metrics.OUTPUT_TOKENS, 0)
        return cls(input=input_tokens, output=answered, total=input_tokens + answered)


class RejectedCounts(Wire):
    """Messages that were refused."""

    limit: int = Field(description="Because of a spending limit.")
    balance: int = Field(description="Because the balance was too low.")


class ChannelCounts(Wire):
    """Counts of a channel."""

    dialogs: int = Field(description="Number of started dialogs.")
    messages: int = Field(description="Messages of both sides.")
    tokens: int = Field(description="Tokens, input and output.")

    @classmethod
    def from_measures(cls, measures: Mapping[str, int]) -> Self:
        return cls(
            dialogs=measures.get(bot_metrics.DIALOGS, 0),
            messages=measures.get(bot_metrics.MESSAGES, 0),
            tokens=TokenCounts.from_measures(measures).total,
        )


class AgentDay(ChannelCounts):
    """A bot's counts of one day."""

    date: str = Field(description="Day in the workspace's time zone.")


class ActionCounts(Wire):
    """Tool calls of a bot, and what came of them."""

    tool_calls: int = Field(description="Tool calls of its model.")
    confirmed: int = Field(description="Bookings and orders that visitors confirmed.")
    handovers: int = Field(description="Requests for a person.")


class AgentStats(Wire):
    """Statistics of a bot. The totals exclude the channel ``test``."""

    dialogs: int = Field(description="Number of started dialogs.")
    messages: int = Field(description="Messages of both sides.")
    leads: int = Field(description="Leads created from its dialogs.")
    tokens: TokenCounts = Field(description="Tokens of its answers.")
    actions: ActionCounts = Field(description="What the bot did besides answering.")
    errors: int = Field(description="Answers that failed.")
    rejected: RejectedCounts = Field(description="Messages refused because of money.")
    avg_first_token_ms: int | None = Field(
        description="Mean time to the first token of an answer, in ms, or null."
    )
    by_channel: dict[Channel, ChannelCounts] = Field(description="Counts of each channel.")
    series: list[AgentDay] = Field(description="Every day of the period.")


class StageCount(Wire):
    """Number of visits that reached a stage."""

    stage: Stage = Field(description="loaded, opened, started, engaged or lead.")
    count: int = Field(description="Number of visits.")
    rate: float = Field(description="Share of the visits that loaded the widget, from 0 to 1.")


class PageCounts(Wire):
    """Visits that began on a page."""

    url: str = Field(description="URL without query; other: pages beyond 200 a day.")
    loaded: int = Field(description="Visits that loaded the widget.")
    opened: int = Field(description="Visits that opened it.")
    started: int = Field(description="Visits with a message to the bot.")
    leads: int = Field(description="Visits that became leads.")


class WidgetStats(Wire):
    """The widget's funnel."""

    stages: list[StageCount] = Field(
        description="From loaded to lead; no count exceeds the one before it."
    )
    top_pages: list[PageCounts] = Field(description="At most 20, the most loaded first.")


@operation(
    tool=True,
    rest="GET /api/agents/stats",
    scope=Scope.AGENTS_READ,
    role=Role.MANAGER,
    title="Get statistics of a bot",
    example={"agentId": "AGENT_ID", "from": "2027-01-14", "to": "2027-01-15"},
)
def agent_stats(ctx: Context, args: AgentPeriod) -> AgentStats:
    """Count a bot's dialogs, messages, leads and tokens, over up to 366 days."""
    subjects = [bot_metrics.subject(args.agent_id, test=test) for test in (False, True)]
    days, trial_days = _read_counts(ctx, args, *subjects)
    all_totals, trials = metrics.total(days.values()), metrics.total(trial_days.values())
    totals, channels = all_totals.totals, all_totals.by_dimension[bot_metrics.CHANNEL]
    answers = totals[bot_metrics.FIRST_TOKENS]
    return AgentStats(
        dialogs=totals[bot_metrics.DIALOGS],
        messages=totals[bot_metrics.MESSAGES],
        leads=totals[bot_metrics.LEADS],
        tokens=TokenCounts.from_measures(totals),
        actions=ActionCounts(
            tool_calls=totals[bot_metrics.TOOL_CALLS],
            confirmed=totals[bot_metrics.CONFIRMED],
            handovers=totals[bot_metrics.HANDOVERS],
        ),
        errors=totals[bot_metrics.ERRORS],
        rejected=RejectedCounts(
            limit=totals[bot_metrics.REJECTED_LIMIT],
            balance=totals[bot_metrics.REJECTED_BALANCE],
        ),
        avg_first_token_ms=round(totals[bot_metrics.FIRST_TOKEN_MS] / answers) if answers else None,
        by_channel={
            channel: ChannelCounts.from_measures(
                trials.totals if channel == TEST_CHANNEL else channels[channel]
            )
            for channel in CHANNELS
        },
        series=[
            AgentDay(
                date=day.isoformat(), **ChannelCounts.from_measures(counts.totals).model_dump()
            )
            for day, counts in days.items()
        ],
    )


@operation(
    tool=True,
    rest="GET /api/agents/widget-stats",
    scope=Scope.AGENTS_READ,
    title="Get statistics of a bot's widget",
    example={"agentId": "AGENT_ID", "to": "2027-01-31"},
)
def agent_widget_stats(ctx: Context, args: WidgetPeriod) -> WidgetStats:
    """Count visits of the chat widget by the stage they reached and by their first page."""
    subject = bot_metrics.widget_subject(args.agent_id, args.project_id)
    (days,) = _read_counts(ctx, args, subject)
    totals = metrics.total(days.values())
    loaded = totals.totals[STAGES[0]]
    pages = totals.by_dimension[bot_metrics.PAGE]
    most_first = sorted(
        pages, key=lambda url: (url == OTHER, *(-pages[url][stage] for stage in STAGES), url)
    )
    return WidgetStats(
        stages=[
            StageCount(
                stage=stage,
                count=totals.totals[stage],
                rate=round(totals.totals[stage] / loaded, 4) if loaded else 0.0,
            )
            for stage in STAGES
        ],
        top_pages=[
            PageCounts(
                url=url,
                loaded=pages[url]["loaded"],
                opened=pages[url]["opened"],
                started=pages[url]["started"],
                leads=pages[url]["lead"],
            )
            for url in most_first[:SHOWN_PAGES]
        ],
    )


def _read_counts(ctx: Context, args: AgentPeriod, *subjects: str) -> list[dict[date, DayCounts]]:
    workspace_id = ctx.workspace_id
    with deadline.side_by_side() as start:
        agent = start(partial(AGENTS.require, workspace_id, record_id=args.agent_id))
        first, last = period(workspace_id, args.from_, last=args.to)
        counts = [
            start(partial(metrics.read, workspace_id, subject=subject, first=first, last=last))
            for subject in subjects
        ]
        agent.result()
        return [count_task.result() for count_task in counts]
