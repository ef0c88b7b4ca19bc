"""Services that cannot be booked, and bookings at closed times, for the console."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import Api, Owner, Time, call_console
from tests.factories.services import make_resource, make_service, store_booking

HOURS = {"weekdays": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "18:00"}
WEDNESDAY_NOON = datetime(2027, 1, 20, 9, tzinfo=UTC)
"""12:00 in Moscow."""


def open_up(api: Api, resource: str, **rule: Any) -> None:
    rules = [HOURS | rule]
    api.post("/api/resources/set-availability", {"resourceId": resource, "rules": rules})


class TestUnbookableServices:
    def reason(self, owner: Owner, service: str) -> tuple[str, str | None] | None:
        response = call_console(owner.workspace.id, "list_unbookable_services", ids=[service])
        for unbookable in response["services"]:
            assert unbookable["serviceId"] == service
            return unbookable["reason"], unbookable["resourceId"]
        return None

    def test_the_first_missing_requirement_of_a_service_is_returned(
        self, owner: Owner, api: Api
    ) -> None:
        service = make_service(api)["id"]
        assert self.reason(owner, service) == ("no_resource", None)
        one = make_resource(api, serviceIds=[service])["id"]
        assert self.reason(owner, service) == ("no_hours", one)
        open_up(api, one, end="09:30")
        assert self.reason(owner, service) == ("does_not_fit", one)
        open_up(api, one)
        assert self.reason(owner, service) is None
        api.post("/api/resources/update", {"id": one, "status": "inactive"})
        assert self.reason(owner, service) == ("inactive_resource", one)
        other = make_resource(api, "Boris", serviceIds=[service])["id"]
        assert self.reason(owner, service) == ("no_hours", other)
        api.post("/api/services/update", {"id": service, "status": "inactive"})
        assert self.reason(owner, service) == ("inactive", None)
        api.post("/api/services/delete", {"id": service})
        assert self.reason(owner, service) is None

    def test_services_of_another_workspace_are_left_out(
        self, api: Api, new_owner: Callable[..., Owner]
    ) -> None:
        service = make_service(api)["id"]
        assert self.reason(new_owner(), service) is None


class TestBookingsAtClosedTimes:
    @pytest.fixture(autouse=True)
    def _now(self, time: Time) -> None:
        time.now = datetime(2027, 1, 15, tzinfo=UTC)

    def list_reasons(self, owner: Owner, **of: str) -> list[tuple[str, str]]:
        response = call_console(owner.workspace.id, "list_bookings_at_closed_times", **of)
        assert response["total"] == len(response["bookings"])
        return [(booking["id"], booking["reason"]) for booking in response["bookings"]]

    def test_bookings_outside_hours_and_within_time_off_are_listed(
        self, owner: Owner, api: Api
    ) -> None:
        resource = make_resource(api)["id"]
        booking = store_booking(owner.workspace.id, resource, WEDNESDAY_NOON)
        assert self.list_reasons(owner) == [(booking, "closed")]
        open_up(api, resource)
        assert self.list_reasons(owner) == []
        open_up(api, resource, start="12:30")
        assert self.list_reasons(owner, resourceId=resource) == [(booking, "closed")]
        day_off = {"startAt": "2027-01-20", "endAt": "2027-01-20"}
        time_off_id = api.post("/api/resources/create-time-off", day_off)["timeOff"]["id"]
        assert self.list_reasons(owner) == [(booking, "time_off")]
        api.post("/api/resources/delete-time-off", {"id": time_off_id})
        open_up(api, resource)
        assert self.list_reasons(owner) == []

    def test_past_and_cancelled_bookings_and_other_resources_are_left_out(
        self, owner: Owner, api: Api
    ) -> None:
        one, other = make_resource(api)["id"], make_resource(api, "Boris")["id"]
        store_booking(owner.workspace.id, one, WEDNESDAY_NOON - timedelta(days=14))
        store_booking(owner.workspace.id, one, WEDNESDAY_NOON, status="cancelled")
        booking = store_booking(owner.workspace.id, other, WEDNESDAY_NOON)
        assert self.list_reasons(owner, resourceId=one) == []
        assert self.list_reasons(owner) == [(booking, "closed")]
