"""Scheduled jobs run once they are due, unless they were cancelled."""

from datetime import timedelta

import pytest

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.jobs import JOB_HANDLERS, JobKind, Postponed, job_handler
from chalicelib.engine import jobs
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb.usage import metering
from tests.conftest import Time
from tests.engine.jobs.conftest import WORKSPACE, Worker, cancel, rows, spoil, stage

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


class TestBacklog:
    def test_the_backlog_is_as_old_as_the_job_that_is_overdue_the_longest(
        self, worker: Worker, time: Time
    ) -> None:
        assert jobs.oldest_due() is None
        first = time.now + timedelta(minutes=1, milliseconds=7)
        for number in range(20):
            stage(f"j{number}", first + timedelta(seconds=number))
        assert jobs.oldest_due() is None, "nothing is due"
        time.now = first
        assert jobs.oldest_due() == first
        time.pass_by(hours=1)
        assert jobs.oldest_due() == first
        jobs.run({"tidy": worker})
        assert jobs.oldest_due() is None

    def test_a_failing_job_counts_while_it_waits_for_a_retry(
        self, worker: Worker, time: Time
    ) -> None:
        due, worker.fails = time.now, lambda _: True
        stage("broken")
        jobs.run({"tidy": worker})
        time.pass_by(seconds=5)
        assert jobs.oldest_due() == due

    def test_an_unreadable_job_counts_and_is_not_logged_here(
        self, time: Time, caplog: pytest.LogCaptureFixture
    ) -> None:
        spoil(stage("spoilt"), kind=None, payload=None)
        assert jobs.oldest_due() == time.now
        assert not caplog.records

    def test_measuring_the_backlog_costs_one_small_read_per_shard(self, time: Time) -> None:
        for number in range(50):
            stage(f"j{number}")
        with metering() as usage:
            jobs.oldest_due()
        assert usage.calls == ["Query"] * jobs.SHARDS


class TestDueTimes:
    def test_a_due_job_runs_once_and_is_removed(self, worker: Worker, time: Time) -> None:
        stage("a")
        assert jobs.run({"tidy": worker}) == {"tidy": 1}
        assert jobs.run({"tidy": worker}) == {"tidy": 0}
        assert worker.done == ["a"]
        assert rows() == 0

    def test_a_job_does_not_run_before_its_time(self, worker: Worker, time: Time) -> None:
        due = time.now + timedelta(minutes=30, milliseconds=1)
        stage("hold", due)
        time.now = due - timedelta(milliseconds=1)
        jobs.run({"tidy": worker})
        assert worker.done == []
        time.now = due
        jobs.run({"tidy": worker})
        assert worker.done == ["hold"]

    def test_a_postponed_job_runs_again_with_its_id_and_its_payload(
        self, worker: Worker, time: Time
    ) -> None:
        later = time.now + timedelta(hours=1)

        def postpone(job: jobs.JobRow) -> None:
            if time.now < later:
                raise Postponed(later)
            worker(job)

        stage("a")
        assert jobs.run({"tidy": postpone}) == {"tidy": 1}
        assert (worker.done, rows()) == ([], 1)
        time.now = later
        jobs.run({"tidy": postpone})
        assert (worker.done, rows()) == (["a"], 0)

    def test_the_due_time_may_be_in_any_zone(self, worker: Worker, time: Time) -> None:
        from zoneinfo import ZoneInfo

        local = (time.now + timedelta(hours=1)).astimezone(ZoneInfo("Asia/Tokyo"))
        stage("a", local)
        jobs.run({"tidy": worker})
        assert worker.done == []
        time.pass_by(hours=1)
        jobs.run({"tidy": worker})
        assert worker.done == ["a"]

    def test_a_runner_that_was_off_for_weeks_misses_no_job(
        self, worker: Worker, time: Time
    ) -> None:
        stage("a")
        time.pass_by(days=21)
        assert jobs.run({"tidy": worker}) == {"tidy": 1}

    def test_a_job_written_late_by_a_slow_clock_still_runs(
        self, worker: Worker, time: Time
    ) -> None:
        for _ in range(3):
            jobs.run({"tidy": worker})
            time.pass_by(hours=1)
        stage("late", time.now - timedelta(hours=2))
        jobs.run({"tidy": worker})
        assert worker.done == ["late"]

    def test_the_oldest_job_of_a_shard_runs_first(self, worker: Worker, time: Time) -> None:
        names = [f"{number}" for number in range(40)]
        due = {name: time.now - timedelta(minutes=number % 7) for number, name in enumerate(names)}
        shards = {name: stage(name, due[name]).pk for name in names}
        jobs.run({"tidy": worker})
        assert len(set(shards.values())) == jobs.SHARDS
        for shard in set(shards.values()):
            done_jobs = [due[name] for name in worker.done if shards[name] == shard]
            assert done_jobs == sorted(done_jobs)


class TestCancellation:
    def test_a_transaction_that_does_the_work_early_cancels_the_job(
        self, worker: Worker, time: Time
    ) -> None:
        job = stage("a", time.now + timedelta(minutes=30))
        cancel(job)
        time.pass_by(minutes=31)
        jobs.run({"tidy": worker})
        assert (worker.tried, rows()) == ([], 0)

    def test_a_jobs_key_is_derived_from_kind_time_and_id(self, worker: Worker, time: Time) -> None:
        due = time.now + timedelta(minutes=30)
        for number in range(20):
            stage(f"{number}", due)
        for number in range(20):
            cancel(jobs.ref(JobKind("tidy"), due, f"{number}"))
        assert rows() == 0

    def test_a_job_that_failed_before_can_be_cancelled(self, worker: Worker, time: Time) -> None:
        job = stage("a")
        worker.fails = lambda _: True
        for _ in range(3):
            jobs.run({"tidy": worker})
            time.pass_by(hours=1)
        cancel(jobs.ref(JobKind("tidy"), time.now - timedelta(hours=3), "a"))
        assert (rows(), job.sk) == (0, job.sk)

    def test_one_id_may_be_used_by_several_kinds(self, time: Time) -> None:
        due = time.now
        stage("a", due, "lapse")
        stage("a", due, "remind")
        cancel(jobs.ref(JobKind("lapse"), due, "a"))
        assert rows() == 1

    def test_a_failed_unit_of_work_schedules_no_job(self, time: Time) -> None:
        unit = UnitOfWork(WORKSPACE, "test")
        unit.create(jobs.row(JobKind("tidy"), WORKSPACE, {}))
        unit.require(jobs.ref(JobKind("tidy"), time.now, "missing"))
        with pytest.raises(ConcurrentUpdateError):
            unit.commit()
        assert rows() == 0


def test_a_kind_has_only_one_handler() -> None:
    kind = next(iter(JOB_HANDLERS))
    with pytest.raises(ValueError, match=kind):
        job_handler(kind)(lambda _: None)


class TestChanges:
    """Jobs that follow changes (``for_changes``)."""

    def test_changes_of_ten_seconds_share_a_few_jobs(self, worker: Worker, time: Time) -> None:
        for _ in range(100):
            jobs.schedule(jobs.for_changes(JobKind("tidy"), WORKSPACE))
            time.pass_by(milliseconds=90)
        assert rows() <= jobs.CHANGES_SPREAD
        jobs.schedule(jobs.for_changes(JobKind("tidy"), "another"))
        rows_before = rows()
        time.pass_by(seconds=1)
        jobs.schedule(jobs.for_changes(JobKind("tidy"), WORKSPACE))
        assert rows() == rows_before + 1, "the next ten seconds"

    def test_a_job_is_due_after_the_change_and_within_ten_seconds(self, time: Time) -> None:
        for _ in range(30):
            due = jobs.for_changes(JobKind("tidy"), WORKSPACE).due_at
            assert time.now < due <= time.now + timedelta(seconds=10)
            time.pass_by(milliseconds=700)

    def test_a_job_that_is_written_again_while_it_runs_runs_again(
        self, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "CHANGES_SPREAD", 1)
        job, runs = jobs.for_changes(JobKind("tidy"), WORKSPACE), list[str]()
        jobs.schedule(job)

        def work(running: jobs.JobRow) -> None:
            runs.append(running.job_id)
            if len(runs) == 1:
                next_ref = jobs.ref(JobKind("tidy"), job.due_at, job.job_id)
                next_ref.kind, next_ref.workspace_id = job.kind, job.workspace_id
                next_ref.payload, next_ref.tries = {}, 0
                jobs.schedule(next_ref)

        time.pass_by(seconds=10)
        jobs.run({"tidy": work})
        jobs.run({"tidy": work})
        assert len(runs) == 2
        assert rows() == 0
