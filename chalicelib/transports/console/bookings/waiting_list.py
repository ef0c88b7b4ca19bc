"""The page of the waiting list: who waits for a free time, by day, and to whom one is offered."""

from contextlib import suppress
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.choices import SERVICES, STAFF, is_search
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

_CONTACTS = ("name", "phone", "email")
_FIELDS = ("serviceId", "day", *_CONTACTS)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show who waits, with a form that adds somebody."""
    return _page(request, 200)


def change(request: ConsoleRequest) -> HttpResponse:
    """Add or remove one who waits."""
    path = f"{request.current_membership.path}/bookings/waiting"
    if removed := request.form_value("delete"):
        with suppress(NotFoundError):  # a second click
            request.call("delete_waiting_entry", id=removed)
        return redirect(f"{path}?done=waiting_removed")
    if is_search(request):
        return _page(request, 200)
    typed = {name: request.form_value(name).strip() for name in _CONTACTS}
    try:
        request.call_once(
            "create_waiting_entry",
            serviceId=request.form_value("serviceId"),
            day=request.form_value("day").strip(),
            client={name: text for name, text in typed.items() if text},
        )
    except AppError as error:
        return _page(request, error.status, _problem(request, error))
    return redirect(f"{path}?done=waiting_added")


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    problem = request.problem(error)
    # The controls of the contacts have their last names. Without contacts, the phone is asked for.
    fields = {name.rpartition(".")[2]: text for name, text in problem.fields.items()}
    if "client" in fields:
        fields["phone"] = fields.pop("client")
    return problem._replace(fields=fields)


def _page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    waiting: list[dict[str, Any]] = request.call("get_waiting_list")["waiting"]
    # Each name is read once.
    services = {
        each: SERVICES.name_of(request, each) or ""
        for each in {one["serviceId"] for one in waiting}
    }
    staff = {
        each: STAFF.name_of(request, each) or ""
        for each in {one["resourceId"] for one in waiting} - {None}
    }
    by_day: dict[str, list[dict[str, Any]]] = {}
    for each in waiting:
        by_day.setdefault(each["day"], []).append(each)
    typed = {name: request.form_value(name) for name in _FIELDS}
    zone = request.current_membership.workspace.timezone
    return request.page(
        "bookings_waiting",
        status,
        problem=problem,
        by_day=by_day,
        service_names=services,
        staff_names=staff,
        services=SERVICES.offer(request, "serviceId", [typed["serviceId"]], status="active"),
        typed=typed,
        today=str(clock.local_day(clock.now(), zone)),
        **booking_times.texts_of(request),
    )
