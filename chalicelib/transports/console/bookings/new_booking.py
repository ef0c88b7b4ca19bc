"""The page that creates a booking at the desk, for a client who may have only a name."""

from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.times import ANYONE, FreeTimes
from chalicelib.transports.console.choices import SERVICES, STAFF, is_search
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

# Actions of the form besides showing the free times: to book, and to look for a client.
BOOK, FIND = "book", "find"
MAX_CLIENTS = 8  # Maximum clients of one search that are offered.
TYPED = ("service", "staff", "date", "start", "time", "exact", "outside", "hold", "client", "q")
CONTACTS = ("name", "phone", "email", "notes")


def new(request: ConsoleRequest) -> HttpResponse:
    """Show the form. The query may choose service, staff, date, time and client."""
    form_values = {name: request.query_value(name).strip() for name in TYPED}
    form_values |= dict.fromkeys(CONTACTS, "")
    return _form(request, form_values)


def create(request: ConsoleRequest) -> HttpResponse:
    """Book, or show the form again with free times or with the clients that a search found."""
    form_values = {name: request.form_value(name).strip() for name in (*TYPED, *CONTACTS)}
    if request.form_value("day"):  # the button that leads to the next free day
        form_values |= {"date": request.form_value("day"), "start": "", "exact": ""}
    if request.form_value("action") != BOOK or is_search(request):
        return _form(request, form_values, finds=request.form_value("action") == FIND)
    try:
        response = request.call_once("create_booking", **_arguments(request, form_values))
    except AppError as error:
        alternatives = (
            booking_times.alternatives(error.details) if error.code == "slot_unavailable" else []
        )
        return _form(
            request, form_values, error.status, _problem(request, error), alternatives=alternatives
        )
    path = f"{request.current_membership.path}/bookings/{response['booking']['id']}"
    return redirect(f"{path}?done=booking_made")


def _arguments(request: ConsoleRequest, form_values: dict[str, str]) -> dict[str, Any]:
    service = form_values["service"] or _only_service(request)
    if not service:
        raise ValidationError.of(
            "serviceId", message="expected another value", key="wrong_booking_service"
        )
    time = booking_times.read_time(request, form_values["staff"])
    arguments: dict[str, Any] = {
        "serviceId": service,
        "startAt": time.start,
        "ignoreSchedule": time.outside,
    }
    if not form_values["hold"]:
        arguments["status"] = "confirmed"
    if time.resource_id:
        arguments["resourceId"] = time.resource_id
    if form_values["notes"]:
        arguments["notes"] = form_values["notes"]
    if form_values["client"]:
        return {**arguments, "clientId": form_values["client"]}
    contacts = {name: form_values[name] for name in ("phone", "email") if form_values[name]}
    return {**arguments, "client": {"name": form_values["name"], **contacts}}


def _only_service(request: ConsoleRequest) -> str:
    services = request.call("list_services", status="active", size=2)["services"]
    return str(services[0]["id"]) if len(services) == 1 else ""


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    if error.code == "slot_unavailable":
        is_taken = error.details.get("reason") in {"fully_booked", "day_full"}
        return Problem(request.translate("booking_taken_new" if is_taken else "booking_closed_new"))
    return booking_times.problem(request, error)


def _form(  # noqa: PLR0913  the parts of the form
    request: ConsoleRequest,
    form_values: dict[str, str],
    status: int = 200,
    problem: Problem | None = None,
    *,
    finds: bool = False,
    alternatives: list[dict[str, Any]] | None = None,
) -> HttpResponse:
    services = SERVICES.offer(request, "service", [form_values["service"]], status="active")
    if not form_values["service"] and len(services.records) == 1:
        form_values["service"] = services.records[0]["id"]
    today = clock.local_day(clock.now(), booking_times.zone(request))
    form_values["date"] = form_values["date"] or today.isoformat()
    service = next((one for one in services.records if one["id"] == form_values["service"]), None)
    times = FreeTimes([], [])
    if service is not None:
        try:
            times = booking_times.find(
                request, service["id"], day=form_values["date"], staff=form_values["staff"]
            )
        except AppError as error:
            problem = problem or booking_times.problem(request, error)
            status = max(status, error.status)
    if form_values["time"] and not form_values["start"]:
        _choose_time(form_values, times)
    return request.page(
        "booking_new",
        status,
        problem=problem,
        services=services,
        service=service,
        staff=STAFF.offer(request, "staff", _staff_id(form_values), status="active"),
        anyone=ANYONE,
        times=times,
        typed=form_values,
        near=alternatives or [],
        client=_client(request, form_values["client"]),
        **_search(request, form_values["q"] if finds else None),
        is_date=_is_date(form_values["date"]),
        **booking_times.texts_of(request),
    )


def _choose_time(form_values: dict[str, str], times: FreeTimes) -> None:
    later = [slot for slot in times.slots if slot["time"] >= form_values["time"]]
    if later:
        form_values["start"] = later[0]["value"]


def _client(request: ConsoleRequest, client_id: str) -> dict[str, Any] | None:
    if not client_id:
        return None
    try:
        client: dict[str, Any] = request.call("get_client", id=client_id)["client"]
    except NotFoundError:
        return None
    return client


def _staff_id(form_values: dict[str, str]) -> list[str]:
    return [] if form_values["staff"] in {"", ANYONE} else [form_values["staff"]]


def _search(request: ConsoleRequest, text: str | None) -> dict[str, Any]:
    if not text:
        return {"found": None if text is None else [], "found_total": 0}
    response = request.call("list_clients", search=text, size=MAX_CLIENTS)
    return {"found": response["clients"], "found_total": response["total"]}


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
