"""Due work: done once it is due, kept when it fails, found however long the runner was away."""

from datetime import datetime
from itertools import pairwise

import pytest

from chalicelib.store import jobs
from chalicelib.store.unit import UnitOfWork
from infra.dynamodb_usage import metering
from tests.conftest import Owner, Time, everything

pytestmark = pytest.mark.store


class Worker:
    """Handlers that remember what they were given."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False

    def __call__(self, work: jobs.JobRow) -> None:
        if self.fails:
            raise OSError("no luck")
        self.done.append(work.payload["name"])


@pytest.fixture
def worker() -> Worker:
    return Worker()


def stage(owner: Owner, name: str, time: Time | None = None) -> None:
    unit = UnitOfWork(owner.workspace.id, "test")
    unit.create(jobs.row("tidy", owner.workspace.id, {"name": name}, time and time.now))
    unit.commit()


def rows() -> int:
    return sum("DUE#tidy#" in key for key in everything())


def test_work_due_now_is_done_once_and_removed(owner: Owner, worker: Worker, time: Time) -> None:
    stage(owner, "a")
    assert jobs.run({"tidy": worker}) == {"tidy": 1}
    assert jobs.run({"tidy": worker}) == {"tidy": 0}
    assert worker.done == ["a"]
    assert rows() == 0


def test_work_waits_for_its_time(owner: Owner, worker: Worker, time: Time) -> None:
    time.pass_by(days=30)
    stage(owner, "later", time)
    time.pass_by(days=-30)
    jobs.run({"tidy": worker})
    time.pass_by(days=29, hours=23)
    jobs.run({"tidy": worker})
    assert worker.done == []
    time.pass_by(hours=1, minutes=1)
    jobs.run({"tidy": worker})
    assert worker.done == ["later"]


def test_failed_work_stays_until_it_succeeds(owner: Owner, worker: Worker, time: Time) -> None:
    stage(owner, "a")
    worker.fails = True
    for _ in range(3):
        assert jobs.run({"tidy": worker}) == {"tidy": 0}
        time.pass_by(hours=5)
    worker.fails = False
    assert jobs.run({"tidy": worker}) == {"tidy": 1}
    assert rows() == 0


def test_a_runner_that_was_away_for_weeks_misses_nothing(
    owner: Owner, worker: Worker, time: Time
) -> None:
    jobs.run({"tidy": worker})
    time.pass_by(minutes=5)
    stage(owner, "a")
    time.pass_by(days=21)
    assert jobs.run({"tidy": worker}) == {"tidy": 1}


def test_an_idle_run_costs_a_few_small_reads(owner: Owner, worker: Worker, time: Time) -> None:
    jobs.run({"tidy": worker})
    time.pass_by(hours=1)
    jobs.run({"tidy": worker})
    with metering() as usage:
        jobs.run({"tidy": worker})
    assert usage.calls.count("Query") <= 2 * jobs.SHARDS
    assert set(usage.calls) <= {"GetItem", "Query", "PutItem"}


def test_time_that_is_up_stops_the_run_and_loses_nothing(
    owner: Owner, worker: Worker, time: Time
) -> None:
    for name in "abcdef":
        stage(owner, name)
    jobs.run({"tidy": worker}, stop=lambda: len(worker.done) >= 2)
    assert len(worker.done) == 2
    jobs.run({"tidy": worker})
    assert sorted(worker.done) == list("abcdef")


def test_one_piece_that_keeps_failing_does_not_hold_up_the_rest(owner: Owner, time: Time) -> None:
    done = []

    def work(row: jobs.JobRow) -> None:
        if row.payload["name"] == "bad":
            raise OSError("never")
        done.append(row.payload["name"])

    for name in ("bad", "good", "fine"):
        stage(owner, name)
    jobs.run({"tidy": work})
    assert sorted(done) == ["fine", "good"]
    assert rows() == 1


def test_work_that_always_fails_rests_longer_each_time_and_costs_little(
    owner: Owner, worker: Worker, time: Time
) -> None:
    stage(owner, "bad")
    worker.fails = True
    tried: list[datetime] = []
    watched: jobs.Work = lambda row: tried.append(time.now) or worker(row)  # noqa: E731
    for _ in range(40):
        jobs.run({"tidy": watched})
        time.pass_by(minutes=30)
    rests = [later - earlier for earlier, later in pairwise(tried)]
    assert rests == sorted(rests)
    assert max(rests) >= jobs.LONGEST_PAUSE
    with metering() as usage:
        jobs.run({"tidy": watched})
    assert usage.calls.count("Query") <= 2 * jobs.SHARDS
    assert rows() == 1
