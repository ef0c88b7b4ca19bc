"""Holds of unpaid bookings, and the job that ends them."""

import pytest

from chalicelib.core import jobs as job_kinds
from chalicelib.engine import jobs
from tests.conftest import Api, Owner, Time, all_rows
from tests.factories.salon import Salon, check_calendars, refusal


class TestHolds:
    @pytest.fixture
    def salon(self, api: Api, time: Time) -> Salon:
        return Salon.opened(api, requirePayment=True)

    @staticmethod
    def run_jobs() -> dict[str, int]:
        return jobs.run(job_kinds.JOB_HANDLERS)

    def test_a_hold_lapses_after_half_an_hour_and_frees_its_time(
        self, api: Api, owner: Owner, salon: Salon, time: Time
    ) -> None:
        booking = salon.book("2027-01-18T10:00")
        assert booking["status"] == "pending_payment"
        assert booking["holdExpiresAt"] == "2027-01-15T12:30:00.000Z"
        time.pass_by(minutes=29, seconds=59)
        refusal(salon.try_to_book("2027-01-18T10:00", "Bob"))
        self.run_jobs()
        time.pass_by(seconds=1)
        assert "2027-01-18T10:00" in salon.starts(first="2027-01-18", to="2027-01-18")
        assert salon.book("2027-01-18T10:00", "Bob")
        check_calendars(owner.workspace.id, salon.resources)
        assert self.run_jobs()["lapse-of-hold"] == 1
        lapsed = api.get(f"/api/bookings/{booking['id']}")["booking"]
        assert (lapsed["status"], lapsed["holdExpiresAt"]) == ("cancelled", None)
        assert lapsed["statusHistory"][-1]["by"] == "job"
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_lapsed_hold_whose_time_was_booked_cannot_be_confirmed(
        self, owner: Owner, salon: Salon, time: Time
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        time.pass_by(minutes=31)
        salon.book("2027-01-18T10:00", "Bob")
        time.pass_by(minutes=1)
        refusal(salon.set_status(booking_id, "confirmed"))
        check_calendars(owner.workspace.id, salon.resources)

    def test_a_lapsed_hold_can_be_confirmed_while_its_time_is_free(
        self, owner: Owner, salon: Salon, time: Time
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        time.pass_by(minutes=31)
        confirmed = salon.set_status(booking_id, "confirmed").data["booking"]
        assert confirmed["holdExpiresAt"] is None
        assert self.run_jobs().get("lapse-of-hold", 0) == 0
        check_calendars(owner.workspace.id, salon.resources)
        refusal(salon.try_to_book("2027-01-18T10:00", "Bob"))

    def test_the_job_cancels_only_the_hold_it_was_scheduled_for(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        booking_id = salon.book("2027-01-18T10:00")["id"]
        job = next(row for key, row in all_rows().items() if "lapse-of-hold" in key)
        salon.set_status(booking_id, "confirmed")
        time.pass_by(minutes=1)
        salon.set_status(booking_id, "pending_payment")
        time.pass_by(hours=1)
        job_row = jobs.JobRow.from_raw_data(job)
        job_kinds.JOB_HANDLERS["lapse-of-hold"](job_row)
        assert api.get(f"/api/bookings/{booking_id}")["booking"]["status"] == "pending_payment"

    @pytest.mark.parametrize("status", ["confirmed", "pending_payment"])
    def test_a_status_given_by_the_caller_is_not_a_hold(
        self, status: str, salon: Salon, time: Time
    ) -> None:
        booking = salon.book("2027-01-18T10:00", status=status)
        assert (booking["status"], booking["holdExpiresAt"]) == (status, None)
        time.pass_by(hours=1)
        refusal(salon.try_to_book("2027-01-18T10:00", "Bob"))

    def test_a_moved_hold_lapses_at_the_original_time(
        self, api: Api, owner: Owner, salon: Salon, time: Time
    ) -> None:
        booking = salon.book("2027-01-18T10:00")
        response = salon.set_status(booking["id"], "pending_payment", startAt="2027-01-18T12:00")
        assert response.data["booking"]["holdExpiresAt"] == booking["holdExpiresAt"]
        check_calendars(owner.workspace.id, salon.resources)
        time.pass_by(minutes=30)
        assert self.run_jobs()["lapse-of-hold"] == 1
        assert api.get(f"/api/bookings/{booking['id']}")["booking"]["status"] == "cancelled"
