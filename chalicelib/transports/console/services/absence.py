"""The page on which a member of the staff is reported absent: a preview, and then what was done."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ValidationError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.payments import payments_of
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse

REASSIGN, MOVE, CANCEL, LEAVE = "reassign", "move", "cancel", "leave"
# What the page offers for all bookings at once. The first is chosen for those where it is possible.
FOR_ALL = (REASSIGN, CANCEL, LEAVE)
# Codes of outcomes that have a text of their own. Others show the message of the operation.
EXPLAINED = ("version_conflict", "booking_not_affected", "slot_unavailable")
# Begin the names of the fields of one booking.
DO, VERSION = "do-", "version-"
Resource = dict[str, Any]
Read = Callable[[str], str]  # Returns a value of the query or of the form.


def show(request: ConsoleRequest) -> HttpResponse:
    """Preview the absence. The query has its dates; by default, it is the rest of today."""
    return _preview(request, _find(request), request.query_value)


def arrange(request: ConsoleRequest) -> HttpResponse:
    """Carry out what was chosen, and show what happened to each booking."""
    resource = _find(request)
    try:
        arranged = request.call_once(
            "arrange_absence",
            **_period(resource, request.form_value),
            bookings=list(_choices(request)),
            timeOff=bool(request.form_value("timeOff")),
            reason=request.form_value("reason").strip() or None,
        )
    except AppError as error:
        problem = _problem(request, error)
        return _preview(request, resource, request.form_value, error.status, problem)
    payments = payments_of(
        request,
        [
            each["id"]
            for each in arranged["bookings"]
            if each["outcome"]["code"] == "cancelled" and each["booking"]["price"]
        ],
    )
    return _page(
        request,
        "absence_done",
        resource,
        arranged,
        payments=payments,
        explained=EXPLAINED,
        again=_again(request),
    )


def _find(request: ConsoleRequest) -> Resource:
    resource: Resource = request.call("get_resource", id=request.http.path["staff"])["resource"]
    return resource


def _dates(resource: Resource, read: Read) -> tuple[str, str]:
    today = str(clock.local_day(clock.now(), resource["timezone"]))
    first = read("from").strip() or today
    return first, read("to").strip() or first


def _period(resource: Resource, read: Read) -> dict[str, Any]:
    first, last = _dates(resource, read)
    today = str(clock.local_day(clock.now(), resource["timezone"]))
    # What has passed of today was work.
    start = {} if first == today else {"startAt": first}
    return {"resourceId": resource["id"], **start, "endAt": last}


def _choices(request: ConsoleRequest) -> Iterator[dict[str, Any]]:
    for name in request.form:
        if not name.startswith(DO):
            continue
        booking_id = name.removeprefix(DO)
        version = request.form_value(VERSION + booking_id)
        action, *place = request.form_value(name).split(" ")
        if action not in {REASSIGN, MOVE, CANCEL, LEAVE} or not version.isdecimal():
            raise ValidationError.of(
                "action", message="expected another value", key="wrong_absence_action"
            )
        choice: dict[str, Any] = {"id": booking_id, "action": action, "ifVersion": int(version)}
        if place:
            choice["resourceId"] = place.pop()
        if place:
            choice["startAt"] = place.pop()
        yield choice


def _preview(
    request: ConsoleRequest,
    resource: Resource,
    read: Read,
    status: int = 200,
    problem: Problem | None = None,
) -> HttpResponse:
    first, last = _dates(resource, read)
    arranged = None
    try:
        arranged = request.call("arrange_absence", **_period(resource, read), dryRun=True)
    except AppError as error:
        if problem is None:
            problem, status = _problem(request, error), error.status
    for_all = read("all") if read("all") in FOR_ALL else REASSIGN
    bookings = arranged["bookings"] if arranged else []
    for each in bookings:
        each["options"] = _options(request, each)
        values = [value for value, _ in each["options"]]
        wanted = request.form_value(DO + each["id"]) if request.http.method == "POST" else ""
        each["chosen"] = wanted if wanted in values else _default(for_all, values)
    today = clock.local_day(clock.now(), resource["timezone"])
    return _page(
        request,
        "absence",
        resource,
        arranged,
        status=status,
        problem=problem,
        payments=payments_of(
            request, [each["id"] for each in bookings if each["booking"]["price"]]
        ),
        for_all=for_all,
        choices_for_all=FOR_ALL,
        typed={"from": first, "to": last, "reason": read("reason")},
        wants_time_off=request.http.method != "POST" or bool(read("timeOff")),
        today=str(today),
        tomorrow=str(today + timedelta(days=1)),
        is_posted=request.http.method == "POST",
    )


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    dates = {"startAt": "from", "endAt": "to"}
    problem = problem_at_fields(request, error, dict.fromkeys(dates, "wrong_absence_days"))
    fields = {dates.get(name, name): text for name, text in problem.fields.items()}
    return problem._replace(fields=fields)


def _default(for_all: str, values: list[str]) -> str:
    # Nobody is moved to another time, and nothing is cancelled, unless somebody chooses it.
    possible = (value for value in values if value.split(" ")[0] == for_all)
    return next(possible, LEAVE)


def _options(request: ConsoleRequest, proposed: dict[str, Any]) -> list[tuple[str, str]]:
    options = [
        (f"{REASSIGN} {each['id']}", request.translate("absence_reassign", name=each["name"][:60]))
        for each in proposed["sameTime"]
    ]
    if other := proposed["otherTime"]:
        value = f"{MOVE} {other['startAt']} {other['resourceId']}"
        when = _moment(request, other["startAt"])
        text = request.translate("absence_move", time=when, name=other["resourceName"][:60])
        options.append((value, text))
    # A service of a visit cannot be cancelled alone.
    cancel = "absence_cancel_visit" if "visitId" in proposed["booking"] else "absence_cancel"
    options.append((CANCEL, request.translate(cancel)))
    return [*options, (LEAVE, request.translate("absence_leave"))]


def _moment(request: ConsoleRequest, moment: str) -> str:
    texts = booking_times.texts_of(request)
    return f"{texts['short_day'](texts['local_date'](moment))}, {texts['hour'](moment)}"


def _end(request: ConsoleRequest, arranged: dict[str, Any]) -> str:
    # A day ends at 24:00, and a period of one day names its day once.
    texts = booking_times.texts_of(request)
    end, hour = arranged["endAt"], texts["till"](arranged["endAt"])
    day = date.fromisoformat(texts["local_date"](end)) - timedelta(days=hour == "24:00")
    first = texts["local_date"](arranged["startAt"])
    return hour if str(day) == first else f"{texts['short_day'](str(day))}, {hour}"


def _again(request: ConsoleRequest) -> str:
    first, last = request.form_value("from"), request.form_value("to")
    return f"?from={first}&to={last}" if _is_date(first) and _is_date(last) else "?"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _page(  # noqa: PLR0913  the parts of a page
    request: ConsoleRequest,
    template: str,
    resource: Resource,
    arranged: dict[str, Any] | None,
    *,
    status: int = 200,
    problem: Problem | None = None,
    **values: object,
) -> HttpResponse:
    path = f"{request.current_membership.path}/staff/{resource['id']}"
    return request.page(
        template,
        status,
        problem=problem,
        resource=resource,
        heading=resource["name"],
        path=path,
        action=f"{path}/absence",
        tab="absence",
        arranged=arranged,
        booking_path=f"{request.current_membership.path}/bookings/",
        end=_end(request, arranged) if arranged else "",
        at=lambda moment: _moment(request, moment),
        **values,
        **booking_times.texts_of(request),
    )
