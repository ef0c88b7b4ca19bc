"""Daily counters of what each bot of a workspace spends, and of what its SMS cost.

The ledger has the same amounts, but one entry for each answer. The counters of a month are at most
120 small rows, however many answers there were.
"""

from collections import Counter
from datetime import date
from typing import NamedTuple

from chalicelib.domains.billing.store.ledger import Hold
from chalicelib.engine import metrics
from chalicelib.engine.metrics import Increments
from chalicelib.engine.reading import Cost
from chalicelib.engine.unit import UnitOfWork

SUBJECT = "spending"
SMS_SUBJECT = "sms-spending"
# The end of the measure that counts a bot's answers; the one of its kopecks is the bot's id.
_ANSWERS = ":answers"


class Spent(NamedTuple):
    """Kopecks that a bot spent on a day, and the number of paid answers."""

    kopecks: int
    answers: int


class SmsSpent(NamedTuple):
    """What the SMS of a workspace have cost in a period."""

    kopecks: int
    messages: int
    segments: int


def count_sms(
    unit: UnitOfWork, workspace_id: str, day: date, *, kopecks: int, segments: int
) -> None:
    """Stage counting an SMS on the day of its workspace, in the transaction that charges it."""
    counts = Increments(workspace_id)
    measures = {"kopecks": kopecks, "messages": 1, "segments": segments}
    counts.add(SMS_SUBJECT, day, measures)
    counts.stage(unit)


def read_sms(workspace_id: str, first: date, *, last: date) -> SmsSpent:
    """Return what the SMS of the days of a period have cost together."""
    days = metrics.read(workspace_id, subject=SMS_SUBJECT, first=first, last=last)
    totals = sum((counts.totals for counts in days.values()), Counter[str]())
    return SmsSpent(totals["kopecks"], totals["messages"], totals["segments"])


def count(unit: UnitOfWork, hold: Hold, cost: int) -> None:
    """Stage counting a paid answer, in the transaction that charges it."""
    counts = Increments(hold.workspace_id)
    # The id of the bot is the name of a measure, so counting reads nothing.
    measures = {hold.agent_id: cost, f"{hold.agent_id}{_ANSWERS}": 1}
    # A hold that is settled after midnight belongs to the day on which it was reserved.
    counts.add(SUBJECT, date.fromisoformat(hold.windows.daily), measures)
    counts.stage(unit)


def read(
    workspace_id: str, first: date, *, last: date, cost: Cost | None = None
) -> dict[date, dict[str, Spent]]:
    """Return what each bot spent, by id, on each day of a period."""
    return {
        day: {
            measure.removesuffix(_ANSWERS): Spent(
                counts.totals[measure.removesuffix(_ANSWERS)], number
            )
            for measure, number in counts.totals.items()
            if measure.endswith(_ANSWERS)
        }
        for day, counts in metrics.read(
            workspace_id, subject=SUBJECT, first=first, last=last, cost=cost
        ).items()
    }
