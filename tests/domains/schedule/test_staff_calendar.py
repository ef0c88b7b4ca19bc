"""Tests of the staff calendar with its zones, hours, time off, free time and reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.schedule.operations import staff_calendar
from chalicelib.engine.unit import UnitOfWork, run_unit
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.salon import Salon
from tests.factories.services import store_booking

DAY = "2027-01-18"
"""A Monday."""


def calendar(owner: Owner, **arguments: Any) -> Any:
    return call_console(owner.workspace.id, "get_staff_calendar", **arguments)


def clock_times(periods: list[dict[str, Any]]) -> list[str]:
    """Return the periods as clock times in UTC."""
    return [f"{period['startAt'][11:16]}-{period['endAt'][11:16]}" for period in periods]


def names(day: dict[str, Any]) -> list[str]:
    return [booking["client"]["name"] for staff in day["staff"] for booking in staff["bookings"]]


class TestDay:
    def test_a_day_has_hours_bookings_and_the_free_time_between_them(
        self, owner: Owner, salon: Salon
    ) -> None:
        booking = salon.book(f"{DAY}T10:00")
        reply = calendar(owner, date=DAY)
        (day,) = reply["days"]
        (staff,) = day["staff"]
        assert (staff["resourceName"], staff["timezone"]) == ("Stylist 0", "Europe/Moscow")
        assert clock_times(staff["opened"]) == ["06:00-15:00"]
        assert clock_times(staff["free"]) == ["06:00-07:00", "08:00-15:00"]
        assert [listed_booking["id"] for listed_booking in staff["bookings"]] == [booking["id"]]
        assert (day["total"], reply["total"], reply["shown"]) == (1, 1, 1)

    def test_staff_are_listed_by_their_sort_order(self, api: Api, owner: Owner, time: Time) -> None:
        salon = Salon.opened(api, [{}, {}])
        api.post("/api/resources/update", {"id": salon.resources[1], "sortOrder": -1})
        reply = calendar(owner, date=DAY)
        staff_names = [member["resourceName"] for member in reply["days"][0]["staff"]]
        assert staff_names == ["Stylist 1", "Stylist 0"]

    def test_cancelled_bookings_and_no_shows_leave_free_time(
        self, owner: Owner, salon: Salon
    ) -> None:
        for hour, status in ((10, "cancelled"), (12, "no_show")):
            salon.set_status(salon.book(f"{DAY}T{hour}:00")["id"], status)
        (staff,) = calendar(owner, date=DAY)["days"][0]["staff"]
        assert staff["bookings"] == []
        assert clock_times(staff["free"]) == ["06:00-15:00"]

    def test_time_off_is_named_and_no_free_time(self, owner: Owner, salon: Salon) -> None:
        body = {"resourceId": salon.resource, "reason": "Dentist"}
        body |= {"startAt": f"{DAY}T12:00", "endAt": f"{DAY}T14:00"}
        salon.api.post("/api/resources/create-time-off", body)
        salon.api.post(
            "/api/resources/create-time-off", {"startAt": "2027-01-19", "endAt": "2027-01-19"}
        )
        (staff,) = calendar(owner, date=DAY)["days"][0]["staff"]
        assert clock_times(staff["timeOff"]) == ["09:00-11:00"]
        assert staff["timeOff"][0]["reason"] == "Dentist"
        assert clock_times(staff["free"]) == ["06:00-09:00", "11:00-15:00"]
        (staff,) = calendar(owner, date="2027-01-19")["days"][0]["staff"]
        assert staff["free"] == []
        assert len(staff["timeOff"]) == 1

    def test_busy_times_are_no_free_time_and_bookings_over_them_are_conflicts(
        self, owner: Owner, salon: Salon
    ) -> None:
        over = salon.book(f"{DAY}T10:00")["id"]
        salon.book(f"{DAY}T16:00")

        def stage(unit: UnitOfWork) -> None:
            calendar_days.stage_elsewhere(unit, salon.resource, {DAY: "450-480 660-720"})

        run_unit(owner.workspace.id, None, stage)
        (staff,) = calendar(owner, date=DAY)["days"][0]["staff"]
        assert clock_times(staff["busy"]) == ["07:30-08:00", "11:00-12:00"]
        assert clock_times(staff["free"]) == [
            "06:00-07:00",
            "08:00-11:00",
            "12:00-13:00",
            "14:00-15:00",
        ]
        assert staff["conflicts"] == [over]

    def test_free_time_begins_now_and_passed_hours_are_not_offered(
        self, owner: Owner, salon: Salon, time: Time
    ) -> None:
        time.now = datetime(2027, 1, 18, 9, 1, tzinfo=UTC)
        (staff,) = calendar(owner)["days"][0]["staff"]
        assert clock_times(staff["free"]) == ["09:05-15:00"]
        (staff,) = calendar(owner, date="2027-01-17")["days"][0]["staff"]
        assert staff["free"] == []

    def test_free_time_of_a_group_is_split_where_its_free_places_change(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        salon = Salon.opened(api, [{"capacity": 2}])
        salon.book(f"{DAY}T10:00")
        salon.book(f"{DAY}T10:00", "Bob")
        salon.book(f"{DAY}T11:00", "Eve")
        (staff,) = calendar(owner, date=DAY)["days"][0]["staff"]
        assert staff["capacity"] == 2
        free_places = [free_period["places"] for free_period in staff["free"]]
        assert list(zip(clock_times(staff["free"]), free_places, strict=True)) == [
            ("06:00-07:00", 2),
            ("08:00-09:00", 1),
            ("09:00-15:00", 2),
        ]

    def test_an_expired_hold_is_not_shown(self, api: Api, owner: Owner, time: Time) -> None:
        salon = Salon.opened(api, requirePayment=True)
        salon.book(f"{DAY}T10:00")
        assert calendar(owner, date=DAY)["total"] == 1
        time.pass_by(minutes=31)
        reply = calendar(owner, date=DAY)
        assert (reply["total"], names(reply["days"][0])) == (0, [])
        assert clock_times(reply["days"][0]["staff"][0]["free"]) == ["06:00-15:00"]

    def test_bookings_of_a_deleted_staff_member_are_shown(self, owner: Owner, salon: Salon) -> None:
        salon.book(f"{DAY}T10:00")
        salon.api.post("/api/resources/delete", {"id": salon.resource, "force": True})
        reply = calendar(owner, date=DAY)
        assert reply["staff"] == []
        assert names(reply["days"][0]) == ["Ada"]

    def test_one_staff_member_can_be_chosen(self, api: Api, owner: Owner, time: Time) -> None:
        salon = Salon.opened(api, [{}, {}])
        for number, resource in enumerate(salon.resources):
            salon.book(f"{DAY}T10:00", f"C {number}", resourceId=resource)
        reply = calendar(owner, date=DAY, resourceId=salon.resources[1])
        assert names(reply["days"][0]) == ["C 1"]
        assert [member["resourceId"] for member in reply["days"][0]["staff"]] == salon.resources[1:]
        assert len(reply["staff"]) == 2
        assert calendar(owner, date=DAY, resourceId="none")["days"][0]["staff"] == []

    def test_a_booking_over_midnight_is_shown_on_both_days(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        nights = [{"weekday": "mon", "start": "22:00", "end": "04:00"}]
        salon = Salon.opened(api, rules=nights, durationMin=180)
        salon.book(f"{DAY}T22:00")
        for day in (DAY, "2027-01-19"):
            assert names(calendar(owner, date=day)["days"][0]) == ["Ada"]
        (staff,) = calendar(owner, date="2027-01-19")["days"][0]["staff"]
        assert clock_times(staff["opened"]) == ["21:00-01:00"]
        assert clock_times(staff["free"]) == ["22:00-01:00"]
        week = calendar(owner, view="week", date=DAY)
        assert [day["total"] for day in week["days"]] == [1, 0, 0, 0, 0, 0, 0]


class TestZones:
    def test_days_begin_in_the_workspaces_zone(self, new_owner: Any, time: Time) -> None:
        owner = new_owner(timezone="Asia/Vladivostok")
        salon = Salon.opened(
            owner.api(), rules=[{"weekday": "mon", "start": "00:00", "end": "24:00"}]
        )
        salon.book(f"{DAY}T00:00", "First")
        salon.book(f"{DAY}T23:00", "Last")
        reply = calendar(owner, date=DAY)
        assert reply["timezone"] == "Asia/Vladivostok"
        assert names(reply["days"][0]) == ["First", "Last"]
        assert clock_times(reply["days"][0]["staff"][0]["opened"]) == ["14:00-14:00"]
        for other in ("2027-01-17", "2027-01-19"):
            assert names(calendar(owner, date=other)["days"][0]) == []
        time.now = datetime(2027, 1, 17, 14, tzinfo=UTC)
        assert calendar(owner)["today"] == DAY
        time.now = datetime(2027, 1, 17, 13, 59, tzinfo=UTC)
        assert calendar(owner)["today"] == "2027-01-17"

    @pytest.mark.parametrize(("day", "hours"), [("2027-03-28", 23), ("2027-10-31", 25)])
    def test_a_day_of_a_clock_change_has_all_its_hours(
        self, day: str, hours: int, new_owner: Any, time: Time
    ) -> None:
        owner = new_owner(timezone="Europe/Berlin")
        rules = [{"weekday": "sun", "start": "00:00", "end": "24:00"}]
        salon = Salon.opened(owner.api(), rules=rules, horizonDays=365)
        (staff,) = calendar(owner, date=day)["days"][0]["staff"]
        ((start, end),) = [
            [datetime.fromisoformat(period[name]) for name in ("startAt", "endAt")]
            for period in staff["opened"]
        ]
        assert end - start == timedelta(hours=hours)
        salon.book(f"{day}T00:00", "First")
        salon.book(f"{day}T23:00", "Last")
        assert names(calendar(owner, date=day)["days"][0]) == ["First", "Last"]

    def test_hours_of_a_staff_member_in_another_zone_are_cut_to_the_day(
        self, new_owner: Any, time: Time
    ) -> None:
        owner = new_owner(timezone="Asia/Vladivostok")
        Salon.opened(owner.api(), [{"timezone": "Europe/Moscow"}])
        (staff,) = calendar(owner, date=DAY)["days"][0]["staff"]
        # Vladivostok is seven hours ahead: 09:00 to 18:00 in Moscow is 16:00 to 01:00 there.
        assert clock_times(staff["opened"]) == ["14:00-15:00", "06:00-14:00"]


class TestWeek:
    def test_a_week_begins_on_monday_and_has_its_days(self, owner: Owner, salon: Salon) -> None:
        salon.book("2027-01-18T10:00", "Mon")
        salon.book("2027-01-24T10:00", "Sun")
        salon.book("2027-01-25T10:00", "Next")
        reply = calendar(owner, view="week", date="2027-01-21")
        assert [day["date"] for day in reply["days"]] == [f"2027-01-{d}" for d in range(18, 25)]
        assert [names(day) for day in reply["days"]] == [["Mon"], *[[]] * 5, ["Sun"]]
        assert reply["days"][0]["staff"][0]["free"] == []
        member_week = calendar(owner, view="week", date="2027-01-21", resourceId=salon.resource)
        assert len(member_week["days"][2]["staff"][0]["free"]) == 1

    def test_days_with_many_bookings_are_cut_first(
        self, owner: Owner, salon: Salon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staff_calendar, "MAX_SHOWN", 4)
        for hour in range(10, 15):
            salon.book(f"2027-01-18T{hour}:00", f"C {hour}")
        salon.book("2027-01-20T10:00", "Wed")
        reply = calendar(owner, view="week", date="2027-01-18")
        assert [day["total"] for day in reply["days"]] == [5, 0, 1, 0, 0, 0, 0]
        assert [names(day) for day in reply["days"]][:3] == [
            ["C 10", "C 11", "C 12"],
            [],
            ["Wed"],
        ]
        assert (reply["total"], reply["shown"]) == (6, 4)


@pytest.mark.store
class TestReads:
    def test_a_calendar_with_many_bookings_reads_less_than_sixty_units(
        self, api: Api, owner: Owner, time: Time, is_dynamodb_local: bool
    ) -> None:
        salon = Salon.opened(api, [{}] * 6)
        for number in range(200):
            start = datetime(2027, 1, 18, 6, tzinfo=UTC) + timedelta(minutes=3 * number)
            store_booking(owner.workspace.id, salon.resources[number % 6], start, minutes=30)
        for view in ("day", "week"):
            with metering() as usage:
                reply = calendar(owner, date=DAY, view=view)
            assert (reply["total"], reply["shown"]) == (200, 60)
            assert usage.round_trips <= 9, usage.calls
            if is_dynamodb_local:
                assert usage.reads < 60

    def test_a_booking_is_shown_right_after_it_was_made_or_moved(
        self, owner: Owner, salon: Salon
    ) -> None:
        booking = salon.book(f"{DAY}T10:00")
        assert names(calendar(owner, date=DAY)["days"][0]) == ["Ada"]
        salon.api.post(
            "/api/bookings/reschedule", {"id": booking["id"], "startAt": "2027-01-19T10:00"}
        )
        assert names(calendar(owner, date=DAY)["days"][0]) == []
        assert names(calendar(owner, date="2027-01-19")["days"][0]) == ["Ada"]
