"""Pages of the staff, rooms and equipment that services are booked with."""

from collections.abc import Sequence
from typing import Any

from chalicelib.lib import zoned_times
from chalicelib.transports.console import record_states
from chalicelib.transports.console.choices import SERVICES
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import (
    Field,
    Photo,
    Ticks,
    number,
    status_switch,
)
from chalicelib.transports.console.image_warnings import image_warnings
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.console.services.services import add_states
from chalicelib.transports.console.services.upcoming_bookings import booking_path, upcoming_bookings
from chalicelib.transports.http import HttpResponse, redirect

PAGE_SIZE = 20
FILTERS = {"q": "q", "status": "status"}
TYPES = ("master", "room", "equipment")


def _type_names(request: ConsoleRequest) -> dict[str, str]:
    return {type_: request.translate(f"type_{type_}") for type_ in TYPES}


FORM = Form(
    Field("name", "staff_name", empty=""),
    Field("type", "staff_type", empty=TYPES[0], new=TYPES[0], names=_type_names),
    Ticks(
        "serviceIds",
        "staff_services",
        names=SERVICES.names,
    ),
    Field("description"),
    status_switch("staff_active", later=True),
    Field("timezone", "staff_zone", empty="", rare=True),
    number("capacity", label="capacity", empty=1, new=1, rare=True),
    Photo("photo", "photo_url", rare=True),
    creates="create_resource",
    changes="update_resource",
)
Resource = dict[str, Any]


def _deleted(request: ConsoleRequest) -> dict[str, Any]:
    # Bookings do not prevent a deletion, because they are shown.
    resource = find_resource(request)
    effect = request.call("delete_resource", id=resource["id"], dryRun=True)
    return {
        "resource": resource,
        "path": staff_path(request, resource),
        "upcoming": effect["futureBookings"],
        "bookings": upcoming_bookings(request, resourceId=resource["id"]),
        "booking_path": booking_path(request),
        "alone": [s for s in _services_of(request, resource) if len(s["resourceIds"]) == 1],
    }


def find_resource(request: ConsoleRequest) -> Resource:
    """Return the resource of a page with its state, or raise NotFoundError."""
    resource: Resource = request.call("get_resource", id=request.http.path["staff"])["resource"]
    return add_staff_states(request, [resource])[0]


def add_staff_states(request: ConsoleRequest, resources: list[Resource]) -> list[Resource]:
    """Return members of the staff with their states."""
    ids = [resource["id"] for resource in resources]
    hours = request.call("list_unbookable_services", ids=[], resourceIds=ids) if ids else {}
    return record_states.add_states(
        resources,
        lambda resource: record_states.compute_staff_state(
            resource, hours["resourcesWithoutHours"]
        ),
    )


def staff_path(request: ConsoleRequest, resource: Resource) -> str:
    """Return the path of a resource's pages."""
    return f"{request.current_membership.path}/staff/{resource['id']}"


def services_of(request: ConsoleRequest, resource: Resource) -> list[dict[str, Any]]:
    """Return the services of a resource, each with its state."""
    return add_states(request, _services_of(request, resource))


def _services_of(request: ConsoleRequest, resource: Resource) -> list[dict[str, Any]]:
    ids = resource["serviceIds"]
    records = SERVICES.offer(request, "", ids).records
    return [service for service in records if service["id"] in ids]


def _show_new_resource(request: ConsoleRequest, answer: dict[str, Any]) -> HttpResponse:
    resource: Resource = answer["resource"]
    if lost := image_warnings(answer):
        return _form_page(request, resource, State(notice="staff_created"), lost)
    return redirect(f"{staff_path(request, resource)}/hours?done=staff_created")


def _saved(request: ConsoleRequest, old_resource: Resource, answer: dict[str, Any]) -> HttpResponse:
    resource = answer.get("resource", old_resource)
    if lost := image_warnings(answer):
        return _form_page(request, resource, State(notice="staff_saved"), lost)
    is_moved = resource["timezone"] != old_resource["timezone"]
    notice = "staff_zone_changed" if is_moved else "staff_saved"
    return redirect(f"{staff_path(request, resource)}?done={notice}")


def _form_page(
    request: ConsoleRequest,
    resource: Resource | None,
    state: State = STORED,
    lost: Sequence[tuple[str, str]] = (),
) -> HttpResponse:
    service_id = request.query_value("service")
    workspace = request.current_membership.workspace
    new = {"serviceIds": [service_id] if service_id else [], "timezone": workspace.timezone}
    form = FORM.page_values(request, resource, state, new)
    chosen = form["typed"]["serviceIds"]
    services = SERVICES.offer(request, "serviceIds", chosen)
    return request.page(
        "staff_member",
        resource=resource,
        heading=resource["name"] if resource else request.translate("new_staff"),
        path=staff_path(request, resource) if resource else None,
        tab="details",
        services=services,
        unlisted=[selected_id for selected_id in chosen if selected_id not in services.names],
        type_options=_type_names(request).items(),
        zones=zoned_times.zones_of_countries(workspace.country),
        lost=lost,
        **form,
    )


new_member_page, create = FORM.creation(_form_page, _show_new_resource)
show, save = FORM.editing(find_resource, _form_page, _saved)
confirm_delete, delete = deletion(
    "staff_delete", _deleted, "delete_resource", notice="staff_deleted", id="staff", force=True
)
index = ListPage(
    *("staff", "list_resources", PAGE_SIZE, FILTERS),
    lambda request, response: {"resources": add_staff_states(request, response["resources"])},
).index
