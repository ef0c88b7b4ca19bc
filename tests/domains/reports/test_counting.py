"""Changes are counted once, whoever reads at the same time, and whenever they are written."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.core import clock, deadline
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.core.unit import AuditEvent
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.overview.flows import emptying
from chalicelib.domains.reports.flows import counting
from chalicelib.domains.reports.rules.job_kinds import COUNT_REPORTS
from chalicelib.domains.reports.store import sums
from chalicelib.engine import audit, jobs
from chalicelib.engine.unit import UnitOfWork, run_unit
from infra.bench.dynamodb.usage import metering
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.factories.salon import Salon

PERIOD = "/api/reports?from=2027-01-01&to=2027-02-28"
PRICE = 150_000


def totals(api: Api) -> Any:
    report = api.get(PERIOD)
    assert report["isComplete"]
    return report["totals"]


def test_a_move_is_counted_on_the_new_day_only(api: Api, salon: Salon) -> None:
    booking = salon.book("2027-01-18T10:00")["id"]
    assert totals(api)["revenue"] == PRICE
    body = {"id": booking, "startAt": "2027-01-27T12:00"}
    api.post("/api/bookings/reschedule", body)
    weeks = {week["date"]: week["revenue"] for week in api.get(PERIOD)["weeks"]}
    assert (weeks["2027-01-18"], weeks["2027-01-25"]) == (0, PRICE)


def test_a_reading_without_a_change_writes_nothing(
    api: Api, salon: Salon, owner: Owner, time: Time
) -> None:
    salon.book("2027-01-18T10:00")
    first = totals(api)
    with metering() as usage:
        again = call_console(owner.workspace.id, "get_money_report")["report"]
    assert {*usage.calls} <= {"GetItem", "Query", "BatchGetItem"}
    assert again["totals"]["visitors"] == first["visitors"]


def test_readers_at_once_count_a_change_once(api: Api, salon: Salon, owner: Owner) -> None:
    assert totals(api)["bookings"] == 0
    for hour in range(9, 15):
        salon.book(f"2027-01-18T{hour:02}:00", f"Client {hour}")
    period = {"from": "2027-01-01", "to": "2027-02-28"}
    reports = run_concurrently(
        6, lambda _: call_console(owner.workspace.id, "get_money_report", **period)["report"]
    )
    assert {report["totals"]["revenue"] for report in reports} == {6 * PRICE}
    assert totals(api)["revenue"] == 6 * PRICE


def test_a_change_that_is_written_late_is_counted(
    api: Api, salon: Salon, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id in the audit log is older than a reading that could not see it."""
    booking = BOOKINGS.require(owner.workspace.id, record_id=salon.book("2027-01-18T10:00")["id"])
    time.pass_by(hours=2)
    salon.book("2027-01-19T10:00")
    made = time.now
    time.pass_by(minutes=1)
    assert totals(api)["cancelled"] == 0

    def cancel(unit: UnitOfWork) -> None:
        booking.status = "cancelled"
        unit.save(booking)

    real = audit.row

    def late(tenant: str, event: AuditEvent) -> audit.AuditRow:
        with clock.using(lambda: made):
            return real(tenant, event)

    with monkeypatch.context() as patch:
        patch.setattr(audit, "row", late)
        run_unit(owner.workspace.id, AuditEvent("set_booking_status", "somebody"), cancel)
    assert totals(api)["cancelled"] == 1


def test_many_changes_are_counted_in_several_pages(
    api: Api, salon: Salon, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert totals(api)["bookings"] == 0
    monkeypatch.setattr(counting, "PAGE", 2)
    for hour in range(9, 16):
        salon.book(f"2027-01-18T{hour:02}:00")
    assert totals(api)["bookings"] == 7


class TestFirstCount:
    def test_a_count_that_takes_too_long_goes_on_in_a_job(
        self, api: Api, salon: Salon, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(counting, "BATCH", 1)
        for hour in range(9, 13):
            salon.book(f"2027-01-18T{hour:02}:00")
        time.pass_by(days=1)  # The log's last minutes do not name them any more.
        with monkeypatch.context() as patch:
            patch.setattr(counting.Deadline, "passed", True)
            assert not api.get(PERIOD)["isComplete"]
        time.pass_by(minutes=2)
        jobs.run(JOB_HANDLERS)
        with monkeypatch.context() as patch:
            patch.setattr(counting.Deadline, "passed", True)
            assert totals(api)["bookings"] == 4

    def test_another_zone_counts_all_days_anew(self, api: Api, salon: Salon, owner: Owner) -> None:
        salon.book("2027-01-18T01:00", ignoreSchedule=True)
        assert totals(api)["bookings"] == 1
        call_console(owner.workspace.id, "set_workspace", timezone="America/New_York")
        weeks = {week["date"]: week["visits"] for week in api.get(PERIOD)["weeks"]}
        assert (weeks["2027-01-11"], weeks["2027-01-18"]) == (1, 0)

    def test_changes_that_the_log_no_longer_has_are_found(
        self, api: Api, salon: Salon, owner: Owner, time: Time
    ) -> None:
        assert totals(api)["bookings"] == 0
        salon.book("2027-01-18T10:00")
        time.pass_by(days=100)
        assert totals(api)["bookings"] == 1


class TestNights:
    def count_at_night(self, time: Time) -> int:
        time.pass_by(days=1)
        return jobs.run(JOB_HANDLERS)[COUNT_REPORTS]

    def test_a_job_counts_the_changes_of_each_day(
        self, api: Api, salon: Salon, owner: Owner, time: Time
    ) -> None:
        totals(api)
        salon.book("2027-01-18T10:00")
        assert self.count_at_night(time) == 1
        week = sums.read_weeks(owner.workspace.id, ["2027-01-18"])
        assert week.days["2027-01-18"]["revenue"] == PRICE

    def test_the_job_ends_when_nobody_reads_reports_and_begins_again(
        self, api: Api, salon: Salon, time: Time
    ) -> None:
        totals(api)
        nights = [self.count_at_night(time) for _ in range(35)]
        assert nights == [1] * 30 + [0] * 5
        totals(api)
        assert self.count_at_night(time) == 1


def test_the_jobs_of_many_workspaces_are_spread_over_the_night(time: Time) -> None:
    time.now = datetime(2027, 1, 15, 12, tzinfo=UTC)
    nights = [counting._next_night(new_id()) for _ in range(500)]
    assert all(datetime(2027, 1, 16, 2, tzinfo=UTC) <= night for night in nights)
    assert all(night < datetime(2027, 1, 16, 5, tzinfo=UTC) for night in nights)
    assert max(Counter(nights).values()) < 20


def test_deleting_the_records_of_a_workspace_deletes_its_sums(
    api: Api, salon: Salon, owner: Owner
) -> None:
    salon.book("2027-01-18T10:00")
    totals(api)
    workspace_id = owner.workspace.id
    emptying.delete_records(jobs.row(emptying.WIPE, workspace_id, {}))
    for pk in (sums.partition(workspace_id), sums.counted_partition(workspace_id)):
        assert sums.WeekRow.partition(pk) == []
    assert totals(api)["bookings"] == 0
    assert workspaces.get(workspace_id).timezone


def test_a_deadline_of_the_request_bounds_the_count() -> None:
    with deadline.within(0):
        assert counting.Deadline(8.0).passed
    assert timedelta(seconds=29) < counting.OVERLAP
