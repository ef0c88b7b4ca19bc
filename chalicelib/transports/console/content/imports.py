"""Pages on which members import products, services and clients from a file."""

import base64
import re
from collections.abc import Mapping
from datetime import date
from typing import Any, cast

from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.domains.imports.operations.imports import FIELDS
from chalicelib.domains.imports.rules import reasons
from chalicelib.domains.imports.rules.nouns import Noun
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

CONTROL = "file"  # Name of the file control.
GONE = "gone"  # In the query: the table was deleted, because its import has begun or a day passed.
COLUMN = "column:"  # Begins the name of the control of a column, which the column's name follows.
MAX_SELECTS = 24
"""Columns up to which each has a select. The options of more would make the page too long, so a
wide table has text fields, which suggest the same words."""
MAX_CONTROLS = 64
"""Columns that have a control. The page names the number of the others."""
TITLES = ("name", "sku", "phone", "email")
"""Values by which a person knows a record, the best one first."""
OPERATIONS: Mapping[Noun, str] = {
    "products": "import_products",
    "services": "import_services",
    "clients": "import_clients",
}


def index(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a file, or that the table of a preview is not there any more."""
    if request.query_value(GONE):
        return _choose_file(request, 404, request.translate("import_file_gone"))
    return _index(request)


def _index(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    return request.page("import_file", status, problem=problem, noun=_noun(request))


def add(request: ConsoleRequest) -> HttpResponse:
    """Store the file of the form, and show what it would bring."""
    file = next((file for file in request.sent_files if file.field == CONTROL), None)
    if file is None:
        return _choose_file(request, 400, request.translate("choose_file_first"))
    content = base64.b64encode(file.content).decode()
    try:
        # Tables have personal data, and a file of the workspace would have a public URL.
        table = request.call_once("upload_privately", name=file.name, content=content)
    except AppError as error:
        problem = request.problem(error)
        message = next(iter(problem.fields.values()), problem.summary)
        return _choose_file(request, error.status, message)
    return redirect(f"{_path(request)}/{table['id']}")


def _choose_file(request: ConsoleRequest, status: int, message: str) -> HttpResponse:
    return _index(request, status, Problem(request.translate("wrong_fields"), {CONTROL: message}))


def preview(request: ConsoleRequest) -> HttpResponse:
    """Show the first rows of a file, its columns, and how many records would change."""
    return _preview(request, {})


def start(request: ConsoleRequest) -> HttpResponse:
    """Show the preview with the chosen columns, or start the import."""
    columns = _chosen(request)
    if request.form_value("action") != "import":
        return _preview(request, columns)
    try:
        answer = request.call_once(
            OPERATIONS[_noun(request)],
            fileId=request.http.path["table"],
            columns=columns,
            deleteFile=True,
        )
    except ValidationError:
        return _preview(request, columns, 400)
    except NotFoundError:
        return redirect(f"{_path(request)}?{GONE}=1")
    return redirect(f"{request.current_membership.path}/imports/{answer['importId']}")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show how far an import is, with a link to the table of refused rows."""
    record = request.call("get_import", id=request.http.path["import"], language=request.language)
    return request.page("import", record=record, noun=record["kind"])


def _preview(
    request: ConsoleRequest, columns: dict[str, str | None], status: int = 200
) -> HttpResponse:
    noun = _noun(request)
    try:
        found = request.call(
            OPERATIONS[noun],
            fileId=request.http.path["table"],
            columns=columns,
            dryRun=True,
            language=request.language,
        )["preview"]
    except ValidationError as error:
        return _index(request, error.status, _problem(request, error))
    except NotFoundError:
        return redirect(f"{_path(request)}?{GONE}=1")
    words = {name: reasons.field_name(request.language, name) for name in found["fields"]}
    shown = found["columns"][:MAX_CONTROLS]
    return request.page(
        "import_preview",
        status,
        noun=noun,
        found={
            **found,
            "preview": [_shown_row(request, row) for row in found["preview"]],
        },
        columns=shown,
        more_columns=len(found["columns"]) - len(shown),
        fields=words,
        is_wide=len(found["columns"]) > MAX_SELECTS,
        path=_path(request),
    )


def _shown_row(request: ConsoleRequest, row: dict[str, Any]) -> dict[str, Any]:
    values = row["values"]
    titles = [str(values[name]) for name in TITLES if values.get(name)]
    length, price = values.get("durationMin"), values.get("price")
    facts = titles[1:]
    if isinstance(length, int):
        facts.append(typed_values.length(request.language, length))
    if birthday := values.get("birthday"):
        # The month in words shows in which order a date was read.
        facts.append(texts.day(request.language, date.fromisoformat(birthday)))
    return {
        **row,
        "title": next(iter(titles), request.translate("import_row", n=row["row"])),
        "facts": facts,
        "price": price if isinstance(price, int) else None,
    }


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    messages = {each.field: each.message for each in error.errors}
    message = messages.get("fileId") or next(iter(messages.values()), error.message)
    return Problem(request.translate("wrong_fields"), {CONTROL: message})


def _chosen(request: ConsoleRequest) -> dict[str, str | None]:
    """Return the fields that the form chooses for columns, without those that stay as they are."""
    words = {
        reasons.field_name(request.language, name).casefold(): name
        for name in FIELDS[_noun(request)]
    }
    chosen: dict[str, str | None] = {}
    for control, values in request.form.items():
        name, value = control.removeprefix(COLUMN), values[-1].strip()
        if control.startswith(COLUMN) and value != "recognized":
            field = words.get(value.casefold(), value)
            chosen[name] = field if field in words.values() else None
    return chosen


def _noun(request: ConsoleRequest) -> Noun:
    # The path names it, such as ``/console/w/bakery/products/import``.
    found = re.search(rf"/({'|'.join(OPERATIONS)})/import", request.path)
    return cast("Noun", found[1]) if found else "products"


def _path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/{_noun(request)}/import"
