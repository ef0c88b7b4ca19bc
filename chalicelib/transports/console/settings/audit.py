"""The audit log page, with the names of actors and records."""

from functools import partial
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.transports.console import record_links
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import audit_sentences, texts

FILTERS = ("actor", "from", "to")
# Entries on a page. More entries made the page heavier than 60 KB on a busy workspace.
ENTRIES = 15
NAMED = 2  # Changed resources of an entry that are shown with their names. The others are counted.
# Fields that every call sends, or that say nothing about a change.
_SILENT = {"id", "workspaceId", "dryRun", "ifVersion", "confirm", "idempotencyKey", "returnHtml"}


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a page of the log, newest first. An invalid filter is reported and ignored."""
    form_values = {name: request.query_value(name).strip() for name in FILTERS}
    filters = {name: value for name, value in form_values.items() if value}
    position = {"before": request.query_value("before")} if request.query_value("before") else {}
    problem, status = None, 200
    try:
        log = request.call("list_audit_log", limit=ENTRIES, **filters, **position)
    except AppError as error:
        problem, status = request.problem(error), error.status
        log = request.call("list_audit_log", limit=ENTRIES)
    members = request.call("list_members")["members"]
    return request.page(
        "audit",
        status,
        problem=problem,
        log=log,
        describe=partial(audit_sentences.change_made, request.language),
        field_names=partial(_field_names, request),
        kind_of=partial(_kind_of, request),
        link=record_links.links(request),
        named=NAMED,
        chosen=form_values,
        members=members,
        first=not position,
        filtered=bool(filters),
    )


def _field_names(request: ConsoleRequest, entry: dict[str, Any]) -> str:
    # A field of an unknown name is shown as the API names it.
    names = (name for name in entry["fields"] if name not in _SILENT)
    return ", ".join(_text_or(request, f"input_{name}", default=name) for name in names)


def _kind_of(request: ConsoleRequest, kind: str) -> str:
    return _text_or(request, f"kind_{kind.replace('-', '_')}", default=kind)


def _text_or(request: ConsoleRequest, key: str, *, default: str) -> str:
    return request.translate(key) if texts.has(request.language, key) else default
