"""The balance, the spending of bots, and the ledger. Only the account that owns them sees them."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

from chalicelib.core.errors import AppError
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

ENTRIES = 50  # Ledger entries on a page.
MAX_SERIES = 4  # Maximum bots with a separate series in the chart. Further bots are one series.
LEDGER = "ledger"  # Value of the parameter ``view`` that shows each entry of the ledger.


class Series(NamedTuple):
    """A series of the chart."""

    name: str | None  # None for a deleted bot
    days: Sequence[int]  # kopecks
    others: int = 0  # how many bots the last series stands for


class Bar(NamedTuple):
    """A day of the chart, with its name, its kopecks, and the kopecks of each series."""

    name: str
    total: int
    parts: Sequence[int]

    def rectangles(self, unit: float, *, base: float) -> list[tuple[int, float, float]]:
        # ``unit`` is the height of a kopeck, and ``base`` the bottom of the bar.
        rectangles = []
        for number, kopecks in enumerate(self.parts):
            base -= kopecks * unit
            if kopecks:
                rectangles.append((number, base, kopecks * unit))
        return rectangles


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the balance, what bots spent, and what changed the balance, newest first."""
    return _page(request)


def top_up(request: ConsoleRequest) -> HttpResponse:
    """Open a payment that tops up the balance, and lead to the page of the provider."""
    try:
        amount = typed_values.kopecks("amount", request.form_value("amount"))
        payment = request.call_once("start_top_up", amount=amount)
    except AppError as error:
        wrong_fields = {"amount": "wrong_top_up"}
        return _page(request, error.status, problem_at_fields(request, error, wrong_fields))
    # A redirect after a form must lead to this host (CSP 3, 6.4.1), so the page leads on by itself.
    return request.page("top_up", url=payment["url"])


def _find_top_up(request: ConsoleRequest) -> dict[str, Any] | None:
    if payment_id := request.query_value("payment"):
        with suppress(AppError):  # an unknown id, or a provider that does not respond
            top_up: dict[str, Any] = request.call("get_top_up", id=payment_id)["topUp"]
            return top_up
    return None


def _page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    # The state of a payment is asked first, so that the page shows its credit.
    top_up = _find_top_up(request)
    start, is_ledger = _start(request), request.query_value("view") == LEDGER
    statement = request.call("get_statement", limit=ENTRIES, outcomes=not is_ledger, **start)
    spending = None if is_ledger or start else request.call("get_spending")
    return request.page(
        "balance",
        status,
        problem=problem,
        statement=statement,
        first=not start,
        whole=is_ledger,
        spending=spending,
        top_up=top_up,
        amount=request.form_value("amount"),
        **_chart(request, spending),
    )


def _start(request: ConsoleRequest) -> dict[str, int]:
    entry_number = request.query_value("before")
    is_number = re.fullmatch("[1-9][0-9]{0,14}", entry_number, re.ASCII)
    return {"before": int(entry_number)} if is_number else {}


def _chart(request: ConsoleRequest, spending: dict[str, Any] | None) -> dict[str, Any]:
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
