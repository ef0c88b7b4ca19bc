"""Bookings of a service or a resource, on the pages that change or delete it."""

import re
from typing import Any

from chalicelib.core import clock
from chalicelib.core.clock import iso
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.routes import ROUTES, WORKSPACE

MAX_BOOKINGS = 5
_BOOKING = re.compile(re.escape(f"{WORKSPACE}/bookings/") + r"{\w+}")


def upcoming_bookings(request: ConsoleRequest, **of: str) -> list[dict[str, Any]]:
    """Return the next confirmed bookings of a service or of a resource."""
    bookings: list[dict[str, Any]] = request.call(
        "list_bookings",
        **of,
        **{"from": iso(clock.now())},
        status="confirmed",
        sort="startAtAsc",
        size=MAX_BOOKINGS,
    )["bookings"]
    return bookings


def booking_path(request: ConsoleRequest) -> str:
    """Return the path before the id of a booking's page, or "" if the console has no such page."""
    if any(map(_BOOKING.fullmatch, ROUTES)):
        return f"{request.current_membership.path}/bookings/"
    return ""
