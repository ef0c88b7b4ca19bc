"""Scheduled jobs: run once they are due, kept while they fail, and never repeated once finished."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from threading import Barrier, Event, Lock, Thread
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from chalicelib.core import clock
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.jobs import JOB_HANDLERS, job_handler
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.engine.unit import UnitOfWork
from infra.bench.dynamodb_usage import metering
from tests.conftest import Time, at_once
from tests.engine.test_unit import failing, throttled, timed_out
from tests.support.effort import examples
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

WORKSPACE = "w1"


class Worker:
    """A job handler that records its calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tried: list[str] = []
        self.fails: Callable[[str], bool] = lambda _: False
        self.lock = Lock()

    def __call__(self, job: jobs.JobRow) -> None:
        name = job.payload["name"]
        with self.lock:
            self.tried.append(name)
        if self.fails(name):
            raise OSError("no luck")
        with self.lock:
            self.done.append(name)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def stage(name: str, due_at: datetime | None = None, kind: str = "tidy") -> jobs.JobRow:
    unit = UnitOfWork(WORKSPACE, "test")
    job = jobs.row(kind, WORKSPACE, {"name": name}, due_at, job_id=name)
    unit.create(job)
    unit.commit()
    return job


def cancel(job: jobs.JobRow) -> None:
    unit = UnitOfWork(WORKSPACE, "test")
    unit.delete(job)
    unit.commit()


def rows() -> int:
    return sum(jobs.JobRow.count(jobs._partition(shard)) for shard in range(jobs.SHARDS))


def spoil(job: jobs.JobRow, **attributes: dict[str, Any] | None) -> None:
    """Corrupt a stored job: set invalid attributes, or remove some."""
    client, table = connection().client, jobs.JobRow.Meta.table_name
    key = {"pk": {"S": job.pk}, "sk": {"S": job.sk}}
    item = client.get_item(TableName=table, Key=key)["Item"] | attributes
    item = {name: value for name, value in item.items() if value is not None}
    client.put_item(TableName=table, Item=item)


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

    def test_the_oldest_job_runs_first(self, worker: Worker, time: Time) -> None:
        for age in (3, 1, 4, 2):
            stage(f"{age}", time.now - timedelta(minutes=age))
        jobs.run({"tidy": worker})
        assert worker.done == ["4", "3", "2", "1"]


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
            cancel(jobs.ref("tidy", due, f"{number}"))
        assert rows() == 0

    def test_a_job_that_failed_before_can_be_cancelled(self, worker: Worker, time: Time) -> None:
        job = stage("a")
        worker.fails = lambda _: True
        for _ in range(3):
            jobs.run({"tidy": worker})
            time.pass_by(hours=1)
        cancel(jobs.ref("tidy", time.now - timedelta(hours=3), "a"))
        assert (rows(), job.sk) == (0, job.sk)

    def test_one_id_may_be_used_by_several_kinds(self, time: Time) -> None:
        due = time.now
        stage("a", due, "lapse")
        stage("a", due, "remind")
        cancel(jobs.ref("lapse", due, "a"))
        assert rows() == 1

    def test_a_failed_unit_of_work_schedules_no_job(self, time: Time) -> None:
        unit = UnitOfWork(WORKSPACE, "test")
        unit.create(jobs.row("tidy", WORKSPACE, {}))
        unit.require(jobs.ref("tidy", time.now, "missing"))
        with pytest.raises(ConcurrentUpdateError):
            unit.commit()
        assert rows() == 0


class TestFailures:
    def test_a_job_that_fails_stays_until_it_succeeds(self, worker: Worker, time: Time) -> None:
        stage("a")
        worker.fails = lambda _: True
        for _ in range(3):
            assert jobs.run({"tidy": worker}) == {"tidy": 0}
            time.pass_by(hours=5)
        worker.fails = lambda _: False
        assert jobs.run({"tidy": worker}) == {"tidy": 1}
        assert rows() == 0

    def test_a_failed_job_is_retried_after_a_minute(self, worker: Worker, time: Time) -> None:
        stage("a")
        worker.fails = lambda _: len(worker.tried) == 1
        jobs.run({"tidy": worker})
        time.pass_by(seconds=59)
        assert jobs.run({"tidy": worker}) == {"tidy": 0}
        time.pass_by(seconds=1)
        assert jobs.run({"tidy": worker}) == {"tidy": 1}

    def test_a_failing_job_delays_no_other(self, worker: Worker, time: Time) -> None:
        worker.fails = lambda name: name == "bad"
        for name in ("bad", "good", "fine"):
            stage(name)
        jobs.run({"tidy": worker})
        assert sorted(worker.done) == ["fine", "good"]
        assert rows() == 1

    def test_retries_wait_longer_each_time_cost_little_and_never_stop(
        self, worker: Worker, time: Time
    ) -> None:
        stage("bad")
        worker.fails = lambda _: True
        tried: list[datetime] = []
        watched: jobs.Work = lambda job: tried.append(time.now) or worker(job)  # noqa: E731
        for _ in range(40):
            jobs.run({"tidy": watched})
            time.pass_by(hours=1)
        rests = [later - earlier for earlier, later in pairwise(tried)]
        assert rests == sorted(rests)
        assert max(rests) == jobs.LONGEST_PAUSE
        time.pass_by(hours=6)
        jobs.run({"tidy": watched})
        with metering() as usage:
            jobs.run({"tidy": watched})
        assert usage.calls == ["Query"] * jobs.SHARDS
        for _ in range(50):  # more attempts than a time span can be doubled
            time.pass_by(hours=6)
            jobs.run({"tidy": watched})
        assert len(tried) > 50
        assert rows() == 1

    def test_a_job_that_kills_its_runner_is_delayed_and_others_run(
        self, worker: Worker, time: Time
    ) -> None:
        class Killed(BaseException):
            pass

        def kill(job: jobs.JobRow) -> None:
            raise Killed

        deadly, later = time.now, time.now + timedelta(seconds=1)
        stage("deadly", deadly, "deadly")
        stage("good", later)
        time.pass_by(seconds=1)
        handlers: dict[str, jobs.Work] = {"deadly": kill, "tidy": worker}
        with pytest.raises(Killed):
            jobs.run(handlers)
        assert jobs.run(handlers) == {"deadly": 0, "tidy": 1}
        time.pass_by(minutes=5, seconds=59)  # a Lambda function may still be working on it
        assert jobs.run(handlers) == {"deadly": 0, "tidy": 0}
        time.pass_by(seconds=1)
        with pytest.raises(Killed):
            jobs.run(handlers)

    def test_a_job_that_failed_in_its_request_is_left_to_the_runner(
        self, worker: Worker, time: Time
    ) -> None:
        job = stage("a")
        worker.fails = lambda _: len(worker.tried) == 1
        assert not jobs.attempt(job, worker)
        assert jobs.run({"tidy": worker}) == {"tidy": 1}

    def test_a_lease_whose_answer_is_lost_is_still_used(self, worker: Worker, time: Time) -> None:
        stage("a")
        lost: list[str] = []

        def lose(**_: Any) -> None:
            if not lost:
                lost.append("the answer")
                raise timed_out()

        events = connection().client.meta.events
        events.register("after-call.dynamodb.UpdateItem", lose)
        try:
            assert jobs.run({"tidy": worker}) == {"tidy": 1}
        finally:
            events.unregister("after-call.dynamodb.UpdateItem", lose)
        assert (lost, rows()) == (["the answer"], 0)

    def test_refused_leases_end_the_run_and_lose_no_job(self, worker: Worker, time: Time) -> None:
        for name in "abc":
            stage(name)
        with failing("UpdateItem", 1000, throttled):
            assert jobs.run({"tidy": worker}) == {"tidy": 0}
        assert jobs.run({"tidy": worker}) == {"tidy": 3}


class TestMalformedRows:
    @pytest.mark.parametrize(
        "spoilt",
        [
            {"payload": {"S": "{not json"}},
            {"payload": {"N": "7"}},
            {"payload": None},
            {"payload": {"S": '{"other": 1}'}},
            {"payload": {"S": "[]"}},
            {"kind": {"S": "unheard-of"}},
            {"kind": {"N": "1"}},
            {"kind": None},
            {"workspace_id": None},
            {"tries": {"S": "many"}},
            {"tries": None},
            {"tries": {"N": "-3"}},
            {"not_before": {"S": "soon"}},
            {"not_before": {"N": "5"}},
            {"kind": None, "payload": None, "tries": None, "workspace_id": None},
        ],
        ids=str,
    )
    def test_malformed_rows_are_logged_and_delayed_while_others_run(
        self,
        spoilt: dict[str, Any],
        worker: Worker,
        time: Time,
        caplog: pytest.LogCaptureFixture,
        on_dynamodb_local: bool,
    ) -> None:
        if "N" in (spoilt.get("not_before") or {}) and not on_dynamodb_local:
            pytest.skip("moto fails where DynamoDB compares a number with a text")
        for name in ("before", "spoilt", "after"):
            time.pass_by(seconds=1)
            job = stage(name)
            if name == "spoilt":
                spoil(job, **spoilt)
        with caplog.at_level(logging.ERROR):
            jobs.run({"tidy": worker})
        assert {"before", "after"} <= set(worker.done)
        if "spoilt" not in worker.done:
            assert caplog.records
            assert rows() == 1
            with metering() as usage:
                jobs.run({"tidy": worker})
            assert usage.calls == ["Query"] * jobs.SHARDS, "it rests"

    def test_a_row_of_an_unknown_kind_runs_once_the_kind_is_deployed(
        self, worker: Worker, time: Time
    ) -> None:
        stage("a", kind="new")
        jobs.run({"tidy": worker})
        time.pass_by(minutes=1)
        assert jobs.run({"tidy": worker, "new": worker}) == {"tidy": 0, "new": 1}

    def test_a_row_with_only_corrupt_bookkeeping_is_repaired(
        self, worker: Worker, time: Time
    ) -> None:
        spoil(stage("a"), tries={"S": "many"}, not_before={"S": "x"})
        jobs.run({"tidy": worker})
        time.pass_by(minutes=1)
        jobs.run({"tidy": worker})
        assert (worker.done, rows()) == (["a"], 0)


class TestOverlappingRuns:
    def test_eight_runners_run_each_job_once(self, worker: Worker) -> None:
        for number in range(40):
            stage(f"{number}")
        done = at_once(8, lambda _: jobs.run({"tidy": worker})["tidy"])
        assert sum(done) == 40
        assert Counter(worker.done) == {f"{number}": 1 for number in range(40)}
        assert rows() == 0

    def test_eight_runners_do_not_duplicate_a_failing_job(self, worker: Worker) -> None:
        for number in range(10):
            stage(f"{number}")
        worker.fails = lambda _: True
        at_once(8, lambda _: jobs.run({"tidy": worker}))
        assert Counter(worker.tried) == {f"{number}": 1 for number in range(10)}
        assert rows() == 10

    @pytest.mark.parametrize("fails", [False, True])
    def test_a_job_finished_elsewhere_during_a_run_is_not_restored(self, fails: bool) -> None:
        job, begun, finished = stage("a"), Event(), Event()

        def work(_: jobs.JobRow) -> None:
            begun.set()
            assert finished.wait(PATIENCE)
            if fails:
                raise OSError("too late")

        runner = Thread(target=lambda: jobs.run({"tidy": work}))
        runner.start()
        assert begun.wait(PATIENCE)
        cancel(job)
        finished.set()
        runner.join(PATIENCE)
        assert rows() == 0

    def test_a_runner_with_an_outdated_read_does_not_repeat_a_job(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage("a")
        read, due = Barrier(5), jobs._due
        worker.fails = lambda _: True

        def wait(now: datetime) -> Any:
            found = due(now)
            read.wait(PATIENCE)
            return found

        monkeypatch.setattr(jobs, "_due", wait)
        at_once(5, lambda _: jobs.run({"tidy": worker}, stop=lambda: bool(worker.tried)))
        assert worker.tried == ["a"]
        assert rows() == 1

    def test_a_runner_that_outlives_its_lease_does_not_undo_the_next_run(
        self, worker: Worker, time: Time
    ) -> None:
        stage("a")

        def slow(job: jobs.JobRow) -> None:
            time.pass_by(minutes=7)
            jobs.run({"tidy": worker})
            raise OSError("after the lease")

        jobs.run({"tidy": slow})
        assert (worker.done, rows()) == (["a"], 0)


class TestFairness:
    @pytest.fixture
    def watch(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The runner's clock. Handlers advance it by their duration."""
        shows = [0.0]
        monkeypatch.setattr(jobs, "monotonic", lambda: shows[0])
        return shows

    def test_a_huge_backlog_of_slow_jobs_does_not_delay_short_ones(
        self, worker: Worker, time: Time, watch: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "BATCH", 10)
        for number in range(100):
            stage(f"{number}", time.now - timedelta(days=1), "purge")
        for number in range(10):
            stage(f"{number}", time.now - timedelta(seconds=number), "lapse")

        def purge(_: jobs.JobRow) -> None:
            watch[0] += 10

        handlers: dict[str, jobs.Work] = {"purge": purge, "lapse": worker}
        done = jobs.run(handlers, stop=lambda: watch[0] >= 30)
        assert done["lapse"] == 10
        assert 0 < done["purge"] <= 3

    def test_jobs_that_become_due_during_a_long_run_are_done_in_it(
        self, worker: Worker, time: Time, watch: list[float]
    ) -> None:
        stage("hold", time.now + timedelta(seconds=60), "lapse")
        for number in range(30):
            stage(f"{number}", kind="purge")

        def purge(_: jobs.JobRow) -> None:
            watch[0] += 10
            time.pass_by(seconds=10)

        jobs.run({"purge": purge, "lapse": worker}, stop=lambda: watch[0] >= 120)
        assert worker.done == ["hold"]

    def test_a_backlog_of_any_size_is_completed(
        self, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "BATCH", 3)
        for number in range(40):
            stage(f"{number}", kind=("tidy", "purge")[number % 2])
        assert jobs.run({"tidy": worker, "purge": worker}) == {"tidy": 20, "purge": 20}

    def test_each_query_of_a_backlog_reads_at_most_one_batch_per_shard(
        self, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "BATCH", 2)
        for number in range(60):
            stage(f"{number}", time.now - timedelta(hours=1), "purge")
        stage("hold", kind="lapse")
        sent: list[Any] = []
        read = jobs.JobRow.from_raw_data
        monkeypatch.setattr(jobs.JobRow, "from_raw_data", lambda d: sent.append(d) or read(d))
        jobs.run({"purge": worker, "lapse": worker}, stop=lambda: bool(sent))
        assert len(sent) == 2 * jobs.SHARDS + 1

    def test_a_shard_full_of_unreadable_rows_hides_no_job(
        self, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jobs, "BATCH", 2)
        for number in range(30):
            spoil(stage(f"{number}", time.now - timedelta(hours=1)), kind=None)
        stage("good")
        assert jobs.run({"tidy": worker}) == {"tidy": 1}
        assert rows() == 30

    def test_a_run_that_is_out_of_time_stops_and_loses_no_job(
        self, worker: Worker, time: Time
    ) -> None:
        for name in "abcdef":
            stage(name)
        jobs.run({"tidy": worker}, stop=lambda: len(worker.done) >= 2)
        assert len(worker.done) == 2
        jobs.run({"tidy": worker})
        assert sorted(worker.done) == list("abcdef")


class TestCosts:
    @pytest.mark.parametrize("minute", [0, 1, 9, 59])
    def test_an_idle_minute_costs_one_query_per_shard_for_any_number_of_kinds(
        self, minute: int, worker: Worker, time: Time, on_dynamodb_local: bool
    ) -> None:
        for number in range(50):
            stage(f"{number}", time.now + timedelta(days=1))
        time.pass_by(minutes=minute)
        with metering() as usage:
            jobs.run({f"kind-{number}": worker for number in range(20)})
        assert usage.calls == ["Query"] * jobs.SHARDS
        if on_dynamodb_local:
            assert usage.units <= 0.5 * jobs.SHARDS

    def test_a_job_costs_a_lease_and_a_deletion(self, worker: Worker, time: Time) -> None:
        stage("a")
        with metering() as usage:
            jobs.run({"tidy": worker})
        assert usage.calls == [*["Query"] * jobs.SHARDS, "UpdateItem", "DeleteItem"]

    def test_jobs_spread_over_all_shards(self, time: Time) -> None:
        places = {jobs.row("tidy", WORKSPACE, {}).pk for _ in range(200)}
        assert len(places) == jobs.SHARDS


def test_a_kind_has_only_one_handler() -> None:
    kind = next(iter(JOB_HANDLERS))
    with pytest.raises(ValueError, match=kind):
        job_handler(kind)(lambda _: None)


@pytest.fixture
def _machine_time() -> Iterator[None]:
    with clock.using(lambda: Machine.time.now):
        yield


class Machine(RuleBasedStateMachine):
    """Random sequences of scheduling, cancelling, failures, corruption and nested runs."""

    time = Time()
    numbers = iter(range(10**9))

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, jobs.JobRow] = {}
        self.due: dict[str, datetime] = {}
        self.spoilt: set[str] = set()
        self.gone: set[str] = set()
        self.failing = False
        self.within = 0
        self.cancels = False

    @rule(minutes=st.integers(-5, 90), kind=st.sampled_from(["tidy", "lapse"]))
    def schedule(self, minutes: int, kind: str) -> None:
        name = f"{next(Machine.numbers)}"
        self.due[name] = self.time.now + timedelta(minutes=minutes)
        self.waiting[name] = stage(name, self.due[name], kind)

    @rule(data=st.data())
    def cancel_one(self, data: st.DataObject) -> None:
        if self.waiting:
            self._cancel(data.draw(st.sampled_from(sorted(self.waiting))))

    def _cancel(self, name: str) -> None:
        job = self.waiting.pop(name)
        cancel(jobs.ref(job.kind, self.due[name], name))
        self.gone.add(name)

    @rule(data=st.data())
    def spoil_one(self, data: st.DataObject) -> None:
        whole = sorted(set(self.waiting) - self.spoilt)
        if whole:
            name = data.draw(st.sampled_from(whole))
            self.spoilt.add(name)
            spoil(self.waiting[name], payload={"S": "{"})

    @rule(minutes=st.integers(0, 400))
    def wait(self, minutes: int) -> None:
        self.time.pass_by(minutes=minutes)

    @rule(failing=st.booleans(), cancels=st.booleans())
    def behave(self, failing: bool, cancels: bool) -> None:
        self.failing, self.cancels = failing, cancels

    @rule(batch=st.sampled_from([1, 2, 100]))
    def run(self, batch: int) -> None:
        jobs.BATCH = batch
        jobs.run({"tidy": self._work, "lapse": self._work})
        jobs.BATCH = 100

    def _work(self, job: jobs.JobRow) -> None:
        name = job.payload["name"]
        assert name not in self.gone, "finished work came back"
        assert self.due[name] <= self.time.now, "too early"
        if self.within < 2:
            self.within += 1
            jobs.run({"tidy": self._work, "lapse": self._work})
            self.within -= 1
        if self.cancels:  # Another process does the work early, at this moment.
            self._cancel(name)
        if self.failing:
            raise OSError("no luck")
        self.waiting.pop(name, None)
        self.gone.add(name)

    @invariant()
    def every_job_not_done_has_its_one_row(self) -> None:
        assert rows() == len(self.waiting)

    def teardown(self) -> None:
        self.failing = self.cancels = False
        for _ in range(2):
            self.time.pass_by(days=1)
            self.run(100)
        assert set(self.waiting) == self.spoilt - self.gone
        for name in list(self.waiting):
            self._cancel(name)


@pytest.mark.usefixtures("_machine_time")
def test_random_histories_run_each_due_job_once() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Machine,
        settings=examples(30, stateful_step_count=20),
    )
