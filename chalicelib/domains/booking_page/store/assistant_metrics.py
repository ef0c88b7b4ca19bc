"""Names of the daily counters of visitors' assistants, and a function that counts."""

from collections.abc import Mapping
from datetime import date

from chalicelib.engine.metrics import Increments

SUBJECT = "assistants"
CALLS = "calls"  # Tool calls. ``calls:`` and a tool's name counts those of one tool.
BOOKINGS = "bookings"  # made with a link that an assistant has prepared


def name_measure(name: str) -> str:
    """Return the measure of the calls of one tool."""
    return f"{CALLS}:{name}"


def increments(workspace_id: str, day: date, measures: Mapping[str, int]) -> Increments:
    """Return increments of the assistants' counters of a day."""
    counts = Increments(workspace_id)
    counts.add(SUBJECT, day, measures)
    return counts
