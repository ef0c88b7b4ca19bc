"""Free slots of a day and typed times, on the pages of bookings."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.core.errors import AppError, NotFoundError, ValidationError
from chalicelib.lib import zoned_times
from chalicelib.lib.zoned_times import LocalTimeError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.web import texts

ANYONE = "any"  # Value of a form's staff field: any member of the staff who is free.
MAX_SLOTS = 300  # Maximum slots of a day that are offered. A step of five minutes makes 288.
# The next free times: so many days with so many slots each. A button shows the others of a day.
NEXT_DAYS, NEXT_SLOTS = 4, 4
MAX_NAMES = 2  # of people who share a visit; the others are counted
SEARCHED_SLOTS = 2_000  # of a week, which is a slot each five minutes


class FreeTimes(NamedTuple):
    """Free slots of a day, the resources of the service, and the reason for an empty day."""

    slots: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    reason: str = ""
    next_day: str = ""  # local date of the next free slot
    day: str = ""  # local date of the slots, if there are those of several days
    hidden: int = 0  # number of further slots of the day


def find(  # noqa: PLR0913  what a search is narrowed by
    request: ConsoleRequest,
    service: str,
    *,
    day: str,
    staff: str,
    moving: str | None = None,
    and_then: Sequence[str] = (),
    is_visit: bool = False,
) -> FreeTimes:
    """Return the slots of a service on a local date in the workspace's zone.

    ``staff`` is a resource, or ``ANYONE``. ``moving`` is a booking that is to be moved. A slot has
    ``value``, which a form sends, and ``names`` of the free resources. An invalid date raises
    ValidationError. ``and_then`` are the services that follow in a visit, and ``is_visit`` says
    that a visit is searched for, in which others may do what ``staff`` does not.
    """
    arguments = {"serviceId": service, "from": day, "to": day, "limit": MAX_SLOTS}
    if moving is not None:
        arguments["bookingId"] = moving
    if and_then:
        arguments["andThen"] = list(and_then)
    if is_visit and staff not in {"", ANYONE}:
        arguments["resourceId"] = staff
    try:
        response = request.call("get_available_slots", timezone=zone(request), **arguments)
    except NotFoundError:
        return FreeTimes([], [], "service_deleted")
    slots = [
        free_slot
        for free_slot in response["slots"]
        if is_visit or staff in {"", ANYONE} or staff in free_slot["resourceIds"]
    ]
    upcoming = response["nextAvailable"]
    return FreeTimes(
        [slot(free_slot, response["resources"], staff) for free_slot in slots],
        response["resources"],
        "" if slots else response["reason"] or "fully_booked",
        upcoming["startLocal"][:10] if upcoming else "",
    )


def find_next(
    request: ConsoleRequest,
    service: str,
    *,
    staff: str,
    chosen: str = "",
    and_then: Sequence[str] = (),
) -> list[FreeTimes]:
    """Return the next days with free slots, each with its first ones and the ``chosen`` one.

    The next week is searched, or a week from the next free time on. ``and_then`` is that of
    ``find``.
    """
    arguments: dict[str, Any] = {"serviceId": service, "limit": SEARCHED_SLOTS}
    if staff not in {"", ANYONE}:
        arguments["resourceId"] = staff
    if and_then:
        arguments["andThen"] = list(and_then)
    try:
        response = request.call("get_available_slots", timezone=zone(request), **arguments)
        if not response["slots"] and (upcoming := response["nextAvailable"]):
            first = {"from": upcoming["startAt"]}
            response = request.call(
                "get_available_slots", timezone=zone(request), **arguments, **first
            )
    except NotFoundError:
        return [FreeTimes([], [], "service_deleted")]
    resources = response["resources"]
    if not response["slots"]:
        return [FreeTimes([], resources, response["reason"] or "fully_booked")]
    by_day = groupby(response["slots"], lambda free_slot: free_slot["startLocal"][:10])
    return [
        _first_of_day(day, [slot(each, resources, staff) for each in slots], resources, chosen)
        for day, slots in by_day
    ][:NEXT_DAYS]


def _first_of_day(
    day: str, slots: list[dict[str, Any]], resources: list[dict[str, Any]], chosen: str
) -> FreeTimes:
    shown = [
        each for number, each in enumerate(slots) if number < NEXT_SLOTS or each["value"] == chosen
    ]
    return FreeTimes(shown, resources, day=day, hidden=len(slots) - len(shown))


def slot(
    free_slot: Mapping[str, Any], resources: list[dict[str, Any]], staff: str
) -> dict[str, Any]:
    """Return a slot with the value that a form sends, and the names of its free resources.

    ``first`` is the resource that the value names, with its price and length if these depend on it.
    """
    ids = [staff] if staff in free_slot["resourceIds"] else free_slot["resourceIds"]
    by_id = {resource["id"]: resource for resource in resources}
    is_shared = False
    if "parts" in free_slot:
        # Who does each service is decided when it is booked. A chosen person does what is theirs.
        ids, resource_id = _first_of_parts(free_slot), "" if staff == ANYONE else staff
        is_shared = not free_slot["resourceIds"]
    else:
        resource_id = ids[0]
    names = [by_id[one]["name"] for one in ids if one in by_id]
    if is_shared:  # Nobody can do all of it, so the first one alone would mislead.
        names = [", ".join(names[:MAX_NAMES]), *names[MAX_NAMES:]]
    return {
        **free_slot,
        "value": f"{free_slot['startAt']} {resource_id}".rstrip(),
        "time": free_slot["startLocal"][11:16],
        "names": names,
        "first": by_id.get(ids[0], {"durationMin": None, "price": None}),
    }


def _first_of_parts(free_slot: Mapping[str, Any]) -> list[str]:
    # Those who can do the whole visit, or everybody who can do a part of it.
    parts = [one for part in free_slot["parts"] for one in part["resourceIds"]]
    return list(dict.fromkeys(free_slot["resourceIds"] or parts))


def alternatives(details: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the slots near a time that is no longer free, from the details of the failure."""
    return [
        slot(free_slot, details["resources"], "") for free_slot in details.get("alternatives", ())
    ]


class ChosenTime(NamedTuple):
    """The time that a form chooses."""

    start: str
    # Without one, the free resource with the fewest bookings of the day is taken.
    resource_id: str | None
    outside: bool


def read_time(request: ConsoleRequest, staff: str) -> ChosenTime:
    """Return the time that a form chooses, or raise ValidationError."""
    resource = None if staff in {"", ANYONE} else staff
    # A slot nearby is offered after the typed time was refused, and replaces it.
    alternative, _, near_resource = request.form_value("near").partition(" ")
    if alternative:
        # A time of a visit names nobody: a chosen person still does what is theirs.
        return ChosenTime(alternative, near_resource or resource, outside=False)
    exact_time = request.form_value("exact").strip()
    outside = bool(request.form_value("outside"))
    if exact_time:
        # Without a day, a typed time is one of today.
        day = request.form_value("date").strip() or str(clock.local_day(clock.now(), zone(request)))
        return ChosenTime(
            _moment(day, local_time=exact_time, timezone=zone(request)),
            resource,
            outside,
        )
    if outside:
        raise ValidationError.of(
            "exact", message="expected another value", key="wrong_booking_exact"
        )
    start, _, resource_id = request.form_value("start").partition(" ")
    if not start:
        raise ValidationError.of(
            "start", message="expected another value", key="wrong_booking_start"
        )
    return ChosenTime(start, resource_id or resource, outside=False)


def _moment(day: str, *, local_time: str, timezone: str) -> str:
    try:
        local = datetime.fromisoformat(f"{day}T{local_time}").replace(tzinfo=None)
        return iso(zoned_times.exact_moment(local, timezone))
    except LocalTimeError:
        raise ValidationError.of(
            "exact", message="expected another value", key="wrong_booking_time"
        ) from None
    except (ValueError, OverflowError):
        raise ValidationError.of(
            "exact", message="expected another value", key="wrong_booking_exact"
        ) from None


# The field of these pages and its text, by the field of an operation.
FIELDS = {
    "date": ("date", "booking_wrong_date"),
    "from": ("date", "booking_wrong_date"),
    "serviceId": ("service", "wrong_booking_service"),
    "andThen": ("service", "wrong_booking_visit"),
    "startAt": ("start", "booking_passed"),
    "client.name": ("name", "booking_wrong_name"),
    "client.phone": ("phone", "booking_wrong_phone"),
    "client.email": ("email", "wrong_email"),
}


def problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return the translated messages of a failure next to the fields of these pages."""
    form_problem = request.problem(error)
    fields: dict[str, str] = {}
    for name, message in form_problem.fields.items():
        field, key = FIELDS.get(name, (name, message))
        has_text = texts.has(request.language, key)
        fields.setdefault(field, request.translate(key) if has_text else message)
    return form_problem._replace(fields=fields)


def zone(request: ConsoleRequest) -> str:
    """Return the workspace's time zone, in which all times of these pages are."""
    return request.current_membership.workspace.timezone


def texts_of(request: ConsoleRequest) -> dict[str, Callable[..., str]]:
    """Return the functions that write times on these pages, in the workspace's zone."""
    timezone, language = zone(request), request.language

    def local(text: str) -> datetime:
        return texts.local(datetime.fromisoformat(text), timezone)

    return {
        "till": lambda text: f"{local(text):%H:%M}".replace("00:00", "24:00"),
        "hour": lambda text: f"{local(text):%H:%M}",
        "local_date": lambda text: local(text).date().isoformat(),
        "long_day": lambda day: texts.weekday_and_day(language, _to_date(day)),
        "short_day": lambda day: texts.weekday_and_day(language, _to_date(day), short=True),
    }


def _to_date(day: str | date) -> date:
    return date.fromisoformat(day) if isinstance(day, str) else day
