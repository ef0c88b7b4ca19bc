"""The page of a resource's own calendar, whose busy times are not offered."""

from contextlib import suppress
from enum import StrEnum

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.console.services.staff import Resource, find_resource, staff_path
from chalicelib.transports.http import HttpResponse, redirect


class Action(StrEnum):
    """Values of the buttons. Any other value takes a link."""

    READ = "read"
    REMOVE = "remove"


def show(request: ConsoleRequest) -> HttpResponse:
    """Show when the calendar was read, and buttons to read, replace and remove it."""
    return _page(request, find_resource(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Take the link of a calendar, have it read, or remove it."""
    resource = find_resource(request)
    try:
        done = _change(request, resource["id"])
    except AppError as error:
        problem = problem_at_fields(request, error, {"url": "wrong_calendar_url"})
        return _page(request, resource, error.status, problem)
    return redirect(f"{request.path}?done={done}")


def _change(request: ConsoleRequest, resource_id: str) -> str:
    """Do what the pressed button says, and return the name of the confirmation."""
    match request.form_value("action"):
        case Action.REMOVE:
            with suppress(NotFoundError):  # a second click
                request.call("delete_busy_calendar", id=resource_id)
            return "busy_calendar_removed"
        case Action.READ:
            request.call("read_busy_calendar", id=resource_id)
            return "busy_calendar_asked"
    request.call("create_busy_calendar", resourceId=resource_id, url=request.form_value("url"))
    return "busy_calendar_added"


def _page(
    request: ConsoleRequest, resource: Resource, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    calendars = request.call("get_busy_calendars")["busyCalendars"]
    return request.page(
        "staff_busy_times",
        status,
        problem=problem,
        resource=resource,
        heading=resource["name"],
        path=staff_path(request, resource),
        tab="busy_times",
        busy=next((each for each in calendars if each["resourceId"] == resource["id"]), None),
    )
