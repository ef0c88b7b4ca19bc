"""Page of a workspace's settings: its name, time zone and country, and what its plan includes."""

from typing import Any

from chalicelib.lib import phones, zoned_times
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts


def _countries(request: ConsoleRequest) -> dict[str, str]:
    return dict(texts.countries(request.language, phones.countries()))


FORM = Form(
    Field("name", "workspace_name", empty=""),
    Field("timezone", "workspace_zone", empty=""),
    Field("country", "workspace_country", empty="", names=_countries),
)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the settings and the plan."""
    return _page(request, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the settings."""

    def arguments(_: Record, changes: dict[str, Any]) -> dict[str, Any]:
        return changes

    def saved(*_: object) -> HttpResponse:
        return redirect(f"{request.current_membership.path}/settings?done=settings_saved")

    return FORM.save(request, _find, "set_workspace", _page, saved, arguments=arguments)


def _find(request: ConsoleRequest) -> Record:
    return request.call("get_workspace")


def _page(request: ConsoleRequest, stored: Record, state: State = STORED) -> HttpResponse:
    form = FORM.shown(request, stored, state)
    form["typed"] = {name: text.strip() for name, text in form["typed"].items()}
    return request.page(
        "settings",
        stored=stored,
        zones=zoned_times.zones_of_countries(),
        countries=_countries(request).items(),
        **form,
    )
