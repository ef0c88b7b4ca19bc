"""Pages of services: the list, the form of one service, and its deletion."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from chalicelib.core.errors import AppError, FieldError, NotFoundError, ValidationError
from chalicelib.core.settings import settings
from chalicelib.transports.console import typed_values
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.console.services.setup import (
    MAX_CHOICES,
    booking_path,
    image_arguments,
    image_warnings,
    problem_at_fields,
    slot_text,
    upcoming_bookings,
    with_lacks,
)
from chalicelib.transports.http import HttpResponse, redirect

PAGE_SIZE = 20
TIMES_SHOWN = 5
LENGTHS: Mapping[str, int | None] = {
    "durationMin": None,
    "slotStepMin": None,
    "bufferBeforeMin": 0,
    "bufferAfterMin": 0,
    "minNoticeMin": 0,
}
"""Fields with a length of time, and the value of an empty field."""
NUMBERS: Mapping[str, int] = {"horizonDays": 60, "unverifiedPerHour": 60}
TEXTS = ("name", "description", "categoryId", "siteId", "agentId")
SWITCHES = ("requirePayment", "visitorMails")
RARE = (
    *("slotStepMin", "bufferBeforeMin", "bufferAfterMin", "minNoticeMin", "horizonDays"),
    *("unverifiedPerHour", "reminders", "tags", "siteId", "agentId", "images"),
)
"""Fields in the part of the form that is closed at first. An error in one of them opens it."""
Service = dict[str, Any]


def index(request: ConsoleRequest) -> HttpResponse:
    """List the services."""
    query, status = request.query_value("q").strip(), request.query_value("status")
    status = status if status in {"active", "inactive"} else "all"
    page = request.page_number
    listed = request.call(
        "list_services", page=page, size=PAGE_SIZE, status=status, **({"q": query} if query else {})
    )
    total = listed["pagination"]["total"]
    filtered = bool(query) or status != "all"
    return request.page(
        "services",
        services=with_lacks(request, listed["services"]),
        categories=_category_names(request),
        total=total,
        page=page,
        size=PAGE_SIZE,
        query=query,
        chosen_status=status,
        filtered=filtered,
        searchable=filtered or total > SEARCH_THRESHOLD,
        length=lambda count: typed_values.length(request.language, count),
        base_url=settings().public_url,
    )


def new_service_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form for a new service."""
    return _form_page(request, 200, None)


def create(request: ConsoleRequest) -> HttpResponse:
    """Create a service and show what it needs next."""
    try:
        made = request.call_once("create_service", **_arguments(request))
    except AppError as error:
        return _form_page(request, error.status, None, _problem(request, error))
    return _saved(request, made, "service_created")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show a service: whether it can be booked, and its form."""
    return _form_page(request, 200, _find(request))


def save(request: ConsoleRequest) -> HttpResponse:
    """Change a service. The form sends all of its fields."""
    service = _find(request)
    try:
        arguments = _arguments(request)
        if arguments["images"] == [{"fileId": each["fileId"]} for each in service["images"]]:
            del arguments["images"]
        saved = request.call("update_service", id=service["id"], **arguments)
    except AppError as error:
        return _form_page(request, error.status, service, _problem(request, error))
    return _saved(request, saved, "service_saved")


def confirm_delete(request: ConsoleRequest) -> HttpResponse:
    """Show what stops with a service; redirect to the list if it is gone."""
    try:
        service = _find(request)
        effect = request.call("delete_service", id=service["id"], dryRun=True)
    except NotFoundError:
        return _deleted(request)
    return request.page(
        "service_delete",
        service=service,
        path=_path(request, service),
        upcoming=effect["futureBookings"],
        bookings=upcoming_bookings(request, serviceId=service["id"]),
        booking_path=booking_path(request),
    )


def delete(request: ConsoleRequest) -> HttpResponse:
    """Delete a service. A second click may have deleted it already."""
    with suppress(NotFoundError):
        request.call("delete_service", id=request.http.path["service"])
    return _deleted(request)


def _deleted(request: ConsoleRequest) -> HttpResponse:
    request.require_deleted(request.http.path["service"])
    return redirect(f"{_list_path(request)}?done=service_deleted")


def _list_path(request: ConsoleRequest) -> str:
    return f"{request.current_membership.path}/services"


def _path(request: ConsoleRequest, service: Service) -> str:
    return f"{_list_path(request)}/{service['id']}"


def _find(request: ConsoleRequest) -> Service:
    service: Service = request.call("get_service", id=request.http.path["service"])["service"]
    return service


def _saved(request: ConsoleRequest, answer: dict[str, Any], done: str) -> HttpResponse:
    """Redirect to a saved service, or show it with the images that could not be taken."""
    service: Service = answer["service"]
    if lost := image_warnings(answer):
        return _form_page(request, 200, service, saved=done, lost=lost)
    return redirect(f"{_path(request, service)}?done={done}")


def _arguments(request: ConsoleRequest) -> dict[str, Any]:
    """Return the fields of the form as the operations take them.

    Raises:
        ValidationError: some fields cannot be read; it names each of them.
    """
    values: dict[str, Any] = {name: request.form_value(name).strip() or None for name in TEXTS}
    values |= {name: bool(request.form_value(name)) for name in SWITCHES}
    values |= {
        "name": request.form_value("name"),
        "status": "active" if request.form_value("active") else "inactive",
        "resourceIds": request.form.get("resourceIds", []),
        "tags": [tag for each in request.form_value("tags").split(",") if (tag := each.strip())],
        "images": image_arguments(request),
    }
    wrong: list[FieldError] = []
    for name, default in {**LENGTHS, **NUMBERS, "price": 0, "reminders": None}.items():
        try:
            found = _READERS.get(name, typed_values.minutes)(name, request.form_value(name))
        except ValidationError as error:
            wrong += error.errors
        else:
            values[name] = default if found is None else found
    if values.get("durationMin", 0) is None:
        wrong.append(FieldError("durationMin", "expected a length of time"))
    if wrong:
        raise ValidationError("Some fields cannot be read.", errors=wrong)
    return values


_READERS = {
    "price": typed_values.kopecks,
    "reminders": typed_values.list_of_minutes,
    **dict.fromkeys(NUMBERS, typed_values.number),
}
"""How each field is read, besides lengths of time."""


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    if isinstance(error, NotFoundError):  # of a record that the form refers to
        return Problem(request.translate("choice_gone"))
    return problem_at_fields(request, error)


def _form_page(  # noqa: PLR0913  the states of one page
    request: ConsoleRequest,
    status: int,
    service: Service | None,
    problem: Problem | None = None,
    *,
    saved: str = "",
    lost: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    """Show the form of a service, or of a new one. ``saved`` names what has just succeeded."""
    typed = _typed(request) if request.form and not saved else _shown(request, service)
    staff = request.call("list_resources", size=MAX_CHOICES)["resources"]
    shown: dict[str, Any] = {}
    if request.current_membership.may("update_service"):
        shown = {
            "sites": request.call("list_sites", size=MAX_CHOICES)["projects"],
            "bots": request.call("list_agents")["agents"],
        }
    if service:
        (checked,) = with_lacks(request, [service])
        shown |= {"service": checked, "path": _path(request, service)}
        if not checked["lack"]:
            shown["times"] = request.call(
                "get_available_slots", serviceId=service["id"], limit=TIMES_SHOWN
            )
    fields = problem.fields if problem else {}
    return request.page(
        "service",
        status,
        problem=problem,
        typed=typed,
        staff=staff,
        unlisted=[each for each in typed["resourceIds"] if each not in {s["id"] for s in staff}],
        categories=[{"id": each, "name": text} for each, text in _category_names(request).items()],
        lost=lost or [],
        opened=any(name in fields for name in RARE),
        **({"done": request.translate(f"done_{saved}")} if saved else {}),
        length=lambda count: typed_values.length(request.language, count),
        slot_text=lambda slot: slot_text(request, slot),
        **{"service": None, "path": None, "times": None, **shown},
    )


def _typed(request: ConsoleRequest) -> dict[str, Any]:
    """Return what was typed in a refused form."""
    names = (*TEXTS, *LENGTHS, *NUMBERS, "price", "reminders", "tags", "newImages")
    return {
        **{name: request.form_value(name) for name in names},
        **{name: bool(request.form_value(name)) for name in (*SWITCHES, "active")},
        "resourceIds": request.form.get("resourceIds", []),
        "keptImages": request.form.get("keptImages", []),
    }


def _shown(request: ConsoleRequest, service: Service | None) -> dict[str, Any]:
    """Return a service's values as a person would type them, or those of a new service."""
    if service is None:
        chosen = request.query_value("staff")
        service = {
            **dict.fromkeys((*TEXTS, *LENGTHS)),
            **NUMBERS,
            **dict.fromkeys(SWITCHES, False),
            "visitorMails": True,
            "status": "active",
            "price": None,
            "reminders": [1440, 120],
            "tags": [],
            "images": [],
            "resourceIds": [chosen] if chosen else [],
        }

    def length(count: int | None) -> str:
        return typed_values.length(request.language, count)

    return {
        **{name: service[name] or "" for name in TEXTS},
        **{name: length(service[name]) for name in LENGTHS},
        **{name: str(service[name]) for name in NUMBERS},
        **{name: service[name] for name in SWITCHES},
        "active": service["status"] == "active",
        "price": typed_values.rubles(service["price"]),
        "reminders": ", ".join(map(length, service["reminders"])),
        "tags": ", ".join(service["tags"]),
        "resourceIds": service["resourceIds"],
        "keptImages": [each["fileId"] for each in service["images"]],
        "newImages": "",
    }


def _category_names(request: ConsoleRequest) -> dict[str, str]:
    """Return the names of the categories of services by id, each after its parents' names."""
    found = {
        each["id"]: each for each in request.call("list_categories", kind="service")["categories"]
    }

    def name_of(category_id: str) -> str:
        category = found[category_id]
        parent = category["parentId"]
        before = f"{name_of(parent)} / " if parent in found else ""
        return f"{before}{category['name']}"

    return {each: name_of(each) for each in found}
