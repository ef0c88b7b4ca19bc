"""The balance and its ledger; only the account that owns them sees them."""

import re

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

ENTRIES = 50
"""Ledger entries on a page."""


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show the balance and the latest ledger entries. Only the owner sees them."""
    if not visit.here.owns:
        return visit.page("balance", statement=None)
    before = visit.asked("before")
    wanted = {"before": int(before)} if re.fullmatch("[1-9][0-9]{0,14}", before, re.ASCII) else {}
    return visit.page(
        "balance", statement=visit.call("get_statement", limit=ENTRIES, **wanted), first=not wanted
    )
