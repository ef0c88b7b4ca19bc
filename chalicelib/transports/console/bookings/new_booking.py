"""The page that creates a booking at the desk: the client first, then the service, then a time.

One form has all three. Its buttons show it again with more: the clients that a search found, the
free times of a service, or those of another day. So it works without script, and keeps what was
typed. Further services make the booking a visit (ADR 139).
"""

import re
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.domains.booking_page.rules.repeat_links import SEPARATOR
from chalicelib.domains.bookings.store.bookings import MAX_IN_VISIT
from chalicelib.transports.console.bookings import times as booking_times
from chalicelib.transports.console.bookings.times import ANYONE, FreeTimes
from chalicelib.transports.console.choices import SERVICES, STAFF, Offer, is_search
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.services.services import from_texts, sum_texts
from chalicelib.transports.http import HttpResponse, redirect

# Actions of the form besides showing it again: to book, and to look for a client.
BOOK, FIND = "book", "find"
MAX_CLIENTS = 6  # Maximum clients of one search that are offered, each with its bookings.
MAX_VISITS = 10  # Latest bookings of a client that are read.
MAX_KNOWN = 3  # Services that the client had last and that come first.
MAX_SERVICES = 10  # Maximum services with a button of their own, unless a search found more.
TYPED = (
    "service",
    "then",
    "staff",
    "date",
    "start",
    "time",
    "exact",
    "outside",
    "hold",
    "client",
    "q",
)
CONTACTS = ("name", "phone", "email", "notes")
_EMAIL = re.compile(r"(?<![^\s,;<>])[^\s,;<>@]{1,64}@[^\s,;<>@]{1,255}")
_PHONE = re.compile(r"(?<![\d().+-])[+(]?\d[\d\s().+-]{3,30}\d")  # at least five characters
Client = dict[str, Any]


class Visits(NamedTuple):
    """The bookings of a client that tell namesakes apart, and the services that the client had."""

    next_visit: dict[str, Any] | None
    last_visit: dict[str, Any] | None
    services: list[str]  # ids, the latest first


def new(request: ConsoleRequest) -> HttpResponse:
    """Show the form. The query may choose service, staff, date, time and client."""
    form_values = {name: request.query_value(name).strip() for name in TYPED}
    form_values |= dict.fromkeys(CONTACTS, "")
    _bound(request, form_values)
    return _form(request, form_values)


def create(request: ConsoleRequest) -> HttpResponse:
    """Book, or show the form again with what its button asks for."""
    form_values = {name: request.form_value(name).strip() for name in (*TYPED, *CONTACTS)}
    if request.form_value("day"):  # the button that leads to all times of a day
        form_values |= {"date": request.form_value("day"), "start": "", "exact": ""}
    if request.form_value("choose"):  # the button of a service
        form_values |= {"service": request.form_value("choose"), "start": ""}
    _change_visit(request, form_values)
    _bound(request, form_values)
    action = request.form_value("action")
    if action != BOOK or is_search(request):
        return _form(request, form_values, finds=action == FIND)
    # Who types a name and presses the last button has not seen the clients with this name.
    if _is_only_searched(form_values) and _search(request, form_values)[0]:
        problem = Problem(request.translate("booking_choose_client"))
        return _form(request, form_values, 400, problem, finds=True)
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


def _change_visit(request: ConsoleRequest, form_values: dict[str, str]) -> None:
    """Add a service to the visit or take one out, by the buttons of the form."""
    ids = [each for each in (form_values["service"], *_and_then(form_values)) if each]
    if added := request.form_value("add"):
        ids.append(added)
    elif (place := request.form_value("remove")).isdecimal() and len(place) == 1:
        del ids[int(place) : int(place) + 1]
    else:
        return
    # Another visit has other times. A typed time stays.
    form_values |= {"service": ids[0] if ids else "", "then": SEPARATOR.join(ids[1:]), "start": ""}


def _and_then(form_values: dict[str, str]) -> list[str]:
    ids = [service_id for service_id in form_values["then"].split(SEPARATOR) if service_id]
    return ids[:MAX_IN_VISIT]  # One too many is refused when it is booked.


def _is_only_searched(form_values: dict[str, str]) -> bool:
    return bool(form_values["q"]) and not any(
        form_values[name] for name in ("client", "name", "phone", "email")
    )


def _bound(request: ConsoleRequest, form_values: dict[str, str]) -> None:
    """Set what a member of the staff cannot choose: the own calendar, no client, no visit."""
    if own_id := request.current_membership.own_resource_id:
        form_values |= {"staff": own_id, "client": "", "q": "", "then": ""}


def _services(request: ConsoleRequest, chosen: Sequence[str], control: str = "service") -> Offer:
    if not request.current_membership.own_resource_id:
        return SERVICES.offer(request, control, chosen, status="active")
    # All are offered, so there is none to be found.
    return Offer("service", _own_services(request), 0, "")


def _own_services(request: ConsoleRequest) -> list[dict[str, Any]]:
    try:
        services = request.call("list_own_services")["services"]
    except NotFoundError:  # The member's record among the staff is deleted.
        return []
    # Price and length are those of the member.
    return [service | {"resourceIds": [], "resourceOverrides": []} for service in services]


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
    if and_then := _and_then(form_values):
        arguments["andThen"] = and_then
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
    if request.current_membership.own_resource_id:
        services = _own_services(request)
    else:
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
    client = _client(request, form_values["client"])
    found, found_total = None, 0
    if form_values["q"] and (finds or client is None):
        found, found_total = _search(request, form_values)
    if client is None and found and len(found) == 1 and not form_values["name"]:
        client, found = found[0], []  # Nobody else can be meant.
    shown = [*([client] if client else []), *(found or [])]
    visits = {each["id"]: _visits(request, each) for each in shown}
    known = visits[client["id"]].services[:MAX_KNOWN] if client else []
    services = _services(request, [form_values["service"], *_and_then(form_values), *known])
    if not form_values["service"] and len(services.records) == 1 and not services.query:
        form_values["service"] = services.records[0]["id"]
    visit, is_cut = _visit(services, form_values)
    service = visit[0] if visit else None
    days: list[FreeTimes] = []
    if service is not None:
        try:
            days = _times(request, service["id"], form_values)
        except AppError as error:
            problem = problem or booking_times.problem(request, error)
            status = max(status, error.status)
    if form_values["time"] and not form_values["start"] and days:
        _choose_time(form_values, days[0])
    return request.page(
        "booking_new",
        status,
        problem=problem,
        services=services,
        service=service,
        offered=_offered(services, service, known),
        known=known,
        visit=visit,
        is_cut=is_cut,
        more=_more(request, services, service, known, in_visit=len(visit)),
        sums=sum_texts(request, visit, form_values["staff"]),
        asks_hold=any(each["requirePayment"] for each in visit),
        staff=STAFF.offer(request, "staff", _staff_id(form_values), status="active"),
        anyone=ANYONE,
        days=days,
        typed=form_values,
        near=alternatives or [],
        client=client,
        found=found,
        found_total=found_total,
        visits=visits,
        is_date=_is_date(form_values["date"]),
        from_texts=partial(from_texts, request),
        **booking_times.texts_of(request),
    )


def _visit(services: Offer, form_values: dict[str, str]) -> tuple[list[dict[str, Any]], bool]:
    """Return the chosen services in order, and whether some of them are no longer offered."""
    by_id = {service["id"]: service for service in services.records}
    ids = [form_values["service"], *_and_then(form_values)]
    visit = [by_id[service_id] for service_id in ids if service_id in by_id]
    is_cut = len(visit) < len(ids) > 1
    if is_cut:
        form_values |= {
            "service": visit[0]["id"] if visit else "",
            "then": SEPARATOR.join(service["id"] for service in visit[1:]),
            "start": "",
        }
    return visit, is_cut


def _times(
    request: ConsoleRequest, service_id: str, form_values: dict[str, str]
) -> list[FreeTimes]:
    """Return the free times of the chosen day, or of the next days that have any."""
    and_then, staff = _and_then(form_values), form_values["staff"]
    if form_values["date"]:
        return [
            booking_times.find(
                request,
                service_id,
                day=form_values["date"],
                staff=staff,
                and_then=and_then,
                is_visit=bool(and_then),
            )
        ]
    chosen = form_values["start"]
    return booking_times.find_next(
        request, service_id, staff=staff, chosen=chosen, and_then=and_then
    )


def _more(
    request: ConsoleRequest,
    services: Offer,
    service: dict[str, Any] | None,
    known: Sequence[str],
    *,
    in_visit: int,
) -> Offer | None:
    """Return the services that can be added to the visit, or None if none can."""
    is_bound = bool(request.current_membership.own_resource_id)
    is_full = services.is_only or in_visit >= MAX_IN_VISIT
    if service is None or is_bound or is_full or services.query:
        return None
    if request.form_value("find-more").strip():
        return _services(request, [], "more")
    return services._replace(control="more", records=_offered(services, None, known))


def _offered(services: Offer, service: dict[str, Any] | None, known: Sequence[str]) -> list[Any]:
    """Return the services that have a button, those that the client had last first."""
    records = {record["id"]: record for record in services.records}
    first = [records[service_id] for service_id in known if service_id in records]
    if services.query:
        first = []
    elif service is not None and service not in first[:MAX_SERVICES]:
        first = [service, *first]
    rest = [record for record in services.records if record not in first]
    # A search, and a list that has no search, show all that they have.
    is_whole = services.query or not services.total
    return [*first, *rest] if is_whole else [*first, *rest][:MAX_SERVICES]


def _choose_time(form_values: dict[str, str], times: FreeTimes) -> None:
    later = [slot for slot in times.slots if slot["time"] >= form_values["time"]]
    if later:
        form_values["start"] = later[0]["value"]


def _client(request: ConsoleRequest, client_id: str) -> Client | None:
    if not client_id:
        return None
    try:
        client: Client = request.call("get_client", id=client_id)["client"]
    except NotFoundError:
        return None
    return client


def _staff_id(form_values: dict[str, str]) -> list[str]:
    return [] if form_values["staff"] in {"", ANYONE} else [form_values["staff"]]


def _search(request: ConsoleRequest, form_values: dict[str, str]) -> tuple[list[Client], int]:
    """Return the clients that the search finds, and their number.

    What matches nobody becomes the contacts of a new client.
    """
    response = request.call("list_clients", search=form_values["q"][:200], size=MAX_CLIENTS)
    if not response["clients"]:
        _become_contacts(form_values)
    return response["clients"], response["total"]


def _become_contacts(form_values: dict[str, str]) -> None:
    """Put the parts of the search into the empty fields of a new client: "Ada 8 914 700-12-14"."""
    text = form_values["q"]
    for name, pattern in (("email", _EMAIL), ("phone", _PHONE)):
        part = pattern.search(text)
        if part and not form_values[name]:
            form_values[name] = part[0].strip()
            text = f"{text[: part.start()]} {text[part.end() :]}"
    rest = " ".join(text.split()).strip(" ,;")
    if rest and form_values["name"]:
        form_values["q"] = rest  # Something else is typed there already.
        return
    form_values |= {"name": rest or form_values["name"], "q": ""}


def _visits(request: ConsoleRequest, client: Client) -> Visits:
    response = request.call(
        "list_bookings", clientId=client["id"], size=MAX_VISITS, sort="startAtDesc"
    )
    rows = [row for row in response["bookings"] if row["status"] not in {"cancelled", "no_show"}]
    now = clock.iso(clock.now())
    ahead = [row for row in rows if row["startAt"] > now]
    before = [row for row in rows if row["startAt"] <= now]
    # With more bookings ahead than were read, the next one is not among them.
    is_cut = len(response["bookings"]) == MAX_VISITS and not before
    return Visits(
        ahead[-1] if ahead and not is_cut else None,
        before[0] if before else None,
        list(dict.fromkeys(row["serviceId"] for row in rows)),
    )


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
