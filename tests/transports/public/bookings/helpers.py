"""Requests of visitors to the booking endpoints."""

from typing import Any

from tests.conftest import Api
from tests.factories.salon import Salon

BOOK = "/api/public/bookings"
CANCEL = "/api/public/bookings/cancel"
NOON = "2027-03-03T12:00:00Z"
visitor = Api(None)


def booking_input(
    salon: Salon, start: str = NOON, client: str = "Ada", **fields: Any
) -> dict[str, Any]:
    return salon.order(start, client, **fields)


def book(salon: Salon, start: str = NOON, client: str = "Ada", **fields: Any) -> Any:
    return visitor.post(BOOK, booking_input(salon, start, client, **fields))
