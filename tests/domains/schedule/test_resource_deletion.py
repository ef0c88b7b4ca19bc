"""Deletion of resources, with and without upcoming bookings."""

from datetime import timedelta

import pytest

from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.schedule.operations import resource_deletion as records
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine import jobs
from tests.conftest import Api, Owner, Time
from tests.factories.services import make_resource, make_service, store_booking
from tests.support.effort import slow_but_for
from tests.support.warned import warned

DELETE = "/api/resources/delete"


def names(api: Api) -> list[str]:
    return [resource["name"] for resource in api.get("/api/resources/list")["resources"]]


def bound(api: Api, service_id: str) -> list[str]:
    resource_ids: list[str] = api.get(f"/api/services/{service_id}")["service"]["resourceIds"]
    return resource_ids


class TestDelete:
    def test_delete_unbinds_the_resource_and_ends_its_time_off_and_hours(
        self, api: Api, owner: Owner
    ) -> None:
        service = make_service(api)
        other = make_resource(api, "Boris", serviceIds=[service["id"]])
        resource = make_resource(api, serviceIds=[service["id"]])
        body = {"startAt": "2027-01-01", "endAt": "2027-01-02"}
        for whose in ({}, {"resourceId": resource["id"]}, {"resourceId": other["id"]}):
            api.post("/api/resources/create-time-off", body | whose)
        hours = [{"weekday": 1, "start": "09:00", "end": "18:00"}]
        set_hours = {"resourceId": resource["id"], "rules": hours}
        api.post("/api/resources/set-availability", set_hours)
        answer = api.post(DELETE, {"id": resource["id"]})
        assert (answer["deleted"], answer["futureBookings"]) == (True, 0)
        assert names(api) == ["Boris"]
        assert bound(api, service["id"]) == [other["id"]]
        remaining_time_off = time_off.overlapping(owner.workspace.id, 0, last_ms=time_off.LATEST)
        assert {period.resource_id for period in remaining_time_off} == {None, other["id"]}
        _, key = opening_hours.keys_with_schedules(owner.workspace.id, [resource["id"]])
        schedule = opening_hours.ScheduleRow.find(key.pk, key.sk)
        assert schedule is not None
        assert schedule.expires  # The row goes when the deleted resource is purged.
        assert opening_hours.find_with_schedules(owner.workspace.id, [resource["id"]]) == []
        assert api.call_refused("POST", DELETE, {"id": resource["id"]}).status == 404

    def test_a_resource_with_future_bookings_is_deleted_only_with_force(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        resource = make_resource(api)
        for hours in (-2, 1, 2):
            at = time.now + timedelta(hours=hours)
            store_booking(owner.workspace.id, resource["id"], at)
        answer = api.call_refused("POST", DELETE, {"id": resource["id"]})
        assert (answer.status, answer.data["code"]) == (409, "has_future_bookings")
        assert answer.data["futureBookings"] == 2
        dry = api.post(DELETE, {"id": resource["id"], "dryRun": True})
        assert (dry["deleted"], dry["futureBookings"]) == (False, 2)
        facts = {"error": "has_future_bookings", "count": 2}
        assert warned(dry) == [{"code": "force_required", **facts}]
        assert names(api) == ["Anna"]
        forced = api.post(DELETE, {"id": resource["id"], "force": True})
        assert (forced["deleted"], forced["futureBookings"]) == (True, 2)

    @pytest.mark.parametrize("count", slow_but_for([25], [25, 200]))
    def test_deleting_a_resource_of_many_services_takes_effect_immediately(
        self, count: int, api: Api, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The deletion itself ends its slots. The runner finishes the work of a killed process."""
        resource = make_resource(api)
        ids = [make_service(api, str(n), resourceIds=[resource["id"]])["id"] for n in range(count)]
        assert len(api.get(f"/api/resources/{resource['id']}")["resource"]["serviceIds"]) == count
        with monkeypatch.context() as killed:
            killed.setattr(jobs, "attempt", lambda *_: None)
            api.post(DELETE, {"id": resource["id"]})
        assert opening_hours.find_with_schedules(owner.workspace.id, [resource["id"]]) == []
        assert bound(api, ids[0]) == [resource["id"]]
        job_counts = jobs.run(JOB_HANDLERS)
        assert job_counts[records.CASCADE] == 1
        rows = SERVICES.fetch(owner.workspace.id, ids)
        assert [list(row.resource_ids) for row in rows] == [[]] * count
