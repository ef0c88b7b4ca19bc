"""Page of a workspace's settings: its name, time zone and country, and what its plan includes."""

from typing import Any

from chalicelib.core.errors import AppError
from chalicelib.lib import phones, zoned_times
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

FIELDS = ("name", "timezone", "country")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the settings and the plan."""
    return _page(request, 200, None)


def save(request: ConsoleRequest) -> HttpResponse:
    """Change the settings that differ from those that the form showed.

    A change that another person made meanwhile to another field therefore stays.
    """
    typed = {name: request.form_value(name).strip() for name in FIELDS}
    changes = {
        name: value for name, value in typed.items() if [value] != request.form.get(f"old_{name}")
    }
    path = f"{request.current_membership.path}/settings"
    if not changes:
        return redirect(f"{path}?done=settings_saved")
    try:
        request.call("set_workspace", **changes)
    except AppError as error:
        return _page(request, error.status, typed, request.problem(error))
    return redirect(f"{path}?done=settings_saved")


def _page(
    request: ConsoleRequest,
    status: int,
    typed: dict[str, str] | None,
    problem: Problem | None = None,
) -> HttpResponse:
    stored: dict[str, Any] = request.call("get_workspace")
    return request.page(
        "settings",
        status,
        problem=problem,
        stored=stored,
        typed=typed or stored,
        zones=zoned_times.zones_of_countries(),
        countries=texts.countries(request.language, phones.countries()),
    )
