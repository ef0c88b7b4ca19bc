"""The audit log page: changes, their actors, keys and times."""

from functools import partial

from chalicelib.core.errors import AppError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

FILTERS = ("actor", "from", "to")
ENTRIES = 40
"""Entries a page shows. More of them made the page heavier than 60 KB on a busy workspace."""


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a page of the log, newest first. An invalid filter is reported and ignored."""
    chosen = {name: request.query_value(name).strip() for name in FILTERS}
    filters = {name: value for name, value in chosen.items() if value}
    before = {"before": request.query_value("before")} if request.query_value("before") else {}
    problem, status = None, 200
    try:
        log = request.call("list_audit_log", limit=ENTRIES, **filters, **before)
    except AppError as error:
        problem, status = request.problem(error), error.status
        log = request.call("list_audit_log", limit=ENTRIES)
    members = request.call("list_members")["members"]
    return request.page(
        "audit",
        status,
        problem=problem,
        log=log,
        describe=partial(texts.change, request.language),
        chosen=chosen,
        members=members,
        first=not before,
        filtered=bool(filters),
    )
