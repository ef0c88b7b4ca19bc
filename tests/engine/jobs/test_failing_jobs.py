"""Jobs that fail or cannot be read are retried and do not delay other jobs."""

import logging
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from infra.bench.dynamodb.usage import metering
from tests.conftest import Time
from tests.engine.jobs.conftest import Worker, rows, spoil, stage
from tests.fakes.dynamodb_faults import failing, throttled, timed_out

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


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
        is_dynamodb_local: bool,
    ) -> None:
        if "N" in (spoilt.get("not_before") or {}) and not is_dynamodb_local:
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
