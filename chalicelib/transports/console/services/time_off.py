"""Pages of time off, for one resource and for the whole workspace."""

from contextlib import suppress
from datetime import date, datetime
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.console.services.staff import Resource, find_resource, staff_path
from chalicelib.transports.console.services.upcoming_bookings import booking_path
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the time off of a resource, with a form to add some."""
    return _page(request, 200, find_resource(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Add or delete time off of a resource."""
    return _save(request, find_resource(request))


def show_closed_days(request: ConsoleRequest) -> HttpResponse:
    """Show the time off of the whole workspace, with a form to add some."""
    return _page(request, 200, None)


def save_closed_days(request: ConsoleRequest) -> HttpResponse:
    """Add or delete time off of the whole workspace."""
    return _save(request, None)


def _save(request: ConsoleRequest, resource: Resource | None) -> HttpResponse:
    path = _path(request, resource)
    if deleted := request.form_value("delete"):
        with suppress(NotFoundError):  # a second click
            request.call("delete_time_off", id=deleted)
        request.require_deleted(deleted)
        return redirect(f"{path}?done=time_off_deleted")
    first, last = request.form_value("startAt").strip(), request.form_value("endAt").strip()
    times = request.form_value("startTime").strip(), request.form_value("endTime").strip()
    last = last or first
    if any(times):
        first = f"{first}T{times[0] or '00:00'}"
        last = f"{last}T{times[1]}" if times[1] else last
    try:
        request.call_once(
            "create_time_off",
            startAt=first,
            endAt=last,
            reason=request.form_value("reason").strip() or None,
            **({"resourceId": resource["id"]} if resource else {}),
        )
    except AppError as error:
        return _page(request, error.status, resource, problem_at_fields(request, error))
    return redirect(f"{path}?done=time_off_added")


def _path(request: ConsoleRequest, resource: Resource | None) -> str:
    if resource is None:
        return f"{request.current_membership.path}/closed-days"
    return f"{staff_path(request, resource)}/time-off"


def _page(
    request: ConsoleRequest,
    status: int,
    resource: Resource | None,
    problem: Problem | None = None,
) -> HttpResponse:
    zone = resource["timezone"] if resource else request.current_membership.workspace.timezone
    of = {"resourceId": resource["id"]} if resource else {}
    listed = request.call("list_time_off", **of, **{"from": iso(clock.now())})
    absences = listed["timeOff"]
    own_absences = [absence for absence in absences if absence["resourceId"] or not resource]
    if resource is None:
        own_absences = [absence for absence in absences if not absence["resourceId"]]
    misplaced = request.call("list_bookings_at_closed_times", **of)
    names = ("startAt", "endAt", "startTime", "endTime", "reason")
    return request.page(
        "time_off",
        status,
        problem=problem,
        resource=resource,
        heading=resource["name"] if resource else request.translate("closed_days"),
        path=staff_path(request, resource) if resource else None,
        action=_path(request, resource),
        tab="time_off",
        time_off=[{**absence, "text": _text(request, absence, zone)} for absence in own_absences],
        of_workspace=[
            {**absence, "text": _text(request, absence, zone)}
            for absence in absences
            if absence not in own_absences
        ]
        if resource
        else [],
        has_more=listed["total"] > len(absences),
        typed={name: request.form_value(name) for name in names},
        today=str(clock.local_day(clock.now(), zone)),
        zone_of_hours=zone,
        misplaced=misplaced,
        booking_path=booking_path(request),
    )


def _text(request: ConsoleRequest, time_off: dict[str, Any], zone: str) -> str:
    start, end = time_off["startAt"], time_off["endAt"]
    if time_off["allDay"]:
        first, last = (texts.day(request.language, date.fromisoformat(day)) for day in (start, end))
    else:
        first, last = (
            texts.moment(request.language, datetime.fromisoformat(moment), zone)
            for moment in (start, end)
        )
    return first if first == last else f"{first} \u2013 {last}"
