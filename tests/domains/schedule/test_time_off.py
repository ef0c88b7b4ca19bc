"""Operations on time off, and bookings made at the same time."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from threading import Event, current_thread
from typing import Any
from urllib.parse import urlencode

import pytest

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.domains.schedule.operations import time_off as calls
from chalicelib.domains.services.store import time_off
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.engine.reading import Key, Rows
from chalicelib.lib.zoned_times import local_time, span_of_days
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.services import make_resource, make_service, store_booking
from tests.support.effort import slow_but_for
from tests.support.patience import PATIENCE
from tests.support.warned import warned

LIST, CREATE, DELETE = (
    f"/api/resources/{call}" for call in ("time-off", "create-time-off", "delete-time-off")
)
pytestmark = pytest.mark.usefixtures("time")


@pytest.fixture
def resource(api: Api) -> str:
    resource_id: str = make_resource(api)["id"]
    return resource_id


def create(api: Api, start: str, end: str, **more: Any) -> Any:
    return api.post(CREATE, {"startAt": start, "endAt": end, **more})


def find(api: Api, **query: Any) -> list[str]:
    page = api.get(f"{LIST}?{urlencode(query)}")
    assert page["total"] == len(page["timeOff"])
    return [period["reason"] for period in page["timeOff"]]


class TestCreate:
    def test_time_off_by_dates_includes_the_last_one(self, api: Api, resource: str) -> None:
        response = create(api, "2027-05-01", "2027-05-09", resourceId=resource, reason="Holidays")
        assert response == {
            "status": True,
            "timeOff": {
                "id": response["timeOff"]["id"],
                "resourceId": resource,
                "startAt": "2027-05-01",
                "endAt": "2027-05-09",
                "allDay": True,
                "reason": "Holidays",
                "createdAt": "2027-01-15T12:00:00.000Z",
            },
            "affectedBookings": [],
            "affectedTotal": 0,
        }
        assert api.get(LIST)["timeOff"] == [response["timeOff"]]
        one_day = create(api, "2027-06-01", "2027-06-01")["timeOff"]
        assert (one_day["startAt"], one_day["endAt"]) == ("2027-06-01", "2027-06-01")
        assert one_day["resourceId"] is None

    @pytest.mark.parametrize(
        ("start", "end", "expected"),
        [
            ("2027-05-01T10:00", "2027-05-01T12:30", ("01T05:00:00.000Z", "01T07:30:00.000Z")),
            (
                "2027-05-01T10:00+03:00",
                "2027-05-01T12:00Z",
                ("01T07:00:00.000Z", "01T12:00:00.000Z"),
            ),
            ("2027-05-01", "2027-05-01T12:00", ("30T19:00:00.000Z", "01T07:00:00.000Z")),
            ("2027-05-01T12:00", "2027-05-02", ("01T07:00:00.000Z", "02T19:00:00.000Z")),
        ],
    )
    def test_times_are_read_in_the_zone_of_the_resource(
        self, start: str, end: str, expected: tuple[str, str], api: Api
    ) -> None:
        resource = make_resource(api, timezone="Asia/Yekaterinburg")["id"]
        period = create(api, start, end, resourceId=resource)["timeOff"]
        assert (period["startAt"][8:], period["endAt"][8:]) == expected
        assert period["allDay"] is False

    def test_times_of_the_workspace_are_read_in_its_zone(self, new_owner: Any) -> None:
        api = new_owner(timezone="Asia/Yekaterinburg").api()
        make_resource(api, timezone="Europe/Moscow")
        period = create(api, "2027-05-01T10:00", "2027-05-01T12:00")["timeOff"]
        assert period["startAt"] == "2027-05-01T05:00:00.000Z"

    @pytest.mark.parametrize(
        ("start", "end"),
        [
            ("2027-05-02", "2027-05-01"),
            ("2027-05-01T10:00", "2027-05-01T10:00"),
            ("2027-05-01T10:00Z", "2027-05-01T11:00+03:00"),
            ("2027-05-02T10:00", "2027-05-01"),
        ],
    )
    def test_the_end_must_come_after_the_start(self, start: str, end: str, api: Api) -> None:
        answer = api.call_refused("POST", CREATE, {"startAt": start, "endAt": end})
        assert answer.status == 400
        (error,) = answer.data["errors"]
        assert (error["field"], error["key"]) == ("endAt", "before_start")
        assert find(api) == []

    def test_repeating_a_killed_call_creates_time_off_once(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = {"startAt": "2027-05-01", "endAt": "2027-05-01"}
        with monkeypatch.context() as broken:
            broken.setattr(calls, "_affected", lambda *_: 1 / 0)
            assert api.call_refused("POST", CREATE, body, **{"Idempotency-Key": "k"}).status == 500
        repeated = api.post(CREATE, body, key="k")
        assert api.get(LIST)["timeOff"] == [repeated["timeOff"]]


@pytest.mark.parametrize(
    ("zone", "first", "last", "hours"),
    [
        ("Europe/Berlin", "2027-03-27", "2027-03-29", 71),
        ("Europe/Berlin", "2027-10-30", "2027-11-01", 73),
        ("Europe/Moscow", "2027-03-27", "2027-03-29", 72),
    ],
)
def test_days_off_over_a_clock_change_end_at_local_midnight(
    zone: str, first: str, last: str, hours: int
) -> None:
    days = [date.fromisoformat(day) for day in (first, last)]
    start, end = time_off.TimeOff("t", None, None, *days).span(zone)
    assert [local_time(clock.moment_at(moment), zone).text[:19] for moment in (start, end)] == [
        f"{first}T00:00:00",
        f"{days[1] + timedelta(days=1)}T00:00:00",
    ]
    assert end - start == hours * 3_600_000


class TestAffectedBookings:
    def test_affected_bookings_are_those_of_the_resource_that_overlap(
        self, api: Api, owner: Owner, resource: str
    ) -> None:
        other = make_resource(api, "Boris")["id"]
        workspace, noon = owner.workspace.id, datetime(2027, 5, 1, 9, tzinfo=UTC)
        inside = store_booking(workspace, resource, noon)
        over = store_booking(workspace, resource, noon - timedelta(minutes=30))
        store_booking(
            workspace, resource, noon - timedelta(minutes=60)
        )  # ends when the time off begins
        store_booking(
            workspace, resource, noon + timedelta(hours=2)
        )  # begins when the time off ends
        store_booking(workspace, resource, noon, status="cancelled")
        elsewhere = store_booking(workspace, other, noon)
        times = ("2027-05-01T12:00", "2027-05-01T14:00")
        response = create(api, *times, resourceId=resource)
        assert (response["affectedBookings"], response["affectedTotal"]) == ([over, inside], 2)
        response = create(api, *times)
        assert set(response["affectedBookings"]) == {over, inside, elsewhere}

    def test_a_date_off_affects_bookings_of_that_date_in_each_resources_zone(
        self, api: Api, owner: Owner
    ) -> None:
        moment = datetime(2027, 5, 1, 22, tzinfo=UTC)
        ids = {}
        for zone in ("Europe/London", "Asia/Vladivostok", "America/New_York"):
            resource = make_resource(api, zone, timezone=zone)["id"]
            ids[zone] = store_booking(owner.workspace.id, resource, moment)
        first = create(api, "2027-05-01", "2027-05-01")
        assert set(first["affectedBookings"]) == {ids["Europe/London"], ids["America/New_York"]}
        second = create(api, "2027-05-02", "2027-05-02")
        assert second["affectedBookings"] == [ids["Asia/Vladivostok"]]

    def test_the_first_hundred_affected_bookings_are_listed_with_a_total(
        self, api: Api, owner: Owner, resource: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calls, "MAX_AFFECTED", 2)
        begun = datetime(2027, 5, 1, 9, tzinfo=UTC)
        ids = [
            store_booking(owner.workspace.id, resource, begun + timedelta(hours=n))
            for n in range(3)
        ]
        response = create(api, "2027-05-01", "2027-05-01", resourceId=resource)
        assert (response["affectedBookings"], response["affectedTotal"]) == (ids[:2], 3)

    @pytest.mark.parametrize("whole_workspace", [False, True])
    def test_bookings_made_during_the_call_are_included(
        self,
        whole_workspace: bool,
        api: Api,
        owner: Owner,
        resource: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The search runs after the commit. Later bookings have read the time off."""
        stage = time_off.stage_creation
        booking_ids = []

        def meanwhile(*args: Any) -> None:
            start = datetime(2027, 5, 1, 9, tzinfo=UTC)
            booking_ids.append(store_booking(owner.workspace.id, resource, start))
            stage(*args)

        monkeypatch.setattr(calls.time_off, "stage_creation", meanwhile)
        whose = {} if whole_workspace else {"resourceId": resource}
        response = create(api, "2027-05-01", "2027-05-01", **whose)
        assert response["affectedBookings"] == booking_ids


class TestDelete:
    def test_deleting_time_off_makes_the_time_bookable_again(self, api: Api, resource: str) -> None:
        for whose in ({}, {"resourceId": resource}):
            period = create(api, "2027-05-01", "2027-05-01", **whose)["timeOff"]
            dry = api.post(DELETE, {"id": period["id"], "dryRun": True})
            assert (dry["deleted"], len(find(api))) == (False, 1)
            assert api.post(DELETE, {"id": period["id"]})["deleted"] is True
            assert find(api) == []
            assert api.call_refused("POST", DELETE, {"id": period["id"]}).status == 404


class TestList:
    @pytest.fixture
    def resource_off(self, api: Api, resource: str) -> str:
        """A resource with time off. Another resource and the workspace have time off as well."""
        other = make_resource(api, "Boris")["id"]
        create(api, "2027-05-03T10:00", "2027-05-03T12:00", resourceId=resource, reason="own")
        create(api, "2027-05-01", "2027-05-02", reason="all")
        create(api, "2027-05-02", "2027-05-02", resourceId=other, reason="other")
        create(api, "2020-01-01", "2020-01-01", resourceId=resource, reason="past")
        return resource

    @pytest.mark.parametrize(
        ("query", "expected_reasons"),
        [
            ({}, ["past", "all", "other", "own"]),
            ({"from": "2027-05-02", "to": "2027-05-02"}, ["all", "other"]),
            ({"from": "2027-05-03"}, ["own"]),
            ({"to": "2027-05-01"}, ["past", "all"]),
            ({"from": "2027-05-03T12:00"}, []),
            ({"from": "2027-05-03T11:59"}, ["own"]),
            ({"from": "2027-05-03T09:00", "to": "2027-05-03T10:00"}, ["own"]),
            ({"to": "2027-04-30T23:59"}, ["past"]),
            ({"from": "2028-01-01", "to": "2027-01-01"}, []),
        ],
    )
    def test_the_list_shows_time_off_that_overlaps_the_range(
        self, query: dict[str, str], expected_reasons: list[str], api: Api, resource_off: str
    ) -> None:
        assert find(api, **query) == expected_reasons

    def test_the_list_of_a_resource_includes_time_off_of_the_workspace(
        self, api: Api, resource_off: str
    ) -> None:
        assert find(api, resourceId=resource_off) == ["past", "all", "own"]
        assert find(api, resourceId=resource_off, **{"from": "2027-05-03"}) == ["own"]
        assert find(api, resourceId=new_id()) == []

    def test_a_date_is_read_in_the_zone_of_the_resource(self, api: Api) -> None:
        far = make_resource(api, timezone="Pacific/Kiritimati")["id"]
        create(api, "2027-05-02", "2027-05-02", reason="day")
        start, end = span_of_days(
            date(2027, 5, 2), last=date(2027, 5, 2), timezone="Pacific/Kiritimati"
        )
        last = datetime.fromtimestamp(end / 1000, UTC)
        earlier = datetime.fromtimestamp(start / 1000, UTC) - timedelta(minutes=1)
        edge = {"resourceId": far, "from": last.isoformat()}
        assert find(api, **edge) == []
        assert find(api, resourceId=far, to=earlier.isoformat()) == []
        assert find(api, resourceId=far, **{"from": "2027-05-02", "to": "2027-05-02"}) == ["day"]

    def test_a_long_list_is_cut(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, resource_off: str
    ) -> None:
        page = api.get(f"{LIST}?size=2&page=2")
        assert (len(page["timeOff"]), page["total"]) == (2, 4)
        monkeypatch.setattr(calls, "MAX_WHOLE", 2)
        page = api.get(f"{LIST}?size=2")
        assert [period["reason"] for period in page["timeOff"]] == ["past", "all"]
        assert page["total"] == 4
        (warning,) = warned(page)
        assert (warning["code"], warning["maximum"]) == ("list_truncated", len(page["timeOff"]))


@pytest.mark.store
def test_concurrent_time_off_is_all_stored_and_each_raises_the_version(
    api: Api, owner: Owner, resource: str, time: Time
) -> None:
    old_row = RESOURCES.find(owner.workspace.id, record_id=resource)
    lock = time_off.read_lock(owner.workspace.id)
    assert old_row is not None

    def act(number: int) -> None:
        whose = {"resourceId": resource} if number % 2 else {}
        create(api, "2027-05-01", "2027-05-01", reason=str(number), **whose)

    run_concurrently(8, act)
    assert sorted(find(api)) == [str(number) for number in range(8)]
    new_row = RESOURCES.find(owner.workspace.id, record_id=resource)
    assert new_row is not None
    assert new_row.version == old_row.version + 4
    assert time_off.read_lock(owner.workspace.id).version == (lock.version or 0) + 8


CLOSURES: dict[str, tuple[str, dict[str, Any]]] = {
    "own time off": (CREATE, {"startAt": "2027-01-20", "endAt": "2027-01-20", "resourceId": ""}),
    "all are off": (CREATE, {"startAt": "2027-01-20", "endAt": "2027-01-20"}),
    "no hours": ("/api/resources/set-availability", {"resourceId": "", "rules": []}),
    "another zone": ("/api/resources/update", {"id": "", "timezone": "Pacific/Kiritimati"}),
    "inactive": ("/api/resources/update", {"id": "", "status": "inactive"}),
    "deleted": ("/api/resources/delete", {"id": ""}),
}
"""Calls after which a resource cannot be booked at noon. Empty values are replaced with its id."""


@pytest.mark.store
@pytest.mark.parametrize("resource_is_read", ["before", "after"])
@pytest.mark.parametrize("closure", CLOSURES)
def test_a_booking_is_checked_again_after_a_concurrent_closure(
    closure: str,
    resource_is_read: str,
    api: Api,
    resource: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The closure is committed between the booking's read of time off and the booking's commit.

    A booking reads resources and time off in parallel, before the closure or after the closure.
    """
    service = make_service(api, resourceIds=[resource])["id"]
    rules = [{"weekdays": list(range(7)), "start": "11:00", "end": "13:00"}]
    hours = {"resourceId": resource, "rules": rules}
    api.post("/api/resources/set-availability", hours)
    path, body = CLOSURES[closure]
    read, closed, read_rows = time_off.overlapping, list[str](), Rows.read
    begun, rows_are_read, is_closed = Event(), Event(), Event()

    def read_and_close(*args: Any, **options: Any) -> Any:
        rows = read(*args, **options)
        if not closed:
            closed.append(closure)
            begun.set()
            if resource_is_read == "before":
                rows_are_read.wait(PATIENCE)
            filled = {name: value if value != "" else resource for name, value in body.items()}
            api.post(path, filled)
            is_closed.set()
        return rows

    def read_beside(rows: Rows, keys: Iterable[Key]) -> None:
        key_list = list(keys)
        of_booking = current_thread() is booking_thread
        if of_booking and any(key.row is ResourceRow for key in key_list):
            begun.wait(PATIENCE)
            if resource_is_read == "after":
                is_closed.wait(PATIENCE)
            read_rows(rows, key_list)
            rows_are_read.set()
        else:
            read_rows(rows, key_list)

    booking_thread = current_thread()
    monkeypatch.setattr(time_off, "overlapping", read_and_close)
    monkeypatch.setattr(Rows, "read", read_beside)
    booking = {
        "serviceId": service,
        "startAt": "2027-01-20T12:00+03:00",
        "client": {"name": "Ada", "phone": "+79161234500"},
    }
    answer = api.call_refused("POST", "/api/bookings/create", booking)
    assert closed
    assert answer.data["code"] == "slot_unavailable"
    assert api.get("/api/bookings/list")["bookings"] == []


def test_a_booking_with_outdated_hours_is_refused(
    api: Api, resource: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch read is not a snapshot. Hours may be read before a change, other rows afterwards."""
    service = make_service(api, resourceIds=[resource])["id"]
    every_day = {"weekdays": list(range(7)), "start": "00:00", "end": "24:00"}
    hours = {"resourceId": resource, "rules": [every_day]}
    api.post("/api/resources/set-availability", hours)
    read_rows, closures = Rows.read, [{"resourceId": resource, "rules": []}]

    def read_in_two_parts(rows: Rows, keys: Iterable[Key]) -> None:
        key_list = list(keys)
        if closures and any(key.row is ScheduleRow for key in key_list):
            read_rows(rows, [key for key in key_list if key.row is ScheduleRow])
            api.post("/api/resources/set-availability", closures.pop())
        read_rows(rows, key_list)

    monkeypatch.setattr(Rows, "read", read_in_two_parts)
    booking = {
        "serviceId": service,
        "startAt": "2027-01-20T12:00+03:00",
        "client": {"name": "Ada", "phone": "+79161234500"},
    }
    answer = api.call_refused("POST", "/api/bookings/create", booking)
    assert not closures
    assert answer.data["code"] == "slot_unavailable"


@pytest.mark.store
@pytest.mark.parametrize("change", ["own", "all", "hours"])
@pytest.mark.parametrize("round_", slow_but_for([1], range(3)))
def test_a_booking_concurrent_with_a_closure_is_reported_or_refused(
    change: str, round_: int, api: Api, resource: str
) -> None:
    """A booking in closed hours is either refused or listed in the closure's response."""
    service = make_service(api, resourceIds=[resource])["id"]
    every_day = {"weekdays": list(range(7)), "start": "00:00", "end": "24:00"}
    hours = {"resourceId": resource, "rules": [every_day]}
    api.post("/api/resources/set-availability", hours)
    closed: list[str] = []

    def act(number: int) -> str | None:
        if number == round_:
            if change == "hours":
                answer = api.post("/api/resources/set-availability", hours | {"rules": []})
                closed.extend(answer.get("warnings", ()))
            else:
                whose = {"resourceId": resource} if change == "own" else {}
                closed.extend(create(api, "2027-01-20", "2027-01-20", **whose)["affectedBookings"])
            return None
        body = {
            "serviceId": service,
            "startAt": f"2027-01-20T{9 + number:02}:00",
            "client": {"name": str(number), "phone": f"+7916123450{number}"},
        }
        answer = api.call("POST", "/api/bookings/create", body)
        if answer.status != 200:
            assert answer.data["code"] == "slot_unavailable"
            return None
        booked: str = answer.data["booking"]["id"]
        return booked

    booked = {booking_id for booking_id in run_concurrently(8, act) if booking_id}
    if change == "hours":
        assert {booking_id for booking_id in booked if booking_id in "".join(closed)} == booked
    else:
        assert set(closed) == booked
    body = {
        "serviceId": service,
        "startAt": "2027-01-20T20:00",
        "client": {"name": "x", "phone": "+79161234599"},
    }
    assert api.call_refused("POST", "/api/bookings/create", body).status == 409
