"""The page of a workspace's settings."""

from typing import Any

from chalicelib.core.errors import ValidationError
from chalicelib.lib import phones, zoned_times
from chalicelib.lib.accents import ACCENTS, DEFAULT
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Photo, Record
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts


def _countries(request: ConsoleRequest) -> dict[str, str]:
    return dict(texts.countries(request.language, phones.countries()))


def _accents(request: ConsoleRequest) -> dict[str, str]:
    # The default is stored as null.
    values = {name: "" if name == DEFAULT else name for name in ACCENTS}
    return {choice: request.translate(f"accent_{name}") for name, choice in values.items()}


def _use_uploaded_logo(request: ConsoleRequest, arguments: dict[str, Any]) -> dict[str, Any]:
    if "logoUrl" not in arguments:
        return arguments
    logo = arguments["logoUrl"] or {}
    if "fileId" in logo:
        logo = request.call("get_file", id=logo["fileId"])["file"]
        if not logo["width"]:
            raise ValidationError.of(LOGO.control, message="expected an image")
    return {**arguments, "logoUrl": logo.get("url")}


LOGO = Photo("logoUrl", "workspace_logo")
FORM = Form(
    Field("name", "workspace_name", empty=""),
    Field("timezone", "workspace_zone", empty=""),
    Field("country", "workspace_country", empty="", names=_countries),
    Field("address", "workspace_address"),
    Field("phone", "workspace_phone", wrong="wrong_booking_phone"),
    LOGO,
    Field("accent", "workspace_accent", names=_accents),
    prepare=_use_uploaded_logo,
)


def _find(request: ConsoleRequest) -> Record:
    workspace = request.call("get_workspace")
    url = workspace["logoUrl"]
    return {**workspace, "logoUrl": {"fileId": url, "url": url} if url else None}


def _page(request: ConsoleRequest, workspace: Record, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, workspace, state)
    form["typed"] = {
        name: control.strip() if isinstance(control, str) else control
        for name, control in form["typed"].items()
    }
    return request.page(
        "settings",
        stored=workspace,
        zones=zoned_times.zones_of_countries(),
        countries=_countries(request).items(),
        accents=_accents(request).items(),
        **form,
    )


show, save = FORM.editing(_find, "set_workspace", _page, "settings_saved", key="")
