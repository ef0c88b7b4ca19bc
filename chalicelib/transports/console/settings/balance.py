"""The balance, the spending of bots, and the ledger.

Only the account that owns them sees them.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

ENTRIES = 50
"""Ledger entries on a page."""
MAX_SERIES = 4
"""Maximum bots with a separate series in the chart. Further bots are one series."""
LEDGER = "ledger"
"""Value of the parameter ``view`` that shows each entry of the ledger."""


class Series(NamedTuple):
    """A series of the chart, in kopecks on each day. A deleted bot has no ``name``.

    The last series may stand for several bots, which ``others`` counts.
    """

    name: str | None
    days: Sequence[int]
    others: int = 0


class Bar(NamedTuple):
    """A day of the chart, with its name, its kopecks, and the kopecks of each series."""

    name: str
    total: int
    parts: Sequence[int]

    def rectangles(self, unit: float, base: float) -> list[tuple[int, float, float]]:
        """Return the number, the top and the height of each series that is not 0.

        ``unit`` is the height of a kopeck, and ``base`` the bottom of the bar.
        """
        rectangles = []
        for number, kopecks in enumerate(self.parts):
            base -= kopecks * unit
            if kopecks:
                rectangles.append((number, base, kopecks * unit))
        return rectangles


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the balance, what bots spent, and what changed the balance, newest first."""
    entry_number = request.query_value("before")
    start = (
        {"before": int(entry_number)}
        if re.fullmatch("[1-9][0-9]{0,14}", entry_number, re.ASCII)
        else {}
    )
    is_ledger = request.query_value("view") == LEDGER
    statement = request.call("get_statement", limit=ENTRIES, outcomes=not is_ledger, **start)
    spending = None if is_ledger or start else request.call("get_spending")
    return request.page(
        "balance",
        statement=statement,
        first=not start,
        whole=is_ledger,
        spending=spending,
        **_chart(request, spending),
    )


def _chart(request: ConsoleRequest, spending: dict[str, Any] | None) -> dict[str, Any]:
    """Return the series of the chart, its bars, and the kopecks of the highest one."""
    if not spending or not spending["bots"]:
        return {"series": [], "bars": [], "top": 0}
    bots = spending["bots"]
    apart = bots if len(bots) <= MAX_SERIES + 1 else bots[:MAX_SERIES]
    series = [Series(bot["agentName"], bot["days"]) for bot in apart]
    if others := bots[len(apart) :]:
        sums = [sum(day) for day in zip(*(bot["days"] for bot in others), strict=True)]
        series.append(Series(None, sums, len(others)))
    names = (texts.day(request.language, date.fromisoformat(day)) for day in spending["days"])
    parts = zip(*(line.days for line in series), strict=True)
    bars = [Bar(name, sum(amounts), amounts) for name, amounts in zip(names, parts, strict=True)]
    return {"series": series, "bars": bars, "top": max(bar.total for bar in bars)}
