"""Upcoming bookings at times when their resource is closed or has time off."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import Api, Owner, Time, call_console
from tests.factories.services import make_resource, open_up, store_booking

WEDNESDAY_NOON = datetime(2027, 1, 20, 9, tzinfo=UTC)
"""12:00 in Moscow."""


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
