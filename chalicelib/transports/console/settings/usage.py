"""The page with counts of what keys, people and visitors have done."""

from datetime import date, datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from chalicelib.core.errors import AppError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import audit_sentences, texts


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the counts of a period. An invalid period is reported, and the last days are shown."""
    chosen = {name: request.query_value(name).strip() for name in ("from", "to")}
    filters = {name: value for name, value in chosen.items() if value}
    problem, status = None, 200
    try:
        report = request.call("get_usage", **filters)
    except AppError as error:
        problem, status = request.problem(error), error.status
        report = request.call("get_usage")
    first = datetime.fromisoformat(report["countedSince"])
    local_first = first.astimezone(ZoneInfo(report["timezone"])).date()
    return request.page(
        "usage",
        status,
        problem=problem,
        report=report,
        chosen={**report, **filters},
        is_cut_off=local_first > date.fromisoformat(report["from"]),
        callers=[(*_caller(request, each), each) for each in report["callers"]],
        days=[
            (texts.day(request.language, date.fromisoformat(each["date"])), "", each)
            for each in report["days"][::-1]
        ],
        operations=report["operations"],
        describe=partial(audit_sentences.change_made, request.language),
    )


def _caller(request: ConsoleRequest, caller: dict[str, Any]) -> tuple[str, str]:
    """Return the name of a caller and the address of its page, if it has one."""
    kind, path = caller["kind"], request.current_membership.path
    pages = {"key": "keys", "app": "apps"}
    if kind not in pages:
        return request.translate("usage_members" if kind == "account" else f"actor_{kind}"), ""
    if caller["name"] is None:
        return request.translate("usage_key_gone"), ""
    return caller["name"], f"{path}/{pages[kind]}/{caller['id']}"
