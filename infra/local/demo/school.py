"""The bakery's services, their staff, and the bookings, from ``school.toml``."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from infra.local.demo.texts import Language, read_toml


@dataclass(frozen=True, slots=True)
class Service:
    """A service with a file in ``images``.

    ``rules`` are further settings of its slots. ``dates`` are the weekday, the time and the number
    of weeks of a service that is offered on dates.
    """

    name: str
    category: str
    minutes: int
    price: int
    image: str
    description: str
    tags: list[str]
    rules: dict[str, int]
    dates: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Teacher:
    """A member of staff who provides services, with ``hours`` as rules of availability.

    ``own`` is a service that has another price and length with this member.
    """

    name: str
    image: str
    description: str
    capacity: int
    services: list[str]
    hours: list[dict[str, Any]]
    own: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking of one of the service's next free slots, with its outcome.

    ``then`` are the services that follow it in a visit.
    """

    client: str
    phone: str
    service: int
    slot: int
    notes: str | None = None
    status: str = "confirmed"
    then: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class School:
    """The services in one language."""

    categories: list[str]
    """The categories of services."""
    holidays: str
    """The reason for the time off from January 1 to 3."""
    guests: list[str]
    """Clients of the last weeks."""
    services: list[Service]
    teachers: list[Teacher]
    bookings: list[Booking]


@cache
def load(language: Language) -> School:
    """Return the services in a language."""
    data = read_toml("school.toml", language)
    return School(
        categories=data["categories"],
        holidays=data["holidays"],
        guests=data["guests"],
        services=[Service(**service) for service in data["services"]],
        teachers=[Teacher(**teacher) for teacher in data["teachers"]],
        bookings=[Booking(**booking) for booking in data["bookings"]],
    )
