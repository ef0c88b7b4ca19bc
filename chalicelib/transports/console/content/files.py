"""Pages of the workspace's files."""

import base64
from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.domains.files.rules import file_types
from chalicelib.transports.console import record_links
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.uploads import store_files
from chalicelib.transports.http import HttpResponse, redirect

PAGE_SIZE = 24
CONTROL = "files"  # Name of the file control.
NEW_FILE = "newFile"  # Name of the control for the file that replaces another.


def add(request: ConsoleRequest) -> HttpResponse:
    """Store the files of the form, as far as they are accepted."""
    uploads = store_files(request, CONTROL)
    if uploads.ids and not uploads.problem:
        names = [file.name for file in request.sent_files]
        is_code = any(file_types.is_page_code(name) for name in names)
        return redirect(f"{request.path}?done=files_added{'_code' if is_code else ''}")
    message = uploads.problem or request.translate("choose_file_first")
    problem = Problem(request.translate("wrong_fields"), {CONTROL: message})
    return LIST.page(request, dict.fromkeys(LIST.filters, ""), 400, problem)


FORM = Form(Field("name", "file_name", required="expected a name"), changes="update_file")


def _find(request: ConsoleRequest) -> dict[str, Any]:
    file: dict[str, Any] = request.call("get_file", id=request.http.path["file"])["file"]
    return file


def _file_page(request: ConsoleRequest, file: Record, state: State = STORED) -> HttpResponse:
    return request.page("file", **_details(request), **FORM.page_values(request, file, state))


def _details(request: ConsoleRequest) -> dict[str, Any]:
    details = request.call("get_file", id=request.http.path["file"])
    return {
        "file": details["file"],
        "path": f"{request.current_membership.path}/files/{details['file']['id']}",
        "uses": details["usedBy"],
        "more_uses": details["usedByTotal"] - len(details["usedBy"]),
        "link": record_links.links(request),
    }


show, save = FORM.editing(_find, _file_page, "file_renamed")


def replace(request: ConsoleRequest) -> HttpResponse:
    """Replace the content of a file by the file of the form."""
    file = _find(request)
    sent = next((each for each in request.sent_files if each.field == NEW_FILE), None)
    if sent is None:
        return _refused(request, file, 400, request.translate("choose_file_first"))
    content = base64.b64encode(sent.content).decode()
    try:
        request.call_once("replace_file", id=file["id"], name=sent.name, content=content)
    except AppError as error:
        problem = request.problem(error)
        message = next(iter(problem.fields.values()), problem.summary)
        if any(each.key == "other_kind" for each in error.errors):
            message = request.translate("wrong_file_kind")
        return _refused(request, file, error.status, message)
    return redirect(f"{request.path.removesuffix('/replace')}?done=file_replaced")


def _refused(request: ConsoleRequest, file: Record, status: int, message: str) -> HttpResponse:
    problem = Problem(request.translate("wrong_fields"), {NEW_FILE: message})
    return _file_page(request, file, State(status, problem))


LIST = ListPage("files", "list_files", PAGE_SIZE, {"q": "q", "folder": "folderId"})
index = LIST.index
confirm_delete, delete = deletion(
    "file_delete", _details, "delete_file", notice="file_deleted", id="file", force=True
)
