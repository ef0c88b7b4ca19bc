"""Pages of the links with which calendar programs show the bookings."""

from contextlib import suppress
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.services.staff import Resource, find_resource, staff_path
from chalicelib.transports.http import HttpResponse, redirect

REPLACE, REVOKE = "replace", "revoke"


def show_of_staff(request: ConsoleRequest) -> HttpResponse:
    """Show the link of a resource's calendar, with buttons to make, replace and revoke it."""
    return _page_of_staff(request, find_resource(request))


def change_of_staff(request: ConsoleRequest) -> HttpResponse:
    """Make, replace or revoke the link of a resource's calendar."""
    resource = find_resource(request)
    try:
        done = _change(request, resource["id"], resourceId=resource["id"])
    except AppError as error:
        return _page_of_staff(request, resource, error)
    return redirect(f"{request.path}?done={done}")


def show_of_business(request: ConsoleRequest) -> HttpResponse:
    """Show the links of all calendars, with buttons to change the one of the business.

    A member of the staff gets the link of the own calendar.
    """
    return _page_of_business(request)


def change_of_business(request: ConsoleRequest) -> HttpResponse:
    """Make, replace or revoke the link of the calendar of the business, or of the own one."""
    own_id = request.current_membership.own_resource_id
    try:
        if own_id:
            done = _change(request, own_id, resourceId=own_id)
        else:
            done = _change(request, request.current_membership.workspace.id)
    except AppError as error:
        return _page_of_business(request, error)
    return redirect(f"{request.path}?done={done}")


def _change(request: ConsoleRequest, link_id: str, **calendar: str) -> str:
    """Do what the pressed button says, and return the name of the confirmation."""
    action = request.form_value("action")
    if action == REVOKE:
        with suppress(NotFoundError):  # a second click
            request.call("delete_calendar_link", id=link_id)
        return "calendar_link_revoked"
    replaces = action == REPLACE
    request.call_once("create_calendar_link", replace=replaces, **calendar)
    return "calendar_link_replaced" if replaces else "calendar_link_made"


def _page_of_staff(
    request: ConsoleRequest, resource: Resource, error: AppError | None = None
) -> HttpResponse:
    links = request.call("get_calendar_links")["calendarLinks"]
    return request.page(
        "staff_calendar_link",
        error.status if error else 200,
        problem=request.problem(error) if error else None,
        resource=resource,
        heading=resource["name"],
        path=staff_path(request, resource),
        tab="calendar_link",
        link=next((link for link in links if link["id"] == resource["id"]), None),
    )


def _page_of_business(request: ConsoleRequest, error: AppError | None = None) -> HttpResponse:
    own_id = request.current_membership.own_resource_id or None
    links: list[dict[str, Any]] = request.call("get_calendar_links")["calendarLinks"]
    return request.page(
        "bookings_calendar_link",
        error.status if error else 200,
        problem=request.problem(error) if error else None,
        link=next((link for link in links if link["resourceId"] == own_id), None),
        is_own=own_id is not None,
        others=[link for link in links if link["resourceId"] is not None],
    )
