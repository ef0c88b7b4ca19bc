"""Concurrent runners share jobs fairly and at a bounded cost."""

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from chalicelib.core.jobs import JobKind, Queue
from chalicelib.engine import jobs
from infra.bench.dynamodb.usage import metering
from tests.conftest import Time, run_concurrently
from tests.engine.jobs.conftest import WORKSPACE, Worker, cancel, rows, spoil, stage
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


class TestOverlappingRuns:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_eight_runners_run_each_job_once(self, threads: int, worker: Worker) -> None:
        for number in range(40):
            stage(f"{number}")
        runs = run_concurrently(8, lambda _: jobs.run({"tidy": worker}, threads=threads)["tidy"])
        assert sum(runs) == 40
        assert Counter(worker.done) == {f"{number}": 1 for number in range(40)}
        assert rows() == 0

    def test_eight_runners_do_not_duplicate_a_failing_job(self, worker: Worker) -> None:
        for number in range(10):
            stage(f"{number}")
        worker.fails = lambda _: True
        run_concurrently(8, lambda _: jobs.run({"tidy": worker}))
        assert Counter(worker.tried) == {f"{number}": 1 for number in range(10)}
        assert rows() == 10

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_killed_runners_lose_no_job_and_no_job_runs_twice_at_the_same_time(
        self, moment: str, threads: int, worker: Worker, time: Time
    ) -> None:
        class Killed(BaseException):
            pass

        deadly = {f"{number}" for number in range(0, 60, 7)}
        for number in range(60):
            stage(f"{number}")
        running, overlapping, killed = Counter[str](), set[str](), set[str]()

        def kill(name: str) -> None:
            if name in deadly and name not in killed:
                killed.add(name)
                raise Killed

        def work(job: jobs.JobRow) -> None:
            name = job.payload["name"]
            running[name] += 1
            if running[name] > 1:
                overlapping.add(name)
            try:
                if moment == "before":
                    kill(name)
                worker(job)
                if moment == "after":
                    kill(name)
            finally:
                running[name] -= 1

        def run(_: int) -> None:
            with suppress(Killed):
                jobs.run({"tidy": work}, threads=threads)

        run_concurrently(8, run)
        assert killed
        while rows():
            time.pass_by(minutes=6, seconds=1)  # the leases of killed runners end
            run_concurrently(8, run)
        assert killed == deadly
        assert overlapping == set()
        times = {name: 2 if moment == "after" and name in deadly else 1 for name in worker.done}
        assert Counter(worker.done) == times
        assert len(times) == 60

    def test_a_runner_leaves_a_shard_on_whose_jobs_others_were_quicker(
        self, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(60):
            stage(f"{number}")
        due = jobs._due
        outdated = due(Queue.MAIN, jobs.clock.now())
        assert jobs.run({"tidy": worker}) == {"tidy": 60}
        monkeypatch.setattr(jobs, "_due", lambda *_: outdated)
        with metering() as usage:
            assert jobs.run({"tidy": worker}) == {"tidy": 0}
        assert usage.calls == ["UpdateItem"] * jobs.SHARDS * jobs.LOST_LEASES

    def test_a_runner_that_left_a_shard_reads_it_again_and_does_the_rest(
        self, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        waiting = [stage(f"{number}") for number in range(60)]
        reads, due = list[Any](), jobs._due

        def finish_some_elsewhere(*place: Any) -> Any:
            reads.append(due(*place))
            for shard in range(1, jobs.SHARDS) if len(reads) == 1 else ():
                there = [job for job in waiting if job.pk == jobs._partition(shard)]
                for job in sorted(there, key=lambda job: job.sk)[: jobs.LOST_LEASES]:
                    cancel(job)
            return reads[-1]

        monkeypatch.setattr(jobs, "_due", finish_some_elsewhere)
        runs = jobs.run({"tidy": worker})["tidy"]
        assert runs == len(waiting) - jobs.LOST_LEASES * (jobs.SHARDS - 1)
        assert (rows(), len(reads)) == (0, 2)

    @pytest.mark.parametrize("first", range(jobs.SHARDS))
    def test_a_runner_begins_at_a_random_shard(
        self, first: int, worker: Worker, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shards = {f"{number}": stage(f"{number}").pk for number in range(40)}
        monkeypatch.setattr(jobs.random, "randrange", lambda _: first)
        jobs.run({"tidy": worker})
        order = list(dict.fromkeys(shards[name] for name in worker.done))
        numbers = [(first + number) % jobs.SHARDS for number in range(jobs.SHARDS)]
        assert order == [jobs._partition(number) for number in numbers]

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

        def wait(*place: Any) -> Any:
            due_job = due(*place)
            read.wait(PATIENCE)
            return due_job

        monkeypatch.setattr(jobs, "_due", wait)
        run_concurrently(5, lambda _: jobs.run({"tidy": worker}, stop=lambda: bool(worker.tried)))
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


class TestThreads:
    def test_a_run_does_as_many_jobs_at_the_same_time_as_it_has_threads(
        self, worker: Worker, time: Time
    ) -> None:
        together = Barrier(3)
        for number in range(9):
            stage(f"{number}")

        def work(job: jobs.JobRow) -> None:
            together.wait(PATIENCE)
            worker(job)

        assert jobs.run({"tidy": work}, threads=3) == {"tidy": 9}
        assert (sorted(worker.done), rows()) == ([f"{number}" for number in range(9)], 0)

    def test_threads_of_a_run_never_try_the_same_lease(self, worker: Worker, time: Time) -> None:
        for number in range(30):
            stage(f"{number}")
        with metering() as usage:
            jobs.run({"tidy": worker}, threads=4)
        assert Counter(usage.calls)["UpdateItem"] == 30

    def test_a_slow_kind_leaves_threads_to_other_kinds(self, worker: Worker, time: Time) -> None:
        for number in range(6):
            stage(f"slow-{number}", kind="slow")
            stage(f"{number}")
        others_are_done = Event()

        def slow(_: jobs.JobRow) -> None:
            assert others_are_done.wait(PATIENCE)

        def quick(job: jobs.JobRow) -> None:
            worker(job)
            if len(worker.done) == 6:
                others_are_done.set()

        assert jobs.run({"slow": slow, "tidy": quick}, threads=2) == {"slow": 6, "tidy": 6}

    def test_an_error_that_ends_a_thread_is_raised_after_the_other_jobs_of_the_round(
        self, worker: Worker, time: Time
    ) -> None:
        class Killed(BaseException):
            pass

        def kill(job: jobs.JobRow) -> None:
            if job.payload["name"] == "deadly":
                raise Killed
            worker(job)

        for name in ("deadly", "good", "fine"):
            stage(name)
        with pytest.raises(Killed):
            jobs.run({"tidy": kill}, threads=2)
        assert (sorted(worker.done), rows()) == (["fine", "good"], 1)

    def test_each_failure_in_a_thread_lets_its_job_pause(self, worker: Worker, time: Time) -> None:
        worker.fails = lambda name: name == "bad"
        for name in ("bad", "good", "fine"):
            stage(name)
        assert jobs.run({"tidy": worker}, threads=3) == {"tidy": 2}
        assert jobs.run({"tidy": worker}, threads=3) == {"tidy": 0}
        time.pass_by(minutes=1)
        worker.fails = lambda _: False
        assert jobs.run({"tidy": worker}, threads=3) == {"tidy": 1}


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
        runs = jobs.run(handlers, stop=lambda: watch[0] >= 30)
        assert runs["lapse"] == 10
        assert 0 < runs["purge"] <= 3

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
        queries: list[Any] = []
        read = jobs.JobRow.from_raw_data
        monkeypatch.setattr(jobs.JobRow, "from_raw_data", lambda d: queries.append(d) or read(d))
        jobs.run({"purge": worker, "lapse": worker}, stop=lambda: bool(queries))
        assert len(queries) == 2 * jobs.SHARDS + 1

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
        self, minute: int, worker: Worker, time: Time, is_dynamodb_local: bool
    ) -> None:
        for number in range(50):
            stage(f"{number}", time.now + timedelta(days=1))
        time.pass_by(minutes=minute)
        with metering() as usage:
            jobs.run({f"kind-{number}": worker for number in range(20)})
        assert usage.calls == ["Query"] * jobs.SHARDS
        if is_dynamodb_local:
            assert usage.units <= 0.5 * jobs.SHARDS

    def test_all_shards_are_read_side_by_side(self, worker: Worker, time: Time) -> None:
        with metering(latency=0.05) as usage:
            jobs.run({"tidy": worker})
        assert (usage.round_trips, usage.waves) == (jobs.SHARDS, 1)
        with metering(latency=0.05) as usage:
            jobs.oldest_due()
        assert (usage.round_trips, usage.waves) == (jobs.SHARDS, 1)

    def test_a_job_costs_a_lease_and_a_deletion(self, worker: Worker, time: Time) -> None:
        stage("a")
        with metering() as usage:
            jobs.run({"tidy": worker})
        assert usage.calls == [*["Query"] * jobs.SHARDS, "UpdateItem", "DeleteItem"]

    def test_jobs_spread_over_all_shards(self, time: Time) -> None:
        places = {jobs.row(JobKind("tidy"), WORKSPACE, {}).pk for _ in range(200)}
        assert len(places) == jobs.SHARDS
