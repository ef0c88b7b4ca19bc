"""Pages of staff: people, rooms and equipment that services are booked with."""

from contextlib import suppress
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.core.settings import settings
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.console.services.setup import (
    MAX_CHOICES,
    booking_path,
    image_warnings,
    problem_at_fields,
    upcoming_bookings,
    with_lacks,
)
from chalicelib.transports.http import HttpResponse, redirect

PAGE_SIZE = 20
TYPES = ("master", "room", "equipment")
ZONES = (
    *("Europe/Kaliningrad", "Europe/Moscow", "Europe/Samara", "Asia/Yekaterinburg", "Asia/Omsk"),
    *("Asia/Novosibirsk", "Asia/Krasnoyarsk", "Asia/Irkutsk", "Asia/Yakutsk", "Asia/Vladivostok"),
    *("Asia/Magadan", "Asia/Kamchatka", "Europe/Minsk", "Asia/Almaty", "Asia/Tashkent"),
    *("Asia/Bishkek", "Asia/Tbilisi", "Asia/Yerevan", "Asia/Baku", "Europe/Istanbul", "Asia/Dubai"),
    *("Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles"),
)
"""Zones that the form suggests. Every other IANA name can be typed."""
Resource = dict[str, Any]


def index(request: ConsoleRequest) -> HttpResponse:
    """List the staff."""
    query, status = request.query_value("q").strip(), request.query_value("status")
    status = status if status in {"active", "inactive"} else "all"
    page = request.page_number
    listed = request.call(
        "list_resources",
        page=page,
        size=PAGE_SIZE,
        status=status,
        **({"q": query} if query else {}),
    )
    filtered = bool(query) or status != "all"
    return request.page(
        "staff",
        staff=listed["resources"],
        total=listed["total"],
        page=page,
        size=PAGE_SIZE,
        query=query,
        chosen_status=status,
        filtered=filtered,
        searchable=filtered or listed["total"] > SEARCH_THRESHOLD,
        base_url=settings().public_url,
    )


def new_member_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new resource."""
    return _form_page(request, 200, None)


def create(request: ConsoleRequest) -> HttpResponse:
    """Create a resource, and go on to its opening hours."""
    try:
        made = request.call_once("create_resource", **_arguments(request))
    except AppError as error:
        return _form_page(request, error.status, None, _problem(request, error))
    resource: Resource = made["resource"]
    if lost := image_warnings(made):
        return _form_page(request, 200, resource, saved="staff_created", lost=lost)
    return redirect(f"{staff_path(request, resource)}/hours?done=staff_created")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a resource and its form."""
    return _form_page(request, 200, find_resource(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change a resource. The form sends all of its fields."""
    resource = find_resource(request)
    try:
        saved = request.call("update_resource", id=resource["id"], **_arguments(request, resource))
    except AppError as error:
        return _form_page(request, error.status, resource, _problem(request, error))
    if lost := image_warnings(saved):
        return _form_page(request, 200, saved["resource"], saved="staff_saved", lost=lost)
    moved = saved["resource"]["timezone"] != resource["timezone"]
    done = "staff_zone_changed" if moved else "staff_saved"
    return redirect(f"{staff_path(request, resource)}?done={done}")


def confirm_delete(request: ConsoleRequest) -> HttpResponse:
    """Show what stops with a resource; redirect to the list if it is gone."""
    try:
        resource = find_resource(request)
        effect = request.call("delete_resource", id=resource["id"], dryRun=True)
    except NotFoundError:
        return _deleted(request)
    return request.page(
        "staff_delete",
        resource=resource,
        path=staff_path(request, resource),
        upcoming=effect["futureBookings"],
        bookings=upcoming_bookings(request, resourceId=resource["id"]),
        booking_path=booking_path(request),
        alone=[each for each in _services_of(request, resource) if len(each["resourceIds"]) == 1],
    )


def delete(request: ConsoleRequest) -> HttpResponse:
    """Delete a resource. The confirmation has shown its bookings, so they do not prevent it."""
    with suppress(NotFoundError):
        request.call("delete_resource", id=request.http.path["staff"], force=True)
    return _deleted(request)


def find_resource(request: ConsoleRequest) -> Resource:
    """Return the resource of a page.

    Raises:
        NotFoundError: the workspace has no resource with the id in the path.
    """
    resource: Resource = request.call("get_resource", id=request.http.path["staff"])["resource"]
    return resource


def staff_path(request: ConsoleRequest, resource: Resource) -> str:
    """Return the path of a resource's pages."""
    return f"{_list_path(request)}/{resource['id']}"


def services_of(request: ConsoleRequest, resource: Resource) -> list[dict[str, Any]]:
    """Return the services of a resource, each with what it lacks."""
    return with_lacks(request, _services_of(request, resource))


def _services_of(request: ConsoleRequest, resource: Resource) -> list[dict[str, Any]]:
    listed = request.call("list_services", size=MAX_CHOICES)["services"]
    return [each for each in listed if each["id"] in resource["serviceIds"]]


def _deleted(request: ConsoleRequest) -> HttpResponse:
    request.require_deleted(request.http.path["staff"])
    return redirect(f"{_list_path(request)}?done=staff_deleted")


def _list_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/staff"


def _arguments(request: ConsoleRequest, resource: Resource | None = None) -> dict[str, Any]:
    """Return the fields of the form as the operations take them.

    Raises:
        ValidationError: the capacity is not a number.
    """
    capacity = typed_values.number("capacity", request.form_value("capacity"))
    values: dict[str, Any] = {
        "name": request.form_value("name"),
        "type": request.form_value("type") or TYPES[0],
        "description": request.form_value("description").strip() or None,
        "capacity": 1 if capacity is None else capacity,
    }
    zone = request.form_value("timezone").strip()
    if zone or resource:
        values["timezone"] = zone
    chosen = request.form.get("serviceIds", [])
    if resource is None or set(chosen) != set(resource["serviceIds"]):
        values["serviceIds"] = chosen
    if photo := request.form_value("photo").strip():
        values["photo"] = {"url": photo}
    elif request.form_value("removePhoto"):
        values["photo"] = None
    if resource:
        values["status"] = "active" if request.form_value("active") else "inactive"
    return values


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    if isinstance(error, NotFoundError):  # of a service that the form refers to
        return Problem(request.translate("choice_gone"))
    return problem_at_fields(request, error)


def _form_page(  # noqa: PLR0913  the states of one page
    request: ConsoleRequest,
    status: int,
    resource: Resource | None,
    problem: Problem | None = None,
    *,
    saved: str = "",
    lost: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    """Show the form of a resource, or of a new one. ``saved`` names what has just succeeded."""
    typed = _typed(request) if request.form and not saved else _shown(request, resource)
    services = request.call("list_services", size=MAX_CHOICES)["services"]
    listed = {each["id"] for each in services}
    return request.page(
        "staff_member",
        status,
        problem=problem,
        resource=resource,
        heading=resource["name"] if resource else request.translate("new_staff"),
        path=staff_path(request, resource) if resource else None,
        tab="details",
        typed=typed,
        services=services,
        unlisted=[each for each in typed["serviceIds"] if each not in listed],
        type_options=[(each, request.translate(f"type_{each}")) for each in TYPES],
        zones=ZONES,
        lost=lost or [],
        **({"done": request.translate(f"done_{saved}")} if saved else {}),
    )


def _typed(request: ConsoleRequest) -> dict[str, Any]:
    """Return what was typed in a refused form."""
    names = ("name", "type", "description", "capacity", "timezone", "photo")
    return {
        **{name: request.form_value(name) for name in names},
        **{name: bool(request.form_value(name)) for name in ("active", "removePhoto")},
        "serviceIds": request.form.get("serviceIds", []),
    }


def _shown(request: ConsoleRequest, resource: Resource | None) -> dict[str, Any]:
    """Return a resource's values as a person would type them, or those of a new one."""
    if resource is None:
        chosen = request.query_value("service")
        resource = {
            "name": "",
            "type": TYPES[0],
            "description": "",
            "capacity": 1,
            "timezone": request.current_membership.workspace.timezone,
            "status": "active",
            "serviceIds": [chosen] if chosen else [],
        }
    return {
        **{name: resource[name] for name in ("name", "type", "timezone", "serviceIds")},
        "description": resource["description"] or "",
        "capacity": str(resource["capacity"]),
        "active": resource["status"] == "active",
        "photo": "",
        "removePhoto": False,
    }
