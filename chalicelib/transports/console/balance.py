"""The balance and its ledger, for the account whose they are."""

import re

from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse

ENTRIES = 50
"""Of the ledger on a page."""


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show what the account has, and the last entries of its ledger; to the owner alone."""
    if not visit.here.owns:
        return visit.page("balance", statement=None)
    before = visit.asked("before")
    wanted = {"before": int(before)} if re.fullmatch("[1-9][0-9]{0,14}", before, re.ASCII) else {}
    return visit.page(
        "balance", statement=visit.call("get_statement", limit=ENTRIES, **wanted), first=not wanted
    )
