"""Operations on opening hours, and warnings about bookings outside them."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from chalicelib.domains.schedule.operations import opening_hours
from chalicelib.domains.services.store import opening_hours as hours_rows
from chalicelib.domains.services.store.resources import RESOURCES
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.services import make_resource, store_booking
from tests.support.warned import warned

GET, SET = "/api/resources/availability", "/api/resources/set-availability"
NINE_TO_SIX = {"start": "09:00", "end": "18:00"}


@pytest.fixture
def resource(api: Api) -> str:
    resource_id: str = make_resource(api)["id"]
    return resource_id


def set_rules(api: Api, resource: str, *rules: Any, **more: Any) -> Any:
    return api.post(SET, {"resourceId": resource, "rules": rules, **more})


def read(api: Api, resource: str) -> Any:
    return api.get(f"{GET}?resourceId={resource}")


class TestSet:
    def test_a_new_resource_has_no_hours(self, api: Api, resource: str) -> None:
        assert read(api, resource) == {
            "status": True,
            "resourceId": resource,
            "timezone": "Europe/Moscow",
            "rules": [],
            "updatedAt": None,
            "version": 0,
        }

    def test_setting_hours_returns_canonical_rules(
        self, api: Api, resource: str, time: Time
    ) -> None:
        first = set_rules(
            api,
            resource,
            {"date": "2027-03-08", "intervals": []},
            {"weekdays": ["Wednesday", 1, 0], **NINE_TO_SIX},
            {"weekday": "mon", "intervals": [{"start": "17:00", "end": "20:00"}]},
            {"weekday": 7, "intervals": [{"start": "22:00", "end": "02:00"}]},
            {"date": "2027-01-02", "intervals": [{"start": "0:00", "end": "24:00"}]},
        )
        whole_day = {"start": "00:00", "end": "24:00"}
        assert first == {
            "status": True,
            "resourceId": resource,
            "timezone": "Europe/Moscow",
            "rules": [
                {"weekday": "mon", "date": None, "intervals": [NINE_TO_SIX | {"end": "20:00"}]},
                {"weekday": "wed", "date": None, "intervals": [NINE_TO_SIX]},
                {
                    "weekday": "sun",
                    "date": None,
                    "intervals": [NINE_TO_SIX, {"start": "22:00", "end": "02:00"}],
                },
                {"weekday": None, "date": "2027-01-02", "intervals": [whole_day]},
                {"weekday": None, "date": "2027-03-08", "intervals": []},
            ],
            "updatedAt": "2027-01-15T12:00:00.000Z",
            "version": first["version"],
        }
        assert read(api, resource) == first
        second = set_rules(api, resource, *first["rules"])  # canonical rules are valid input
        assert second == first | {"version": second["version"]}

    def test_setting_hours_replaces_the_whole_schedule(self, api: Api, resource: str) -> None:
        set_rules(api, resource, {"weekday": 1, **NINE_TO_SIX})
        (rule,) = set_rules(api, resource, {"weekday": 2, **NINE_TO_SIX})["rules"]
        assert rule["weekday"] == "tue"
        assert set_rules(api, resource)["rules"] == []
        assert read(api, resource)["rules"] == []

    def test_hours_that_changed_since_a_version_are_not_replaced(
        self, api: Api, resource: str
    ) -> None:
        def reported_version(version: int) -> Any:
            body = {"resourceId": resource, "rules": [], "ifVersion": version}
            answer = api.call_refused("POST", SET, body)
            assert (answer.status, answer.data["code"]) == (409, "version_conflict")
            return answer.data["version"]

        first = set_rules(api, resource, {"weekday": 1, **NINE_TO_SIX}, ifVersion=0)["version"]
        assert reported_version(0) == first
        api.post("/api/resources/update", {"id": resource, "capacity": 2})
        second = set_rules(api, resource, {"weekday": 2, **NINE_TO_SIX}, ifVersion=first)["version"]
        assert reported_version(first) == second
        assert [rule["weekday"] for rule in read(api, resource)["rules"]] == ["tue"]

    def test_one_of_many_changes_of_the_same_version_succeeds(
        self, api: Api, resource: str
    ) -> None:
        def change(number: int) -> int:
            rule = {"weekday": 1, "start": f"{number:02}:00", "end": "23:00"}
            body = {"resourceId": resource, "rules": [rule], "ifVersion": 0}
            return api.call("POST", SET, body).status

        assert sorted(run_concurrently(4, change)) == [200, 409, 409, 409]

    def test_touching_intervals_are_not_merged(self, api: Api, resource: str) -> None:
        intervals = [{"start": "09:00", "end": "12:00"}, {"start": "12:00", "end": "15:00"}]
        (rule,) = set_rules(api, resource, {"weekday": 1, "intervals": intervals})["rules"]
        assert rule["intervals"] == intervals

    def test_the_largest_schedule_is_stored_in_full(self, api: Api, resource: str) -> None:
        intervals = [{"start": f"{h:02}:00", "end": f"{h:02}:45"} for h in range(24)]
        first = date(2027, 1, 1)
        rules = [
            {"date": str(first + timedelta(days=n)), "intervals": intervals} for n in range(400)
        ]
        set_rules(api, resource, *rules)
        assert read(api, resource)["rules"] == [{"weekday": None, **rule} for rule in rules]
        extra = {"date": "2030-01-01", "intervals": []}
        answer = api.call_refused("POST", SET, {"resourceId": resource, "rules": [*rules, extra]})
        assert answer.data["errors"][0]["field"] == "rules"

    @pytest.mark.parametrize(
        ("rule", "field"),
        [
            ({"weekday": "moonday", **NINE_TO_SIX}, "rules.1.weekday"),
            ({"weekday": True, **NINE_TO_SIX}, "rules.1.weekday"),
            ({"weekday": 1.5, **NINE_TO_SIX}, "rules.1.weekday"),
            ({"weekday": 1, "date": "2027-01-01", **NINE_TO_SIX}, "rules.1.weekday"),
            ({"date": "2027-02-30", "intervals": []}, "rules.1.date"),
            ({"weekday": 1, "intervals": [{"start": "09:00"}]}, "rules.1.intervals.0.end"),
        ],
    )
    def test_a_rule_that_is_not_valid_is_named(
        self, rule: Any, field: str, api: Api, resource: str
    ) -> None:
        first = {"date": "2027-01-01", "intervals": [NINE_TO_SIX]}
        answer = api.call_refused("POST", SET, {"resourceId": resource, "rules": [first, rule]})
        assert answer.status == 400
        assert [error["field"] for error in answer.data["errors"]] == [field]
        assert read(api, resource)["rules"] == []


class TestZone:
    def test_the_zone_of_a_resource_may_change_with_its_hours(
        self, api: Api, resource: str
    ) -> None:
        first = set_rules(api, resource, {"weekday": 1, **NINE_TO_SIX}, timezone="Asia/Omsk")
        assert first["timezone"] == "Asia/Omsk"
        (warning,) = warned(first)
        assert (warning["code"], warning["timezone"]) == ("timezone_changed", "Asia/Omsk")
        assert api.get(f"/api/resources/{resource}")["resource"]["timezone"] == "Asia/Omsk"
        second = set_rules(api, resource, {"weekday": 2, **NINE_TO_SIX}, timezone="Asia/Omsk")
        assert "warnings" not in second
        assert set_rules(api, resource)["timezone"] == "Asia/Omsk"

    def test_a_zone_must_exist(self, api: Api, resource: str) -> None:
        body = {"resourceId": resource, "rules": [], "timezone": "Mars/Base"}
        (error,) = api.call_refused("POST", SET, body).data["errors"]
        assert error["field"] == "timezone"


class TestBookingsOutside:
    def test_bookings_outside_the_new_hours_are_a_warning(
        self, api: Api, owner: Owner, resource: str, time: Time
    ) -> None:
        """The time is Friday 2027-01-15. Moscow is three hours ahead of UTC."""
        at = {
            "inside": datetime(2027, 1, 18, 6, tzinfo=UTC),
            "over": datetime(2027, 1, 18, 14, 30, tzinfo=UTC),
            "early": datetime(2027, 1, 25, 5, 59, tzinfo=UTC),
            "past": datetime(2027, 1, 11, 3, tzinfo=UTC),
            "sunday": datetime(2027, 1, 17, 9, tzinfo=UTC),
        }
        ids = {
            name: store_booking(owner.workspace.id, resource, start) for name, start in at.items()
        }
        store_booking(owner.workspace.id, resource, at["sunday"], status="cancelled")
        (warning,) = warned(set_rules(api, resource, {"weekday": 1, **NINE_TO_SIX}))
        assert (warning["code"], warning["count"]) == ("bookings_outside_hours", 3)
        assert set(warning["ids"]) == {ids[name] for name in ("over", "early", "sunday")}
        all_day = {"weekdays": list(range(7)), "start": "00:00", "end": "24:00"}
        assert "warnings" not in set_rules(api, resource, all_day)

    def test_bookings_within_touching_intervals_are_not_outside(
        self, api: Api, owner: Owner, resource: str, time: Time
    ) -> None:
        late = datetime(2027, 1, 18, 20, 30, tzinfo=UTC)  # 23:30 to 00:30
        store_booking(owner.workspace.id, resource, late)
        evening = {"weekday": "mon", "start": "18:00", "end": "24:00"}
        assert set_rules(api, resource, evening)["warnings"]
        night = {"weekday": "tue", "start": "00:00", "end": "02:00"}
        assert "warnings" not in set_rules(api, resource, evening, night)

    def test_bookings_made_while_the_hours_change_are_named(
        self, api: Api, owner: Owner, resource: str, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The search runs after the commit. Later bookings have read the new hours."""
        save = hours_rows.save_schedule

        def meanwhile(*args: Any) -> Any:
            store_booking(owner.workspace.id, resource, datetime(2027, 1, 17, 9, tzinfo=UTC))
            return save(*args)

        monkeypatch.setattr(hours_rows, "save_schedule", meanwhile)
        assert set_rules(api, resource, {"weekday": 1, **NINE_TO_SIX})["warnings"]

    def test_only_some_of_very_many_bookings_are_named(
        self,
        api: Api,
        owner: Owner,
        resource: str,
        time: Time,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(opening_hours, "MAX_LISTED", 2)
        for day in (16, 17, 18):
            start = datetime(2027, 1, day, 9, tzinfo=UTC)
            store_booking(owner.workspace.id, resource, start)
        answer = set_rules(api, resource)
        (warning,) = warned(answer)
        assert (warning["code"], warning["count"]) == ("bookings_outside_hours", 3)
        assert len(warning["ids"]) < 3
        assert ", …" in answer["warnings"][0]

    def test_bookings_of_another_resource_are_not_named(
        self, api: Api, owner: Owner, resource: str, time: Time
    ) -> None:
        other = make_resource(api, "Boris")["id"]
        store_booking(owner.workspace.id, other, time.now + timedelta(days=1))
        assert "warnings" not in set_rules(api, resource)


@pytest.mark.store
def test_concurrent_changes_of_hours_each_raise_the_version(
    api: Api, owner: Owner, resource: str
) -> None:
    old_row = RESOURCES.find(owner.workspace.id, record_id=resource)
    days = ["mon", "tue", "wed", "thu", "fri"]
    run_concurrently(5, lambda n: set_rules(api, resource, {"weekday": days[n], **NINE_TO_SIX}))
    (rule,) = read(api, resource)["rules"]
    assert rule["weekday"] in days
    new_row = RESOURCES.find(owner.workspace.id, record_id=resource)
    assert old_row is not None
    assert new_row is not None
    assert new_row.version == old_row.version + 5
