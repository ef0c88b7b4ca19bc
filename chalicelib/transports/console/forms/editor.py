"""The page that changes a form's title, fields and behaviour after a submission.

Buttons that add, move or remove fields return the page with the typed values. Nothing is stored
until the form is saved, so the page needs no script.
"""

import re
from dataclasses import dataclass
from typing import Any, get_args

from chalicelib.core.errors import AppError
from chalicelib.domains.leads.operations.forms import MAX_FIELDS, FieldType
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Typed
from chalicelib.transports.console.forms.forms import find_form, form_path
from chalicelib.transports.http import HttpResponse

TYPES = get_args(FieldType)
Fields = list[dict[str, Any]]

_ACTION = re.compile(r"(up|down|remove):([0-9]{1,2})", re.ASCII)
# Matches the path of an error in one of the fields.
_FIELD = re.compile(r"fields\.([0-9]+)(?:\.(\w+))?", re.ASCII)


@dataclass(frozen=True)
class FormFields(Field):
    """The fields of a form. A new one has no name yet."""

    def read_form(self, request: ConsoleRequest) -> Typed:
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
        return {self.name: fields[:MAX_FIELDS]}

    def fill_controls(self, _: ConsoleRequest, record: Record, /) -> Typed:
        fields = [
            {**field, "options": "\n".join(field["options"] or [])} for field in record[self.name]
        ]
        return {self.name: fields}

    def stored_value(self, record: Record) -> Fields:
        return [
            {name: field[name] or None for name in ("name", "label", "type", "required", "options")}
            for field in record[self.name]
        ]

    def value(self, form_values: Typed) -> Fields:
        # Only a select has options.
        return [
            {
                "name": field["name"] or None,
                "label": field["label"] or None,
                "type": field["type"],
                "required": field["required"] or None,
                "options": (_lines(field["options"]) or None)
                if field["type"] == "select"
                else None,
            }
            for field in form_values[self.name]
        ]

    def argument(self, value: Fields) -> dict[str, Any]:
        fields = [{k: v for k, v in field.items() if v is not None} for field in value]
        return {self.name: [{"label": "", "required": False, **field} for field in fields]}

    def words(self, request: ConsoleRequest, form_values: Typed, /) -> str:
        return ", ".join(
            f"{field['label'] or field['name']} ({request.translate('field_' + field['type'])})"
            if field["type"] in TYPES
            else field["label"]
            for field in form_values[self.name]
        )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _problem(request: ConsoleRequest, error: AppError) -> Problem | None:
    if not error.errors:
        return None
    fields: dict[str, str] = {}
    for error_field in error.errors:
        match = _FIELD.match(error_field.field)
        if match:
            control = "label" if match[2] in {"name", "label"} else "options"
            fields[f"{control}-{match[1]}"] = request.translate(f"wrong_field_{control}")
        elif error_field.field in {"title", "successMessage", "redirectUrl"}:
            fields[error_field.field] = request.translate(f"wrong_form_{error_field.field}")
        else:
            fields["add"] = request.translate("wrong_form_fields")
    return request.problem(error)._replace(fields=fields)


FORM = Form(
    Field("title", "form_title", empty=""),
    FormFields("fields", "form_fields"),
    Field("successMessage", "success_message"),
    Field("redirectUrl", "redirect_url"),
    changes="update_form",
    problems=_problem,
)


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the form, or return the page with a field added, moved or removed."""
    action = request.form_value("action")
    if action not in {"", "save"}:
        form_values = FORM.read_form(request)
        _act(form_values["fields"], action)
        return _page(request, find_form(request), State(form_values=form_values), is_unsaved=True)
    return _save(request)


def _act(fields: Fields, action: str) -> None:
    # An action that is not possible changes nothing.
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


def _page(
    request: ConsoleRequest, form: Record, state: State = STORED, *, is_unsaved: bool = False
) -> HttpResponse:
    page_values = FORM.page_values(request, form, state)
    return request.page(
        "form",
        form=form,
        tab="fields",
        path=form_path(request, form),
        types=TYPES,
        full=len(page_values["typed"]["fields"]) >= MAX_FIELDS,
        most=MAX_FIELDS,
        is_unsaved=is_unsaved,
        **page_values,
    )


show, _save = FORM.editing(find_form, _page, "form_saved")
