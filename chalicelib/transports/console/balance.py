"""The balance and its ledger, for the account whose they are."""

import re

from chalicelib.transports.console.visit import Visit
from chalicelib.transports.http import HttpResponse

ENTRIES = 50
"""Of the ledger on a page."""


def show(visit: Visit) -> HttpResponse:
    """Show what the account has, and the last entries of its ledger; to the owner alone."""
    if not visit.here.owns:
        return visit.page("balance", balance=None, entries=[], older=None, bots={})
    before = visit.asked("before")
    wanted = {"before": int(before)} if re.fullmatch("[1-9][0-9]{0,14}", before, re.ASCII) else {}
    entries = visit.call("list_ledger", limit=ENTRIES + 1, **wanted)["entries"]
    bots = {each["id"]: each["name"] for each in visit.call("list_agents")["agents"]}
    return visit.page(
        "balance",
        balance=visit.call("get_balance"),
        entries=entries[:ENTRIES],
        older=entries[ENTRIES - 1]["id"] if len(entries) > ENTRIES else None,
        first=not wanted,
        bots=bots,
    )
