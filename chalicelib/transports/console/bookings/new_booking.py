"""A new booking at the desk: service, staff, time, and a client who may have a name alone."""

from datetime import date
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.times import ANYONE, FreeTimes
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

BOOK, FIND = "book", "find"
"""Actions of the form besides showing the free times: to book, and to look for a client."""
MAX_SERVICES = 50
MAX_CLIENTS = 8
"""Clients of one search that are offered."""
TYPED = ("service", "staff", "date", "start", "exact", "outside", "hold", "client", "q")
CONTACTS = ("name", "phone", "email", "notes")


def new(request: ConsoleRequest) -> HttpResponse:
    """Show the form. The query may choose service, staff, date, time and client."""
    typed = {name: request.query_value(name).strip() for name in TYPED}
    typed |= dict.fromkeys(CONTACTS, "")
    return _form(request, typed, wanted_time=request.query_value("time"))


def create(request: ConsoleRequest) -> HttpResponse:
    """Book, or show the form again with free times or with the clients that a search found."""
    typed = {name: request.form_value(name).strip() for name in (*TYPED, *CONTACTS)}
    if request.form_value("day"):  # the button that leads to the next free day
        typed |= {"date": request.form_value("day"), "start": "", "exact": ""}
    if request.form_value("action") != BOOK:
        return _form(request, typed, finds=request.form_value("action") == FIND)
    try:
        made = request.call_once("create_booking", **_arguments(request, typed))
    except AppError as error:
        near = booking_times.alternatives(error.details) if error.code == "slot_unavailable" else []
        return _form(request, typed, error.status, _problem(request, error), near=near)
    path = f"{request.current_membership.path}/bookings/{made['booking']['id']}"
    return redirect(f"{path}?done=booking_made")


def _arguments(request: ConsoleRequest, typed: dict[str, str]) -> dict[str, Any]:
    """Return the arguments of the new booking.

    Raises:
        ValidationError: no service or no time is chosen.
    """
    service = typed["service"] or _only_service(request)
    if not service:
        raise ValidationError.of("serviceId", "booking_wrong_service")
    time = booking_times.chosen(request, typed["staff"])
    arguments: dict[str, Any] = {
        "serviceId": service,
        "startAt": time.start,
        "ignoreSchedule": time.outside,
    }
    if not typed["hold"]:
        arguments["status"] = "confirmed"
    if time.resource_id:
        arguments["resourceId"] = time.resource_id
    if typed["notes"]:
        arguments["notes"] = typed["notes"]
    if typed["client"]:
        return {**arguments, "clientId": typed["client"]}
    contacts = {name: typed[name] for name in ("phone", "email") if typed[name]}
    return {**arguments, "client": {"name": typed["name"], **contacts}}


def _only_service(request: ConsoleRequest) -> str:
    """Return the service of a workspace that has only one, or ""."""
    services = request.call("list_services", status="active", size=2)["services"]
    return str(services[0]["id"]) if len(services) == 1 else ""


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the messages of a failure beside the fields of this page."""
    if error.code == "slot_unavailable":
        is_taken = error.details.get("reason") in {"fully_booked", "day_full"}
        return Problem(request.translate("booking_taken_new" if is_taken else "booking_closed_new"))
    return booking_times.problem(request, error)


def _form(  # noqa: PLR0913  the parts of the form
    request: ConsoleRequest,
    typed: dict[str, str],
    status: int = 200,
    problem: Problem | None = None,
    *,
    wanted_time: str = "",
    finds: bool = False,
    near: list[dict[str, Any]] | None = None,
) -> HttpResponse:
    services = request.call("list_services", status="active", size=MAX_SERVICES)["services"]
    if not typed["service"] and len(services) == 1:
        typed["service"] = services[0]["id"]
    today = clock.local_day(clock.now(), booking_times.zone(request))
    typed["date"] = typed["date"] or today.isoformat()
    service = next((each for each in services if each["id"] == typed["service"]), None)
    times = FreeTimes([], [])
    if service is not None:
        try:
            times = booking_times.find(request, service["id"], typed["date"], typed["staff"])
        except AppError as error:
            problem, status = (
                problem or booking_times.problem(request, error),
                max(status, error.status),
            )
    if wanted_time and not typed["start"]:
        _choose_time(typed, times, wanted_time)
    return request.page(
        "booking_new",
        status,
        problem=problem,
        services=services,
        service=service,
        staff=request.call("list_resources", status="active", size=100)["resources"],
        anyone=ANYONE,
        times=times,
        typed=typed,
        near=near or [],
        client=_client(request, typed["client"]),
        found=_search(request, typed["q"]) if finds else None,
        is_date=_is_date(typed["date"]),
        **booking_times.texts_of(request),
    )


def _choose_time(typed: dict[str, str], times: FreeTimes, wanted: str) -> None:
    """Choose the first slot from a clock time on, as a link of the calendar asks for it."""
    later = [slot for slot in times.slots if slot["time"] >= wanted]
    if later:
        typed["start"] = later[0]["value"]


def _client(request: ConsoleRequest, client_id: str) -> dict[str, Any] | None:
    """Return the chosen client, or None if there is none or it was deleted meanwhile."""
    if not client_id:
        return None
    try:
        found: dict[str, Any] = request.call("get_client", id=client_id)["client"]
    except NotFoundError:
        return None
    return found


def _search(request: ConsoleRequest, text: str) -> list[dict[str, Any]]:
    """Return the clients whose name, phone or e-mail address contains a text."""
    if not text:
        return []
    found: list[dict[str, Any]] = request.call("list_clients", search=text, size=MAX_CLIENTS)[
        "clients"
    ]
    return found


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
