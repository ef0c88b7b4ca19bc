"""A salon with a service, resources and hours, and its bookings and searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from tests.conftest import Answer, Api

ALL_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAILY = [{"weekdays": ALL_DAYS, "start": "09:00", "end": "18:00"}]
FRIDAYS = [{"weekday": "fri", "start": "10:00", "end": "13:00"}]
CREATE, STATUS = "/api/bookings/create", "/api/bookings/set-status"
SLOTS, LIST = "/api/bookings/slots", "/api/bookings/list"


@dataclass(frozen=True)
class Salon:
    """A service, and the resources that it is bound to."""

    api: Api
    service: str
    resources: list[str]

    @classmethod
    def opened(
        cls,
        api: Api,
        resources: Sequence[dict[str, Any]] = ({},),
        rules: Any = DAILY,
        **service: Any,
    ) -> "Salon":
        """Open a salon. The service takes an hour and costs 1,500 rubles by default."""
        ids = []
        for number, fields in enumerate(resources):
            body = {"name": f"Stylist {number}", **fields}
            ids.append(api.post("/api/resources/create", body)["resource"]["id"])
            cls.set_hours(api, ids[-1], rules)
        body = {"name": "Haircut", "durationMin": 60, "price": 150_000, "resourceIds": ids}
        created = api.post("/api/services/create", body | service)["service"]
        return cls(api, created["id"], ids)

    @staticmethod
    def set_hours(api: Api, resource: str, rules: Any) -> None:
        """Set the hours of a resource."""
        api.post("/api/resources/set-availability", {"resourceId": resource, "rules": rules})

    @property
    def resource(self) -> str:
        """The first resource."""
        return self.resources[0]

    def order(self, start: str, client: str = "Ada", **fields: Any) -> dict[str, Any]:
        """Return the body of a booking request."""
        who = {"name": client, "email": f"{client.lower().replace(' ', '.')}@example.com"}
        return {"serviceId": self.service, "startAt": start, "client": who, **fields}

    def book(self, start: str, client: str = "Ada", **fields: Any) -> Any:
        """Book, and return the booking."""
        return self.api.post(CREATE, self.order(start, client, **fields))["booking"]

    def try_to_book(self, start: str, client: str = "Ada", **fields: Any) -> Answer:
        """Send a booking request, and return the response, successful or not."""
        return self.api.call("POST", CREATE, self.order(start, client, **fields))

    def set_status(self, booking: str, status: str, **fields: Any) -> Answer:
        """Set the status of a booking, or move it."""
        return self.api.call("POST", STATUS, {"id": booking, "status": status, **fields})

    def search(self, **query: Any) -> Any:
        """Search for slots. ``first`` is the request's ``from``."""
        if "first" in query:
            query["from"] = query.pop("first")
        return self.api.get(f"{SLOTS}?{urlencode({'serviceId': self.service, **query})}")

    def starts(self, **query: Any) -> list[str]:
        """Return the local starts of the slots, without offsets."""
        slots = self.search(**{"limit": 2000, **query})["slots"]
        return [slot["startLocal"][:16] for slot in slots]


def bookings_of(workspace_id: str) -> list[BookingRow]:
    """Return all bookings of a workspace."""
    ids = [entry.id for entry in BOOKINGS.entries(workspace_id)]
    return BOOKINGS.fetch(workspace_id, ids)


def check_calendars(workspace_id: str, resources: Sequence[str], capacity: int = 1) -> None:
    """Check that calendar days match the bookings, and that no seat is sold twice."""
    rows = bookings_of(workspace_id)
    now = epoch_ms(clock.now())
    for resource in resources:
        resource_rows = [row for row in rows if row.resource_id == resource and row.blocks]
        implied: dict[str, list[Any]] = {}
        for row in resource_rows:
            for day in calendar_days.days_of(row.busy.buffered):
                implied.setdefault(day, []).append(row.busy)
        stored_days = calendar_days.read_all(workspace_id, resource_id=resource)
        assert {day: sorted(busy) for day, busy in stored_days.items() if busy} == {
            day: sorted(busy) for day, busy in implied.items()
        }
        live = [
            row.busy.buffered
            for row in resource_rows
            if not (row.busy.until and row.busy.until <= now)
        ]
        edges = sorted([(s.start, 1) for s in live] + [(s.end, -1) for s in live])
        capacity_used = 0
        for _, change in sorted(edges, key=lambda edge: (edge[0], edge[1])):
            capacity_used += change
            assert capacity_used <= capacity


def iso(moment: datetime) -> str:
    """Return a time in the format of requests."""
    return moment.isoformat().replace("+00:00", "Z")


def later(start: str, **length: float) -> str:
    """Return a time that is this much later."""
    return iso(datetime.fromisoformat(start) + timedelta(**length))


def refusal(answer: Any, reason: str | None = "fully_booked") -> Any:
    """Return the failure of a start that cannot be booked."""
    assert (answer.status, answer.data["code"]) == (409, "slot_unavailable"), answer.body
    assert answer.data["reason"] == reason
    return answer.data


def invalid(answer: Any, field: str) -> str:
    """Return the message of a refused input whose first error is in a given field."""
    assert (answer.status, answer.data["code"]) == (400, "validation_error"), answer.body
    assert answer.data["errors"][0]["field"] == field
    message: str = answer.data["message"]
    return message
