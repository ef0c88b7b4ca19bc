"""The bakery's services, their staff, and the bookings, from ``school.toml``."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
CATEGORIES: list[str] = _DATA["categories"]
"""The categories of services."""
HOLIDAYS: str = _DATA["holidays"]
"""The reason for the time off from January 1 to 3."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service. ``image`` is a file in ``images``. ``rules`` are further settings of its slots."""

    name: str
    category: str
    minutes: int
    price: int
    image: str
    description: str
    tags: list[str]
    rules: dict[str, int]


@dataclass(frozen=True, slots=True)
class Teacher:
    """A member of staff who provides services. ``hours`` are rules of availability."""

    name: str
    image: str
    description: str
    capacity: int
    services: list[str]
    hours: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking: the client, the service, the number of its next free slots, and the outcome."""

    client: str
    phone: str
    service: int
    slot: int
    notes: str | None = None
    status: str = "confirmed"


SERVICES = [Service(**each) for each in _DATA["services"]]
TEACHERS = [Teacher(**each) for each in _DATA["teachers"]]
BOOKINGS = [Booking(**each) for each in _DATA["bookings"]]
