"""The page of a workspace's settings."""

from chalicelib.lib import phones, zoned_times
from chalicelib.lib.accents import ACCENTS, DEFAULT
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts


def _countries(request: ConsoleRequest) -> dict[str, str]:
    return dict(texts.countries(request.language, phones.countries()))


def _accents(request: ConsoleRequest) -> dict[str, str]:
    # The default is stored as null.
    values = {name: "" if name == DEFAULT else name for name in ACCENTS}
    return {choice: request.translate(f"accent_{name}") for name, choice in values.items()}


FORM = Form(
    Field("name", "workspace_name", empty=""),
    Field("timezone", "workspace_zone", empty=""),
    Field("country", "workspace_country", empty="", names=_countries),
    Field("address", "workspace_address"),
    Field("phone", "workspace_phone", wrong="wrong_booking_phone"),
    Field("logoUrl", "workspace_logo"),
    Field("accent", "workspace_accent", names=_accents),
)


def _find(request: ConsoleRequest) -> Record:
    return request.call("get_workspace")


def _page(request: ConsoleRequest, workspace: Record, state: State = STORED) -> HttpResponse:
    form = FORM.page_values(request, workspace, state)
    form["typed"] = {name: text.strip() for name, text in form["typed"].items()}
    return request.page(
        "settings",
        stored=workspace,
        zones=zoned_times.zones_of_countries(),
        countries=_countries(request).items(),
        accents=_accents(request).items(),
        **form,
    )


show, save = FORM.editing(_find, "set_workspace", _page, "settings_saved", key="")
