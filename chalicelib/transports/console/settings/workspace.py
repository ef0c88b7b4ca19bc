"""The page of a workspace's settings."""

from chalicelib.lib import phones, zoned_times
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts


def _countries(request: ConsoleRequest) -> dict[str, str]:
    return dict(texts.countries(request.language, phones.countries()))


FORM = Form(
    Field("name", "workspace_name", empty=""),
    Field("timezone", "workspace_zone", empty=""),
    Field("country", "workspace_country", empty="", names=_countries),
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
        **form,
    )


show, save = FORM.editing(_find, "set_workspace", _page, "settings_saved", key="")
