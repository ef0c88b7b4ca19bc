"""Each due job runs once in random histories of jobs."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from chalicelib.core import clock
from chalicelib.core.jobs import JobKind
from chalicelib.engine import jobs
from tests.conftest import Time
from tests.engine.jobs.conftest import cancel, rows, spoil, stage
from tests.support.effort import examples

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


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
        cancel(jobs.ref(JobKind(job.kind), self.due[name], name))
        self.gone.add(name)

    @rule(data=st.data())
    def spoil_one(self, data: st.DataObject) -> None:
        intact_jobs = sorted(set(self.waiting) - self.spoilt)
        if intact_jobs:
            name = data.draw(st.sampled_from(intact_jobs))
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
