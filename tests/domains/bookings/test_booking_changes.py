"""Tests of the status and of moves of bookings."""

import pytest

from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.engine.listing import counters
from tests.conftest import Api, Owner, Time
from tests.factories.salon import LIST, Salon, check_calendars, invalid, refusal

RESCHEDULE = "/api/bookings/reschedule"


class TestStatus:
    def test_any_status_may_follow_any_and_the_history_records_each(
        self, api: Api, owner: Owner, salon: Salon, time: Time
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        walk = ["completed", "no_show", "pending_payment", "cancelled", "confirmed", "completed"]
        for status in walk:
            time.pass_by(minutes=1)
            answer = salon.set_status(booking_id, status, reason=f"to {status}")
            assert answer.data["booking"]["status"] == status
            check_calendars(owner.workspace.id, salon.resources)
        current = api.get(f"/api/bookings/{booking_id}")["booking"]
        assert current == answer.data["booking"]
        assert [event["status"] for event in current["statusHistory"]] == ["confirmed", *walk]
        assert current["statusHistory"][1] | {"by": ""} == {
            "status": "completed",
            "at": "2027-01-15T12:01:00.000Z",
            "by": "",
            "reason": "to completed",
            "move": None,
        }
        assert counters.read(owner.workspace.id, noun=BOOKINGS.noun) == {
            "total": 1,
            "status:completed": 1,
        }

    def test_the_same_status_changes_nothing(self, api: Api, salon: Salon) -> None:
        booking = salon.book("2027-01-18T10:00")
        same = {"startAt": "2027-01-18T10:00", "resourceId": salon.resource}
        for fields in ({}, {"reason": "again"}, same):
            answer = salon.set_status(booking["id"], "confirmed", **fields)
            assert answer.data["booking"] == booking
        assert api.get(f"/api/bookings/{booking['id']}")["booking"] == booking

    @pytest.mark.parametrize("given_up", ["cancelled", "no_show"])
    @pytest.mark.parametrize("back", ["pending_payment", "confirmed", "completed"])
    def test_a_cancelled_booking_is_restored_only_while_its_time_is_free(
        self, given_up: str, back: str, api: Api, owner: Owner, salon: Salon
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        salon.set_status(booking_id, given_up)
        other = salon.book("2027-01-18T10:00", "Bob")["id"]
        refusal(salon.set_status(booking_id, back))
        salon.set_status(other, "cancelled")
        assert salon.set_status(booking_id, back).data["booking"]["status"] == back
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_restored_booking_needs_its_own_buffers_before_and_after(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        """The booking from 12:00 to 13:00 needs the time from 11:00 to 13:15."""
        salon = Salon.opened(api, slotStepMin=15, bufferBeforeMin=60, bufferAfterMin=15)
        booking_id = salon.book("2027-01-18T12:00")["id"]
        salon.set_status(booking_id, "cancelled")
        no_buffers = {"bufferBeforeMin": 0, "bufferAfterMin": 0}
        api.post("/api/services/update", {"id": salon.service, **no_buffers})
        for start in ("10:15", "13:00"):
            other = salon.book(f"2027-01-18T{start}", "Bob")["id"]
            refusal(salon.set_status(booking_id, "confirmed"))
            salon.set_status(other, "cancelled")
        for start in ("10:00", "13:15"):
            salon.book(f"2027-01-18T{start}", "Bob")
        assert salon.set_status(booking_id, "confirmed").status == 200
        check_calendars(owner.workspace.id, salon.resources)

    def test_restoring_ignores_the_schedule_but_not_a_deleted_resource(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        salon.set_status(booking_id, "cancelled")
        salon.set_hours(api, salon.resource, [])
        time.pass_by(days=30)
        assert salon.set_status(booking_id, "confirmed").status == 200
        salon.set_status(booking_id, "cancelled")
        api.post("/api/resources/delete", {"id": salon.resource})
        refusal(salon.set_status(booking_id, "confirmed"), "no_resources")
        assert salon.set_status(booking_id, "no_show").status == 200

    def test_changes_between_confirmed_and_completed_check_nothing(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        api.post("/api/resources/delete", {"id": salon.resource, "force": True})
        start = {"startAt": "2027-01-18T10:00+03:00", "resourceId": salon.resource}
        assert salon.set_status(booking_id, "completed", **start).status == 200
        assert salon.set_status(booking_id, "confirmed").status == 200
        check_calendars(owner.workspace.id, salon.resources)


class TestMove:
    def test_a_move_keeps_the_booking_and_adds_a_line_of_history(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        old = salon.book("2027-01-18T10:00", notes="n")
        api.post("/api/services/update", {"id": salon.service, "price": 1})
        answer = salon.set_status(
            old["id"], "confirmed", startAt="2027-01-19T11:00", reason="Asked to"
        )
        booking = answer.data["booking"]
        assert (booking["startLocal"], booking["price"]) == ("2027-01-19T11:00:00+03:00", 150_000)
        assert (booking["id"], booking["notes"], booking["durationMin"]) == (old["id"], "n", 60)
        assert booking["statusHistory"][-1]["move"] == {
            "from": {
                "startAt": old["startAt"],
                "resourceId": salon.resource,
                "resourceName": "Stylist 0",
            },
            "to": {
                "startAt": booking["startAt"],
                "resourceId": salon.resource,
                "resourceName": "Stylist 0",
            },
        }
        assert booking["statusHistory"][-1]["reason"] == "Asked to"
        assert salon.book("2027-01-18T10:00", "Bob")
        refusal(salon.try_to_book("2027-01-19T11:00", "Bob"))
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_moved_booking_needs_its_own_buffers_before_and_after(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        """At 12:00 it needs the time from 11:00 to 13:15."""
        salon = Salon.opened(api, slotStepMin=15, bufferBeforeMin=60, bufferAfterMin=15)
        booking_id = salon.book("2027-01-18T16:00")["id"]
        no_buffers = {"bufferBeforeMin": 0, "bufferAfterMin": 0}
        api.post("/api/services/update", {"id": salon.service, **no_buffers})
        for start in ("10:00", "13:15"):
            salon.book(f"2027-01-18T{start}", "Bob")
        for start in ("11:45", "12:15"):
            refusal(salon.set_status(booking_id, "confirmed", startAt=f"2027-01-18T{start}"))
        assert salon.set_status(booking_id, "confirmed", startAt="2027-01-18T12:00").status == 200
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_booking_does_not_block_its_own_move(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        salon = Salon.opened(api, slotStepMin=15)
        booking_id = salon.book("2027-01-18T10:00")["id"]
        query = {"first": "2027-01-18T10:15", "to": "2027-01-18T10:45", "bookingId": booking_id}
        assert len(salon.starts(**query)) == 3
        body = {"id": booking_id, "startAt": "2027-01-18T10:15"}
        assert api.post(RESCHEDULE, body)["booking"]["startLocal"][11:16] == "10:15"
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_move_to_another_resource_takes_its_name_and_zone(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        salon = Salon.opened(api, [{}, {"timezone": "Europe/Berlin"}])
        first, second = salon.resources
        old = salon.book("2027-01-18T11:00+03:00", resourceId=first)
        booking = api.post(RESCHEDULE, {"id": old["id"], "resourceId": second})["booking"]
        assert (booking["resourceId"], booking["resourceName"]) == (second, "Stylist 1")
        assert (booking["startAt"], booking["timezone"]) == (old["startAt"], "Europe/Berlin")
        assert booking["startLocal"] == "2027-01-18T09:00:00+01:00"
        totals = [
            api.get(f"{LIST}?resourceId={id_}")["pagination"]["total"] for id_ in (first, second)
        ]
        assert totals == [0, 1]
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_move_to_a_blocked_time_is_refused_and_changes_nothing(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        booking = salon.book("2027-01-18T10:00")
        salon.book("2027-01-18T12:00", "Bob")
        data = refusal(salon.set_status(booking["id"], "confirmed", startAt="2027-01-18T12:00"))
        starts = [alternative["startLocal"][11:16] for alternative in data["alternatives"]]
        assert "10:00" in starts
        cases = [("2027-01-18T20:00", "closed"), ("2027-01-18T12:30", "closed")]
        for start, reason in cases:
            refusal(salon.set_status(booking["id"], "confirmed", startAt=start), reason)
        invalid(salon.set_status(booking["id"], "confirmed", startAt="2027-01-15T10:00"), "startAt")
        other = Salon.opened(api).resource
        refusal(salon.set_status(booking["id"], "confirmed", resourceId=other), "not_bound")
        assert salon.set_status(booking["id"], "confirmed", resourceId="none").status == 404
        assert api.get(f"/api/bookings/{booking['id']}")["booking"] == booking
        check_calendars(owner.workspace.id, salon.resources)

    def test_moving_a_cancelled_booking_makes_it_block_time_again(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        id_ = salon.book("2027-01-18T10:00")["id"]
        salon.set_status(id_, "cancelled")
        invalid(salon.set_status(id_, "cancelled", startAt="2027-01-18T12:00"), "startAt")
        invalid(api.call("POST", RESCHEDULE, {"id": id_, "startAt": "2027-01-18T12:00"}), "startAt")
        booking = salon.set_status(id_, "confirmed", startAt="2027-01-18T12:00").data["booking"]
        assert (booking["status"], booking["startLocal"][11:16]) == ("confirmed", "12:00")
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_move_needs_a_destination(self, api: Api, salon: Salon) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        assert api.call_refused("POST", RESCHEDULE, {"id": booking_id}).status == 400

    def test_a_booking_of_a_deleted_service_moves_only_without_the_schedule(
        self, api: Api, owner: Owner, salon: Salon
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        api.post("/api/services/delete", {"id": salon.service})
        body = {"id": booking_id, "startAt": "2027-01-18T12:00"}
        refusal(api.call("POST", RESCHEDULE, body), "service_inactive")
        booking = api.post(RESCHEDULE, body | {"ignoreSchedule": True})["booking"]
        assert booking["startLocal"][11:16] == "12:00"
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_move_over_midnight_with_buffers_updates_every_calendar_day(
        self, api: Api, owner: Owner, time: Time
    ) -> None:
        rules = [{"weekdays": ["mon", "tue", "wed"], "start": "00:00", "end": "24:00"}]
        salon = Salon.opened(
            api,
            [{"timezone": "UTC"}],
            rules,
            durationMin=1440,
            slotStepMin=60,
            bufferBeforeMin=480,
            bufferAfterMin=480,
        )
        booking_id = salon.book("2027-01-18T12:00")["id"]
        check_calendars(owner.workspace.id, salon.resources)
        api.post(RESCHEDULE, {"id": booking_id, "startAt": "2027-01-19T23:00"})
        check_calendars(owner.workspace.id, salon.resources)
        salon.set_status(booking_id, "cancelled")
        check_calendars(owner.workspace.id, salon.resources)
