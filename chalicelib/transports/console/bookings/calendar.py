"""The bookings of a workspace, as a calendar of the staff and as a list with filters."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from chalicelib.core.errors import AppError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse

VIEWS = ("day", "week", "list")
STATUSES = ("pending_payment", "confirmed", "completed", "cancelled", "no_show")
FILTERS = {
    "status": "status",
    "service": "serviceId",
    "staff": "resourceId",
    "from": "from",
    "to": "to",
    "q": "q",
}
ROWS = 20
"""Bookings of a page of the list."""
MAX_SERVICES = 50
"""Maximum services that the filter offers."""


def index(request: ConsoleRequest) -> HttpResponse:
    """Show a day, a week or the list of bookings."""
    view = request.query_value("view")
    return LIST.index(request) if view == "list" else _calendar(request, view)


def _calendar(request: ConsoleRequest, view: str) -> HttpResponse:
    """Show a day or a week.

    An invalid date or staff member is reported and ignored.
    """
    view = view if view in VIEWS else "day"
    view_options = {"view": view, "date": request.query_value("date").strip()}
    view_options["staff"] = request.query_value("staff")
    filters = {"date": view_options["date"], "resourceId": view_options["staff"]}
    problem, status = None, 200
    try:
        calendar = request.call("get_staff_calendar", view=view, **_drop_empty(filters))
    except AppError as error:
        problem, status = booking_times.problem(request, error), error.status
        view_options |= {"date": "", "staff": ""}
        calendar = request.call("get_staff_calendar", view=view)
    days = [_shown_day(day) for day in calendar["days"]]
    first = date.fromisoformat(days[0]["date"])
    step = timedelta(days=len(days))
    links = {
        "previous": _link(request, view_options, first - step),
        "today": _link(request, view_options, None),
        "next": _link(request, view_options, first + step),
    }
    return request.page(
        "bookings_calendar",
        status,
        problem=problem,
        calendar=calendar,
        days=days,
        chosen=view_options,
        links=links,
        first=first,
        last=date.fromisoformat(days[-1]["date"]),
        is_current=days[0]["date"] <= calendar["today"] <= days[-1]["date"],
        as_date=date.fromisoformat,
        **booking_times.texts_of(request),
    )


def _link(request: ConsoleRequest, view_options: Mapping[str, str], day: date | None) -> str:
    parameters = {
        **view_options,
        "date": day.isoformat() if day else "",
        "view": view_options["view"],
    }
    return f"{request.current_membership.path}/bookings?{urlencode(_drop_empty(parameters))}"


def _shown_day(day: dict[str, Any]) -> dict[str, Any]:
    """Return a day whose staff members have one list of what the day holds, by time."""
    return {**day, "staff": [{**staff, "rows": _rows(staff)} for staff in day["staff"]]}


def _rows(staff: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = (("time_off", "timeOff"), ("booking", "bookings"), ("free", "free"))
    rows = [{"kind": kind, **staff_row} for kind, name in kinds for staff_row in staff[name]]
    return sorted(rows, key=lambda row: str(row["startAt"]))


def _list_values(request: ConsoleRequest, _: object) -> dict[str, Any]:
    return {
        "services": request.call("list_services", size=MAX_SERVICES)["services"],
        "staff": request.call("list_resources", size=100)["resources"],
        "statuses": STATUSES,
        **booking_times.texts_of(request),
    }


LIST = ListPage("bookings_list", "list_bookings", ROWS, FILTERS, _list_values)
"""Bookings, latest start first."""


def _drop_empty(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
