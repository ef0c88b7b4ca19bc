"""The search for free slots."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from tests.conftest import Api, Owner, Time
from tests.factories.salon import ALL_DAYS, Salon, invalid


class TestSlots:
    def test_slots_are_the_steps_of_the_hours_without_booked_times(self, salon: Salon) -> None:
        salon.book("2027-01-18T11:00")
        page = salon.search(first="2027-01-18", to="2027-01-18")
        hours = ["09", "10", "12", "13", "14", "15", "16", "17"]
        assert [slot["startLocal"] for slot in page["slots"]] == [
            f"2027-01-18T{hour}:00:00+03:00" for hour in hours
        ]
        assert page["slots"][0] == {
            "startAt": "2027-01-18T06:00:00.000Z",
            "endAt": "2027-01-18T07:00:00.000Z",
            "startLocal": "2027-01-18T09:00:00+03:00",
            "weekday": "mon",
            "resourceIds": salon.resources,
            "free": 1,
        }
        assert page["resources"] == [
            {
                "id": salon.resource,
                "name": "Stylist 0",
                "timezone": "Europe/Moscow",
                "price": None,
                "durationMin": None,
            }
        ]
        assert (page["timezone"], page["durationMin"], page["stepMin"]) == (
            "Europe/Moscow",
            60,
            60,
        )
        assert (page["nextFrom"], page["reason"], page["nextAvailable"]) == (None, None, None)

    def test_slots_of_the_next_seven_days_are_the_default(self, salon: Salon) -> None:
        starts = salon.starts()
        assert (starts[0], starts[-1]) == ("2027-01-15T15:00", "2027-01-22T14:00")

    @pytest.mark.parametrize(
        ("first", "last"),
        [
            ("2027-03-25", "2027-03-31T23:00"),
            ("2027-03-25T12:00", "2027-04-01T11:00"),
            ("2027-10-28", "2027-11-03T23:00"),
            ("2027-10-28T12:00+02:00", "2027-11-04T11:00"),
        ],
    )
    def test_seven_days_end_at_the_same_local_time_after_a_clock_change(
        self, first: str, last: str, api: Api, time: Time
    ) -> None:
        rules = [{"weekdays": ALL_DAYS, "start": "00:00", "end": "24:00"}]
        salon = Salon.opened(api, [{"timezone": "Europe/Berlin"}], rules, horizonDays=365)
        assert salon.starts(first=first)[-1] == last

    def test_both_ends_of_a_range_are_included(self, salon: Salon) -> None:
        assert salon.starts(first="2027-01-18T10:00", to="2027-01-18T12:00") == [
            "2027-01-18T10:00",
            "2027-01-18T11:00",
            "2027-01-18T12:00",
        ]

    def test_an_offset_whose_plus_became_a_space_is_read(self, salon: Salon) -> None:
        query = "from=2027-01-18T10:00 03:00&to=2027-01-18T11:00 03:00"
        page = salon.api.get(f"/api/bookings/slots?serviceId={salon.service}&{query}")
        assert [slot["startLocal"][:16] for slot in page["slots"]] == [
            "2027-01-18T10:00",
            "2027-01-18T11:00",
        ]

    def test_slots_are_labelled_and_read_in_the_requested_zone(self, salon: Salon) -> None:
        page = salon.search(first="2027-01-18T06:00", to="2027-01-18T11:59", timezone="UTC")
        assert [slot["startLocal"] for slot in page["slots"]][:1] == ["2027-01-18T06:00:00+00:00"]
        assert (page["timezone"], len(page["slots"])) == ("UTC", 6)
        for zone in ("localtime", "Factory", "Mars/Phobos"):
            answer = salon.api.call(
                "GET", f"/api/bookings/slots?serviceId={salon.service}&timezone={zone}"
            )
            invalid(answer, "timezone")

    def test_slots_beyond_the_limit_continue_from_next_from(self, salon: Salon) -> None:
        first, seen = "2027-01-18", []
        while first:
            page = salon.search(first=first, to="2027-01-19", limit=7)
            assert len(page["slots"]) <= 7
            seen += [slot["startLocal"][:16] for slot in page["slots"]]
            first = page["nextFrom"]
        assert seen == salon.starts(first="2027-01-18", to="2027-01-19")
        assert len(seen) == 18

    def test_a_month_of_slots_returns_the_first_40_and_the_next_start(self, salon: Salon) -> None:
        page = salon.search(first="2027-01-18", to="2027-02-17")
        assert len(page["slots"]) == 40
        following = salon.search(first=page["nextFrom"], to="2027-02-17")["slots"][0]
        assert following["startAt"] == page["nextFrom"]
        assert following["startAt"] > page["slots"][-1]["startAt"]

    def test_a_whole_day_of_slots_fits_one_response(self, api: Api, time: Time) -> None:
        salon = Salon.opened(api, slotStepMin=5)
        for last in ("2027-01-18", "2027-01-19"):
            page = salon.search(first="2027-01-18", to=last)
            assert len(page["slots"]) == 97
            assert {slot["startLocal"][:10] for slot in page["slots"]} == {"2027-01-18"}
        assert page["nextFrom"] == "2027-01-19T06:00:00.000Z"

    @pytest.mark.parametrize("last", ["2027-02-17", "2027-02-17T23:59:59+03:00"])
    def test_a_range_spans_at_most_31_local_dates(self, last: str, salon: Salon) -> None:
        assert salon.starts(first="2027-01-18", to=last)
        answer = salon.api.call(
            "GET",
            f"/api/bookings/slots?serviceId={salon.service}&from=2027-01-18&to=2027-02-18",
        )
        assert "31 days" in invalid(answer, "to")

    def test_october_in_berlin_is_31_dates(self, api: Api, time: Time) -> None:
        time.now = datetime(2027, 9, 1, tzinfo=UTC)
        salon = Salon.opened(api, [{"timezone": "Europe/Berlin"}])
        assert len(salon.starts(first="2027-10-01", to="2027-10-31")) == 31 * 9

    def test_to_before_from_is_refused(self, salon: Salon) -> None:
        answer = salon.api.call(
            "GET",
            f"/api/bookings/slots?serviceId={salon.service}&from=2027-01-19&to=2027-01-18",
        )
        invalid(answer, "to")

    def test_slots_of_alternative_resources_name_all_that_are_free(
        self, api: Api, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {"capacity": 3}])
        salon.book("2027-01-18T10:00", resourceId=salon.resources[0])
        nine, ten = salon.search(first="2027-01-18T09:00", to="2027-01-18T10:00")["slots"]
        assert (nine["resourceIds"], nine["free"]) == (salon.resources, 4)
        assert (ten["resourceIds"], ten["free"]) == (salon.resources[1:], 3)
        only = salon.search(first="2027-01-18", to="2027-01-18", resourceId=salon.resources[0])
        assert [resource["id"] for resource in only["resources"]] == salon.resources[:1]
        assert len(only["slots"]) == 8

    @pytest.mark.parametrize("path", ["bookings/slots?serviceId=", "public/services/{}/slots?x="])
    def test_a_resource_of_another_workspace_is_404_like_an_unknown_one(
        self, path: str, api: Api, salon: Salon, new_owner: Callable[..., Owner]
    ) -> None:
        theirs = Salon.opened(new_owner().api()).resource
        path = f"/api/{path.format(salon.service)}"
        if path.endswith("="):
            path += salon.service
        visitor = Api(None) if "public" in path else api
        messages = []
        for resource in (theirs, new_id(), "unknown", "x" * 64):
            answer = visitor.call_refused("GET", f"{path}&resourceId={resource}")
            assert (answer.status, answer.data["code"]) == (404, "not_found")
            assert answer.data["key"] == "resource"
            messages.append(answer.data["message"])
        assert len(set(messages)) == 1
        failed, result = api.tool(
            "svc_get_available_slots", serviceId=salon.service, resourceId=theirs
        )
        assert failed
        assert "not_found" in str(result)

    def test_an_empty_list_gives_the_reason_and_the_next_available_time(
        self, api: Api, time: Time, salon: Salon
    ) -> None:
        def why(of: Salon, **query: Any) -> tuple[str, Any]:
            response = of.search(**{"first": "2027-01-18", "to": "2027-01-18", **query})
            assert response["slots"] == []
            following = response["nextAvailable"]
            return response["reason"], following and following["startLocal"][:16]

        set_hours = salon.set_hours
        assert why(salon, first="2027-01-01", to="2027-01-02") == (
            "too_little_notice",
            "2027-01-15T15:00",
        )
        assert why(salon, first="2026-01-01", to="2026-01-02") == (
            "too_little_notice",
            "2027-01-15T15:00",
        )
        assert why(salon, resourceId=Salon.opened(api).resource) == ("not_bound", None)
        assert why(salon, first="2027-06-01", to="2027-06-02") == ("outside_horizon", None)
        assert why(Salon.opened(api, [])) == ("no_resources", None)
        assert why(Salon.opened(api, status="inactive")) == ("service_inactive", None)
        assert why(Salon.opened(api, rules=[])) == ("no_schedule", None)
        assert why(Salon.opened(api, durationMin=600)) == ("does_not_fit", None)
        body = {"startAt": "2027-01-18", "endAt": "2027-02-20", "resourceId": salon.resource}
        off = api.post("/api/resources/create-time-off", body)["timeOff"]["id"]
        assert why(salon) == ("time_off", "2027-02-21T09:00")
        api.post("/api/resources/delete-time-off", {"id": off})
        set_hours(api, salon.resource, [{"weekday": "sun", "start": "09:00", "end": "10:00"}])
        assert why(salon) == ("closed", "2027-01-24T09:00")
        salon.book("2027-01-24T09:00")
        assert why(salon, first="2027-01-24", to="2027-01-24") == (
            "fully_booked",
            "2027-01-31T09:00",
        )
        api.post("/api/resources/update", {"id": salon.resource, "status": "inactive"})
        assert why(salon) == ("no_resources", None)
        assert salon.try_to_book("2027-01-31T09:00").data["reason"] == "no_resources"

    def test_slots_for_a_move_have_the_bookings_length_and_ignore_the_booking(
        self, api: Api, salon: Salon
    ) -> None:
        booking = salon.book("2027-01-18T10:00")
        api.post("/api/services/update", {"id": salon.service, "durationMin": 180})
        query = {"first": "2027-01-18T09:00", "to": "2027-01-18T12:00"}
        assert salon.starts(**query) == ["2027-01-18T12:00"]
        page = salon.search(**query, bookingId=booking["id"])
        assert (page["durationMin"], page["stepMin"]) == (60, 180)
        other = Salon.opened(api)
        answer = api.call(
            "GET", f"/api/bookings/slots?serviceId={other.service}&bookingId={booking['id']}"
        )
        invalid(answer, "bookingId")
