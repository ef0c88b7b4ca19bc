"""The page of the dates on which a service is offered, with the places that are sold."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.choices import STAFF
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect
from chalicelib.transports.web import texts

PAGE_SIZE = 50
WEEKS = (1, 2, 4, 8, 12, 16, 20)  # that the form offers
HAS_BOOKINGS = "start_has_bookings"
_TYPED = ("resourceId", "date", "time", "weeks")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the dates to come, with a form to add some and a button to remove each."""
    return _page(request)


def save(request: ConsoleRequest) -> HttpResponse:
    """Add dates, or remove one. One with bookings is removed after a confirmation."""
    try:
        done = _remove(request) if request.form_value("remove") else _add(request)
    except AppError as error:
        if error.code == HAS_BOOKINGS:
            # The page asks whether to cancel them.
            return _page(request, error.status, asked=error.details["bookings"])
        texts_by_field = {"startAt": "wrong_date_time", "resourceId": "wrong_date_staff"}
        problem = problem_at_fields(request, error, texts_by_field)
        if "reason" in error.details:
            problem = problem._replace(
                summary=request.translate("date_refused_" + error.details["reason"])
            )
        return _page(request, error.status, problem=problem)
    return redirect(f"{request.path}?{urlencode(done)}")


def _add(request: ConsoleRequest) -> dict[str, Any]:
    typed = {name: request.form_value(name).strip() for name in _TYPED}
    added = request.call(
        "add_starts",
        serviceId=request.http.path["service"],
        startAt=f"{typed['date']}T{typed['time']}",
        weeks=int(typed["weeks"]) if typed["weeks"].isdecimal() else 1,
        **({"resourceId": typed["resourceId"]} if typed["resourceId"] else {}),
    )
    refused = len(added["refused"])
    return {"done": "dates_added"} | ({"refused": refused} if refused else {})


def _remove(request: ConsoleRequest) -> dict[str, Any]:
    resource_id, _, start = request.form_value("remove").partition(" ")
    try:
        removed = request.call_once(
            "remove_starts",
            serviceId=request.http.path["service"],
            resourceId=resource_id,
            startAt=start,
            cancelBookings=bool(request.form_value("cancel")),
        )
    except NotFoundError:  # a second click
        return {"done": "date_removed"}
    # With more bookings than one call cancels, or if one could not be cancelled, the rest is said.
    left = removed["total"]
    return {"done": "date_removed"} | ({"left": left} if left else {})


def _page(
    request: ConsoleRequest,
    status: int = 200,
    *,
    problem: Problem | None = None,
    asked: int = 0,
) -> HttpResponse:
    service = request.call("get_service", id=request.http.path["service"])["service"]
    page = max(1, int(number)) if (number := request.query_value("page")).isdecimal() else 1
    listed = request.call("list_starts", serviceId=service["id"], page=page, size=PAGE_SIZE)
    names = STAFF.names(request)
    zone = request.current_membership.workspace.timezone
    return request.page(
        "service_dates",
        status,
        problem=problem,
        service=service,
        path=request.path.rpartition("/")[0],
        dates=[{**each, "text": _text(request, each)} for each in listed["starts"]],
        total=listed["total"],
        page=page,
        has_more=page * PAGE_SIZE < listed["total"],
        staff=[(staff_id, names.get(staff_id, staff_id)) for staff_id in service["resourceIds"]],
        weeks=WEEKS,
        typed={name: request.form_value(name) for name in _TYPED},
        today=str(clock.local_day(clock.now(), zone)),
        asked=asked,
        removed=request.form_value("remove"),
        refused=_count(request, "refused"),
        left=_count(request, "left"),
    )


def _count(request: ConsoleRequest, name: str) -> int:
    value = request.query_value(name)
    return int(value) if value.isdecimal() and len(value) < len("10000") else 0


def _text(request: ConsoleRequest, each: dict[str, Any]) -> str:
    start = datetime.fromisoformat(each["startLocal"])
    weekday = request.translate(f"day_{each['weekday']}")
    return f"{weekday}, {texts.local_moment(request.language, start)}"
