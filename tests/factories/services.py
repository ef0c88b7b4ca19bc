"""Services, resources and bookings, for the tests of several domains."""

from datetime import datetime, timedelta
from typing import Any

from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.engine.unit import run_unit
from tests.conftest import Api


def make_service(api: Api, name: str = "Haircut", duration: int = 60, **fields: Any) -> Any:
    """Create a service, and return it."""
    body = {"name": name, "durationMin": duration, **fields}
    return api.post("/api/services/create", body)["service"]


def make_resource(api: Api, name: str = "Anna", **fields: Any) -> Any:
    """Create a resource, and return it."""
    return api.post("/api/resources/create", {"name": name, **fields})["resource"]


def new_category(api: Api, name: str = "Hair", kind: str = "service") -> str:
    """Create a category, and return its id."""
    id_: str = api.post("/api/categories/create", {"name": name, "kind": kind})["category"]["id"]
    return id_


def open_up(api: Api, resource_id: str, **rule: Any) -> None:
    """Set the opening hours of a resource: Monday to Friday from 9 to 18, or as the rule says."""
    hours = {"weekdays": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "18:00"}
    body = {"resourceId": resource_id, "rules": [hours | rule]}
    api.post("/api/resources/set-availability", body)


def store_booking(
    workspace_id: str,
    resource_id: str,
    starts_at: datetime,
    *,
    minutes: int = 60,
    service_id: str = "s",
    status: str = "confirmed",
) -> str:
    """Store a booking as if it had been made long ago, and return its id."""
    row = BOOKINGS.new(
        workspace_id,
        status=status,
        service_id=service_id,
        service_name="Haircut",
        resource_id=resource_id,
        resource_name="Anna",
        starts_at=starts_at,
        ends_at=starts_at + timedelta(minutes=minutes),
        duration_min=minutes,
        timezone="Europe/Moscow",
        price=0,
        client_id="c",
        source="api",
    )
    run_unit(workspace_id, None, lambda unit: unit.create(row))
    return row.id
