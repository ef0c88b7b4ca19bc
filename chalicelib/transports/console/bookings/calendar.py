"""The bookings of a workspace, as a calendar of the staff and as a list with filters."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.payments import payments_of
from chalicelib.transports.console.choices import SERVICES, STAFF
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.list_page import ListPage
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.web import texts

EVERYONE = "all"  # Value of ``staff`` for all members of the staff, if the caller is a member.
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
ROWS = 20  # Bookings of a page of the list.
COLOURS = 6  # Colours of staff members. The sheet "calendar" has a class for each.
# Maximum bookings next to each other. If there are more, the last place is a link to the list.
MAX_LANES = 4
# Maximum staff members whose free time has a link for each hour, because of the page's size.
MAX_SPLIT = 4


def index(request: ConsoleRequest) -> HttpResponse:
    """Show a day, a week or the list of bookings."""
    view = request.query_value("view")
    return LIST.index(request) if view == "list" else _calendar(request, view)


def _calendar(request: ConsoleRequest, view: str) -> HttpResponse:
    # An invalid date or staff member is reported and ignored.
    view = view if view in VIEWS else "day"
    view_options = {"view": view, "date": request.query_value("date").strip()}
    # A member of the staff sees the own calendar first.
    own_id = request.current_membership.row.resource_id or ""
    sees_all = not request.current_membership.own_resource_id
    has_choice = "staff" in request.http.query and sees_all
    view_options["staff"] = request.query_value("staff") if has_choice else own_id
    staff = "" if view_options["staff"] == EVERYONE else view_options["staff"]
    filters = {"date": view_options["date"], "resourceId": staff}
    problem, status = None, 200
    try:
        page = request.page_number if view == "day" else 1
        calendar = request.call("get_staff_calendar", view=view, page=page, **_drop_empty(filters))
    except AppError as error:
        problem, status = booking_times.problem(request, error), error.status
        view_options |= {"date": "", "staff": EVERYONE if own_id and sees_all else ""}
        calendar = request.call("get_staff_calendar", view=view)
    if own_id and all(member["id"] != own_id for member in calendar["staff"]):
        # The member's record among the staff is deleted, so everyone is shown.
        own_id = ""
        if not has_choice and staff:
            view_options["staff"] = staff = ""
            calendar = request.call(
                "get_staff_calendar", view=view, **_drop_empty({"date": view_options["date"]})
            )
    days, axis = calendar["days"], _axis(calendar)
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
        axis=axis,
        columns=(columns := _columns(calendar, axis, view)),
        staff_shown=len(columns),
        page=request.page_number,
        chosen={**view_options, "staff": staff if problem is None else ""},
        everyone=EVERYONE if own_id and sees_all else "",
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


class _Axis(NamedTuple):
    timezone: str
    first: int
    last: int

    def quarter(self, moment: datetime, day: date) -> int:
        local = texts.local(moment, self.timezone)
        quarters = (local.date() - day).days * 96 + local.hour * 4 + local.minute // 15
        return min(max(quarters, self.first * 4), self.last * 4)

    def span(self, row: Mapping[str, Any], day: date) -> tuple[int, int]:
        start, end = (datetime.fromisoformat(row[name]) for name in ("startAt", "endAt"))
        first = min(self.quarter(start, day), self.last * 4 - 1)
        return first, max(self.quarter(end - timedelta(seconds=1), day) + 1, first + 1)

    def style(self, first: int, *, last: int) -> str:
        # The CSP forbids style attributes.
        hour, quarter = divmod(first - self.first * 4, 4)
        hours, quarters = divmod(last - first, 4)
        return f"t{hour} m{quarter} h{hours} q{quarters}"


def _axis(calendar: Mapping[str, Any]) -> _Axis:
    # Without any times, the axis is 9 to 18.
    full_axis, hours = _Axis(calendar["timezone"], 0, 24), set[int]()
    opened = False
    for day in calendar["days"]:
        for staff in day["staff"]:
            opened = opened or bool(staff["opened"])
            for row in staff["opened"] + staff["free"] + staff["dates"] + staff["bookings"]:
                first, last = full_axis.span(row, date.fromisoformat(day["date"]))
                hours |= {first // 4, -(-last // 4)}
    hours |= set() if opened else {9, 18}
    return _Axis(calendar["timezone"], min(hours), max(hours))


def _columns(calendar: Mapping[str, Any], axis: _Axis, view: str) -> list[dict[str, Any]]:
    colours = {staff["id"]: f"c{n % COLOURS}" for n, staff in enumerate(calendar["staff"])}
    columns = []
    for day in calendar["days"]:
        groups = [[staff] for staff in day["staff"]] if view == "day" else [day["staff"]]
        for group in groups:
            split = view == "day" and len(groups) <= MAX_SPLIT
            rows = [row for staff in group for row in _rows(staff, split=split)]
            bookings = sum(row["kind"] == "booking" for row in rows)
            columns.append(
                {
                    "day": day["date"],
                    "staff": group[0] if len(group) == 1 else None,
                    "rows": _place(rows, axis, date.fromisoformat(day["date"]), colours),
                    "more": day["total"] - bookings if view == "week" else 0,
                    "now": _now(calendar, axis, day["date"]),
                }
            )
    return columns


def _now(calendar: Mapping[str, Any], axis: _Axis, day: str) -> str:
    if day != calendar["today"]:
        return ""
    quarter = axis.quarter(clock.now(), date.fromisoformat(day))
    return axis.style(quarter, last=quarter) if axis.first * 4 < quarter < axis.last * 4 else ""


def _place(
    rows: list[dict[str, Any]], axis: _Axis, day: date, colours: Mapping[str, str]
) -> list[dict[str, Any]]:
    # Bookings that overlap share the width of the column. So does the free time of a group next to
    # its bookings.
    rows = sorted(rows, key=lambda row: (str(row["startAt"]), row["kind"] == "free"))
    clusters: list[list[dict[str, Any]]] = []
    lanes: list[int] = []
    for row in rows:
        first, last = axis.span(row, day)
        row |= {"first": first, "last": last, "lane": 0, "place": axis.style(first, last=last)}
        row |= {"width": "", "colour": ""}
        if row["kind"] != "booking" and row.get("places", row["capacity"]) == row["capacity"]:
            continue
        if first >= max(lanes, default=0):
            clusters.append([])
            lanes = []
        row["lane"] = next((n for n, end in enumerate(lanes) if end <= first), len(lanes))
        lanes[row["lane"] : row["lane"] + 1] = [last]
        clusters[-1].append(row)
        row["colour"] = colours.get(row["resourceId"], "c0")
        for booking in clusters[-1]:
            booking["width"] = f"w{min(len(lanes), MAX_LANES)}"
    hidden = [more for cluster in clusters for more in _hide(cluster, axis)]
    return [row for row in rows if row["lane"] < MAX_LANES] + hidden


def _hide(cluster: list[dict[str, Any]], axis: _Axis) -> Iterator[dict[str, Any]]:
    # The rows without a lane are replaced by a row with their number. The free time of a group
    # keeps the last lane.
    if all(row["lane"] < MAX_LANES for row in cluster):
        return
    free = [row for row in cluster if row["kind"] == "free" and row["lane"] >= MAX_LANES]
    lane = MAX_LANES - 1 - bool(free)
    covered = [row for row in cluster if row["kind"] == "booking" and row["lane"] >= lane]
    first, last = min(row["first"] for row in covered), max(row["last"] for row in covered)
    place = {"lane": lane, "width": f"w{MAX_LANES}", "place": axis.style(first, last=last)}
    yield {**covered[0], **place, "kind": "more", "colour": "c0", "n": len(covered)}
    for row in covered:
        row["lane"] = MAX_LANES
    for row in free:
        row["lane"] = MAX_LANES - 1


def _rows(staff: Mapping[str, Any], *, split: bool) -> list[dict[str, Any]]:
    kinds = (
        ("open", "opened"),
        ("time_off", "timeOff"),
        ("busy", "busy"),
        ("date", "dates"),
        ("free", "free"),
        ("booking", "bookings"),
    )
    rows = [
        {
            "kind": kind,
            "resourceId": staff["resourceId"],
            "capacity": staff["capacity"],
            **row,
            "is_conflict": row.get("id") in staff["conflicts"],
        }
        for kind, name in kinds
        for row in staff[name]
    ]
    if not split:
        return rows
    return [part for row in rows for part in (_hours(row) if row["kind"] == "free" else [row])]


def _hours(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    # Free time is split at full hours, so that a tap chooses the hour.
    start, end = (datetime.fromisoformat(row[name]) for name in ("startAt", "endAt"))
    parts = []
    while start < end:
        until = min(end, start.replace(minute=0, second=0) + timedelta(hours=1))
        parts.append({**row, "startAt": clock.iso(start), "endAt": clock.iso(until)})
        start = until
    return parts


def _list_values(request: ConsoleRequest, response: dict[str, Any]) -> dict[str, Any]:
    return {
        "payments": payments_of(request, [it["id"] for it in response["bookings"] if it["price"]]),
        "services": SERVICES.offer(request, "service", [request.query_value("service")]),
        "staff": STAFF.offer(request, "staff", [request.query_value("staff")]),
        "statuses": STATUSES,
        **booking_times.texts_of(request),
    }


# Bookings, latest start first.
LIST = ListPage("bookings_list", "list_bookings", ROWS, FILTERS, _list_values)


def _drop_empty(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
