"""Page that changes a form: its title, its fields and what happens after a submission.

Fields are added, moved and removed by buttons of the page's form, which return the page again with
what was typed. Nothing is stored until the form is saved, so the page needs no script.
"""

import re
from collections.abc import Mapping
from typing import Any, get_args

from chalicelib.core.errors import AppError, ConflictError
from chalicelib.domains.leads.operations.forms import MAX_FIELDS, FieldType
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.forms.forms import find_form, form_path
from chalicelib.transports.http import HttpResponse, redirect

TYPES = get_args(FieldType)
Fields = list[dict[str, Any]]

_ACTION = re.compile(r"(up|down|remove):([0-9]{1,2})", re.ASCII)
_FIELD = re.compile(r"fields\.([0-9]+)(?:\.(\w+))?", re.ASCII)
"""Matches the path of an error in one of the fields."""
_VERSION = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a form's fields and settings."""
    form = find_form(request)
    return _page(request, 200, form, _stored(form))


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the form, or return the page with a field added, moved or removed."""
    typed, form = _typed(request), find_form(request)
    action = request.form_value("action")
    if action not in {"", "save"}:
        _act(typed["fields"], action)
        return _page(request, 200, form, typed, is_unsaved=True)
    version = request.form_value("ifVersion")
    condition = {"ifVersion": int(version)} if _VERSION.fullmatch(version) else {}
    try:
        request.call("update_form", id=form["id"], **_arguments(typed), **condition)
    except ConflictError as error:
        rows = _differences(request, form, typed)
        return _page(request, error.status, form, typed, conflicts=rows)
    except AppError as error:
        return _page(request, error.status, form, typed, problem=_problem(request, error))
    return redirect(f"{form_path(request, form)}?done=form_saved")


def _stored(form: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the page's fields for a stored form."""
    fields = [{**each, "options": "\n".join(each["options"] or [])} for each in form["fields"]]
    return {
        "title": form["title"],
        "fields": fields,
        "successMessage": form["successMessage"] or "",
        "redirectUrl": form["redirectUrl"] or "",
    }


def _typed(request: ConsoleRequest) -> dict[str, Any]:
    """Return the values of the page's fields as they were typed."""
    columns = [request.form.get(key, []) for key in ("name", "label", "type", "options")]
    required = set(request.form.get("required", []))
    fields = [
        {
            "name": name,
            "label": label,
            "type": kind,
            "options": options.replace("\r\n", "\n"),
            "required": str(place) in required,
        }
        for place, (name, label, kind, options) in enumerate(zip(*columns, strict=False))
    ]
    return {
        "title": request.form_value("title"),
        "fields": fields[:MAX_FIELDS],
        "successMessage": request.form_value("successMessage").replace("\r\n", "\n"),
        "redirectUrl": request.form_value("redirectUrl"),
    }


def _act(fields: Fields, action: str) -> None:
    """Add, move or remove a field. An action that is not possible changes nothing."""
    if action == "add" and len(fields) < MAX_FIELDS:
        fields.append({"name": "", "label": "", "type": "text", "options": "", "required": False})
    match = _ACTION.fullmatch(action)
    place = int(match[2]) if match else len(fields)
    if match is None or place >= len(fields):
        return
    if match[1] == "remove":
        del fields[place]
        return
    other = place + (1 if match[1] == "down" else -1)
    if 0 <= other < len(fields):
        fields[place], fields[other] = fields[other], fields[place]


def _arguments(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``update_form``. Only a select has options."""
    fields = [
        {
            **({"name": each["name"]} if each["name"] else {}),
            "label": each["label"],
            "type": each["type"],
            "required": each["required"],
            "options": _lines(each["options"]) if each["type"] == "select" else None,
        }
        for each in typed["fields"]
    ]
    return {
        "title": typed["title"],
        "fields": fields,
        "successMessage": typed["successMessage"].strip() or None,
        "redirectUrl": typed["redirectUrl"].strip() or None,
    }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure, each at the control that it is about."""
    fields: dict[str, str] = {}
    for each in error.errors:
        match = _FIELD.match(each.field)
        if match:
            control = "label" if match[2] in {"name", "label"} else "options"
            fields[f"{control}-{match[1]}"] = request.translate(f"wrong_field_{control}")
        elif each.field in {"title", "successMessage", "redirectUrl"}:
            fields[each.field] = request.translate(f"wrong_form_{each.field}")
        else:
            fields["add"] = request.translate("wrong_form_fields")
    return request.problem(error)._replace(fields=fields)


def _differences(
    request: ConsoleRequest, form: dict[str, Any], typed: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Return the label, the stored and the typed value of everything that differs."""
    stored = _stored(form)

    def words(value: str | Fields) -> str:
        if isinstance(value, str):
            return value
        return ", ".join(
            f"{each['label'] or each['name']} ({request.translate('field_' + each['type'])})"
            if each["type"] in TYPES
            else each["label"]
            for each in value
        )

    labels = {
        "title": "form_title",
        "fields": "form_fields",
        "successMessage": "success_message",
        "redirectUrl": "redirect_url",
    }
    return [
        (request.translate(label), words(stored[key]), words(typed[key]))
        for key, label in labels.items()
        if stored[key] != typed[key]
    ]


def _page(  # noqa: PLR0913  parts of the page
    request: ConsoleRequest,
    status: int,
    form: dict[str, Any],
    typed: Mapping[str, Any],
    *,
    problem: Problem | None = None,
    conflicts: list[tuple[str, str, str]] | None = None,
    is_unsaved: bool = False,
) -> HttpResponse:
    return request.page(
        "form",
        status,
        problem=problem,
        form=form,
        tab="fields",
        path=form_path(request, form),
        typed=typed,
        types=TYPES,
        full=len(typed["fields"]) >= MAX_FIELDS,
        most=MAX_FIELDS,
        conflicts=conflicts,
        is_unsaved=is_unsaved,
    )
