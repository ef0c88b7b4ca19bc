"""Name the daily counters of a bot and of its widget, and count."""

from collections.abc import Mapping
from datetime import date
from typing import Literal, get_args

from chalicelib.domains.bots.rules.channels import TEST_CHANNEL
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.engine.metrics import Increments

DIALOGS = "dialogs"
MESSAGES = "messages"
LEADS = "leads"
INPUT_TOKENS = "inputTokens"
OUTPUT_TOKENS = "outputTokens"
ERRORS = "errors"
REJECTED_LIMIT = "rejectedLimit"
REJECTED_BALANCE = "rejectedBalance"
TOOL_CALLS = "toolCalls"
CONFIRMED = "confirmed"  # proposals that visitors have confirmed
HANDOVERS = "handovers"
# Sum of the milliseconds from a message to the first token of its answer.
FIRST_TOKEN_MS = "firstTokenMs"  # noqa: S105  not a password
FIRST_TOKENS = "firstTokens"  # number of answers in ``FIRST_TOKEN_MS``
CHANNEL = "channel"

Stage = Literal["loaded", "opened", "started", "engaged", "lead"]
# Stages of a widget visit, in order. A visit in a stage has passed all earlier stages.
STAGES: tuple[Stage, ...] = get_args(Stage)
PAGE = "page"
MAX_PAGES = 200  # distinct URLs of a widget per day


def subject(agent_id: str, *, test: bool = False) -> str:
    """Return the subject of a bot's counters, or of those for the channel ``test``."""
    # A subject is what counters belong to (``engine.metrics``). Dialogs on the channel ``test``
    # have a separate subject, so the statistics of a bot exclude them.
    return f"bot:{agent_id}:test" if test else f"bot:{agent_id}"


def widget_subject(agent_id: str, project_id: str | None = None) -> str:
    """Return the subject of the visits of a bot's widget, on all sites or on one."""
    return f"bot:{agent_id}:widget" + (f":{project_id}" if project_id else "")


def count(
    counts: Increments, agent_id: str, *, channel: str, day: date, measures: Mapping[str, int]
) -> None:
    """Add to the measures of a bot. Started dialogs are also counted for the workspace."""
    if channel == TEST_CHANNEL:
        counts.add(subject(agent_id, test=True), day, measures)
    else:
        counts.add(subject(agent_id), day, measures, channel=channel)
        started = {workspace_metrics.DIALOGS: measures.get(DIALOGS, 0)}
        counts.add(workspace_metrics.SUBJECT, day, started)
