"""Functions that the pages of services, staff and hours share."""

import re
from datetime import datetime
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.routes import ROUTES, WORKSPACE
from chalicelib.transports.web import texts

MAX_CHOICES = 100
"""Maximum number of services, staff, sites or bots that a form offers."""
MAX_BOOKINGS = 5
_BOOKING = re.compile(re.escape(f"{WORKSPACE}/bookings/") + r"{\w+}")
_NOT_IMPORTED = re.compile(r"The image (.+) was not imported: (.+)\.", re.DOTALL)


def with_lacks(request: ConsoleRequest, services: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return services with their ``lack``: why they cannot be booked, or None."""
    ids = [each["id"] for each in services]
    found = request.call("list_unbookable_services", ids=ids)["services"] if ids else []
    lacks = {each["serviceId"]: each for each in found}
    return [{**each, "lack": lacks.get(each["id"])} for each in services]


def upcoming_bookings(request: ConsoleRequest, **of: str) -> list[dict[str, Any]]:
    """Return the next confirmed bookings of a service or of a resource."""
    found: list[dict[str, Any]] = request.call(
        "list_bookings",
        **of,
        **{"from": iso(clock.now())},
        status="confirmed",
        sort="startAtAsc",
        size=MAX_BOOKINGS,
    )["bookings"]
    return found


def slot_text(request: ConsoleRequest, slot: dict[str, Any]) -> str:
    """Return the local start of a slot, with its weekday."""
    start = datetime.fromisoformat(slot["startLocal"])
    weekday = request.translate(f"day_{slot['weekday']}")
    return f"{weekday}, {texts.local_moment(request.language, start)}"


def booking_path(request: ConsoleRequest) -> str:
    """Return the path before the id of a booking's page, or "" if the console has no such page."""
    if any(map(_BOOKING.fullmatch, ROUTES)):
        return f"{request.current_membership.path}/bookings/"
    return ""


def image_warnings(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the URL of each image that could not be taken, and the reason."""
    matches = [_NOT_IMPORTED.fullmatch(each) for each in answer.get("warnings", ())]
    return [(match[1], match[2]) for match in matches if match]
