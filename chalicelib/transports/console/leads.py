"""Pages of leads."""

import re
from itertools import chain
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, PayloadTooLargeError
from chalicelib.engine import history
from chalicelib.lib.markup import csv_text
from chalicelib.transports.console.choices import FORMS
from chalicelib.transports.console.console_request import SEEN, ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, tags
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse, redirect

SIZE = 20  # Leads a page. Each takes about one read unit.
STATUSES = ("new", "in_progress", "completed", "rejected", "archived")
# The status that a lead of a status usually gets next.
NEXT = {"new": "in_progress", "in_progress": "completed"}
# Names in the page's address, and the filters of the operation.
FILTERS = {
    "status": "status",
    "q": "search",
    "form": "formId",
    "tag": "tag",
    "from": "from",
    "to": "to",
}
FORM = Form(
    *(Field("name", "lead_name"), Field("email", "lead_email"), Field("phone", "lead_phone")),
    *(tags("tags", label="lead_tags"), Field("notes", "lead_notes")),
    changes="update_lead",
)
# Delimiter of a CSV file. Spreadsheets in Russian divide cells at semicolons.
DELIMITERS = {"ru": ";", "en": ","}
PREVIEW_CHARACTERS = 160
LAST_DIGITS = 7  # Digits by which a submitted phone number is recognized, whatever its prefix is.
MAX_PHONE = 25  # Longest submitted value that counts as nothing but a phone number.


def _list_values(request: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
    shown = [lead["formId"] for lead in response["collections"]]
    forms = FORMS.offer(request, "form", [request.query_value("form"), *shown])
    return {
        "leads": [{**lead, "preview": _preview(lead)} for lead in response["collections"]],
        "statuses": STATUSES,
        "titles": forms.names,
        "forms": forms,
    }


def _filter_problem(request: ConsoleRequest, error: AppError) -> Problem:
    form_problem = request.problem(error)
    names = {parameter: name for name, parameter in FILTERS.items()}
    fields = {names.get(field, field): text for field, text in form_problem.fields.items()}
    return form_problem._replace(fields=fields)


def _preview(lead: dict[str, Any]) -> str:
    contacts = {_letters(lead[name]) for name in ("name", "email")}
    phone = _digits(lead["phone"])[-LAST_DIGITS:] or None
    values = (each if isinstance(each, list) else [each] for each in lead["data"].values())
    texts = (value for value in chain.from_iterable(values) if isinstance(value, str))
    lines = (
        text
        for text in texts
        if _letters(text) not in contacts
        and not (phone and len(text) <= MAX_PHONE and phone in _digits(text))
    )
    return " · ".join(lines)[:PREVIEW_CHARACTERS]


def _letters(text: str | None) -> str:
    return (text or "").strip().casefold()


def _digits(text: str | None) -> str:
    return re.sub(r"\D", "", text or "")


def export(request: ConsoleRequest) -> HttpResponse:
    """Return the leads that the filters select as a CSV file."""
    filters = {name: request.form_value(name).strip() for name in FILTERS}
    try:
        table = request.call("export_leads", **LIST.arguments(filters))
    except PayloadTooLargeError as error:
        too_large = Problem(request.translate("export_too_large"))
        return LIST.page(request, filters, error.status, too_large)
    except AppError as error:
        return LIST.page(request, filters, error.status, _filter_problem(request, error))
    head = _head(request, table["columns"])
    rows = [[_csv_cell(request, cell) for cell in row] for row in table["rows"]]
    for row in rows:
        row[1] = request.translate(f"lead_{row[1]}")
    text = csv_text.write([head, *rows], DELIMITERS[request.language])
    today = clock.local_day(clock.now(), request.current_membership.workspace.timezone)
    return csv_file(text, name=f"{request.current_membership.workspace.slug}-leads-{today}.csv")


def _head(request: ConsoleRequest, columns: list[dict[str, Any]]) -> list[str]:
    # A heading that occurs twice gets the field's name.
    head: list[str] = []
    for column in columns:
        text = column["label"] or request.translate(f"csv_{column['name']}")
        head.append(f"{text} ({column['name']})" if text in head else text)
    return head


def _csv_cell(request: ConsoleRequest, cell: str | float | bool | None) -> csv_text.Cell:  # noqa: FBT001  a cell
    if isinstance(cell, bool):
        return request.translate("yes" if cell else "no")
    return cell


def csv_file(text: str, *, name: str) -> HttpResponse:
    """Return a CSV file. By its byte order mark, spreadsheets read the file as UTF-8."""
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return HttpResponse(200, text.encode("utf-8-sig"), headers)


def save(request: ConsoleRequest) -> HttpResponse:
    """Set the status of a lead, or change the fields that the user has changed."""
    if status := request.form_value("status"):
        request.call("set_lead_status", id=request.http.path["lead"], status=status)
        return redirect(f"{_path(request)}?done=lead_status_set")
    return _save(request)


def _saved(request: ConsoleRequest, lead: Record, answer: dict[str, Any]) -> HttpResponse:
    is_changed = answer or request.form_value(SEEN) != FORM.seen(lead)
    return redirect(f"{_path(request)}?done=lead_saved" if is_changed else _path(request))


def _find(request: ConsoleRequest) -> Record:
    details = request.call("get_lead_details", id=request.http.path["lead"])
    return {**details["lead"], "details": details}


def _lead_page(request: ConsoleRequest, lead: Record, state: State = STORED) -> HttpResponse:
    return request.page(
        "lead",
        path=_path(request),
        details=lead["details"],
        most_changes=history.SHOWN,
        lead=lead,
        following=NEXT.get(lead["status"]),
        statuses=[status for status in STATUSES if status != lead["status"]],
        **FORM.page_values(request, lead, state),
    )


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/leads/{request.http.path['lead']}"


show, _save = FORM.editing(_find, _lead_page, _saved)
LIST = ListPage("leads", "list_leads", SIZE, FILTERS, _list_values, problem=_filter_problem)
index = LIST.index
