"""The audit log page: changes, their actors, keys and times."""

from functools import partial

from chalicelib.core.errors import AppError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

FILTERS = ("actor", "from", "to")


def show(visit: ConsoleRequest) -> HttpResponse:
    """Show a page of the log, newest first. An invalid filter is reported and ignored."""
    chosen = {name: visit.asked(name).strip() for name in FILTERS}
    wanted = {name: value for name, value in chosen.items() if value}
    before = {"before": visit.asked("before")} if visit.asked("before") else {}
    problem, status = None, 200
    try:
        log = visit.call("list_audit_log", **wanted, **before)
    except AppError as error:
        problem, status = visit.problem(error), error.status
        log = visit.call("list_audit_log")
    members = visit.call("list_members")["members"]
    return visit.page(
        "audit",
        status,
        problem=problem,
        log=log,
        did=partial(texts.change, visit.language),
        chosen=chosen,
        members=members,
        first=not before,
        filtered=bool(wanted),
    )
