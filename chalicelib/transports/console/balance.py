"""The balance and its ledger; only the account that owns them sees them."""

import re

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

ENTRIES = 50
"""Ledger entries on a page."""


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the balance and the latest ledger entries."""
    before = request.query_value("before")
    start = {"before": int(before)} if re.fullmatch("[1-9][0-9]{0,14}", before, re.ASCII) else {}
    return request.page(
        "balance",
        statement=request.call("get_statement", limit=ENTRIES, **start),
        first=not start,
    )
