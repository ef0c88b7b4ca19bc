"""Run clients, server processes and runners of jobs under the schedule of one seed."""

import logging
import os
import random
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import ulid

from chalicelib.core import clock, deadline, retry
from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import JOB_HANDLERS, Queue
from chalicelib.domains.billing.flows import wallet_transactions
from chalicelib.engine import jobs, metrics, visitors
from chalicelib.engine.connection import connection
from chalicelib.engine.events import subscriptions
from tests.conftest import Answer, Api
from tests.simulation.database import SimulatedDatabase
from tests.simulation.schedule import Process, Schedule, SimulatedLock, SimulatedPool

START = datetime(2027, 1, 15, 12, tzinfo=UTC)
ATTEMPTS = 12
"""Attempts of a client that repeats its request until it is answered."""
RUNS = 12
"""Runs of the scheduled jobs after the clients have ended. Failed jobs pause in between."""


class Simulation:
    """The processes of one seed. Requests, responses and errors are recorded."""

    def __init__(self, seed: int, database: type[SimulatedDatabase] = SimulatedDatabase) -> None:
        self.seed = seed
        self.schedule = Schedule(seed)
        self.random = self.schedule.random
        self.database = database(self.schedule)
        self.handlers: dict[str, jobs.Work] = {}
        self._servers = 0

    def client(self, call: Callable[[], object]) -> None:
        """Add a client, which cannot die."""
        self.schedule.start(Process("client", can_die=False), call)

    def request(
        self, api: Api, path: str, body: dict[str, Any], key: str | None = None
    ) -> Answer | None:
        """Send a request to a new server process. Returns None if that process dies."""
        headers = {"Idempotency-Key": key} if key else {}
        answers: list[Answer] = []
        self.serve(lambda: answers.append(api.call("POST", path, body, headers)))
        return answers[0] if answers else None

    def persist(self, api: Api, path: str, body: dict[str, Any], key: str) -> Answer | None:
        """Repeat a request with its key until it is answered. Returns None if it never is."""
        for _ in range(ATTEMPTS):
            answer = self.request(api, path, body, key)
            if answer is not None and answer.status < 500 and not _is_pending(answer):
                return answer
            self.schedule.pause(self.random.uniform(0.1, 10))
        return None

    def serve(self, call: Callable[[], object]) -> bool:
        """Run a call in a new server process to its end. Returns whether the process lived."""
        self._servers += 1
        process = Process(f"server {self._servers}")

        def limited() -> None:
            with deadline.within(deadline.REQUEST_SECONDS):
                call()

        task = self.schedule.start(process, limited)
        self.schedule.wait(lambda: task.ended)
        return process.alive

    def run_jobs(self, *, calm: bool = False) -> None:
        """Run the jobs that are due, in a process of their own. If it is calm, nothing fails."""
        handlers = ChainMap(self.handlers, JOB_HANDLERS)  # type: ignore[arg-type]  # only read
        runners = [
            self.schedule.start(
                Process(f"runner of {queue}", can_die=not calm),
                partial(_run_once, handlers, queue),
            )
            for queue in Queue
        ]
        self.schedule.wait(lambda: all(runner.ended for runner in runners))

    def run(self, begin: Callable[["Simulation"], None]) -> None:
        """Let the clients of ``begin`` act, and then run jobs without faults until none is left."""
        with self._installed():
            begin(self)
            self.schedule.run()
            self.database.rate = 0.0
            self.client(self._finish)
            self.schedule.run()

    def _finish(self) -> None:
        for number in range(RUNS):
            self.schedule.pause(600 * 2**number if number else 60.0)
            self.run_jobs(calm=True)

    @contextmanager
    def _installed(self) -> Iterator[None]:
        """Replace what threads share, wait for or draw at random, in the whole process."""
        schedule, events = self.schedule, connection().client.meta.events
        entropy = random.Random(self.seed)
        random.seed(self.seed)
        pool = type("Pool", (SimulatedPool,), {"schedule": schedule})
        lock = partial(SimulatedLock, schedule)
        looking = _Chains()
        forget()  # What an earlier test has left may be valid for longer than this simulation.
        dict(JOB_HANDLERS)  # A module imported during a schedule would draw from the entropy.
        with pytest.MonkeyPatch.context() as patch, clock.using(self.time):
            self.patch = patch
            patch.setattr(deadline, "monotonic", lambda: schedule.now)
            patch.setattr(jobs, "monotonic", lambda: schedule.now)
            patch.setattr(retry, "sleep", schedule.pause)
            patch.setattr(deadline, "ThreadPoolExecutor", pool)
            patch.setattr(jobs, "Lock", lock)
            patch.setattr(
                wallet_transactions, "_LOCKS", [lock() for _ in wallet_transactions._LOCKS]
            )
            patch.setattr(os, "urandom", entropy.randbytes)
            patch.setattr(random, "_urandom", entropy.randbytes)
            # Within a millisecond the generator counts on from its last id, which another
            # simulation may have made at the same simulated time.
            patch.setattr(ulid, "default_generator", ulid.ULIDGenerator())
            events.register_first("before-call.dynamodb", self.database.answer)
            for name in ("", "chalicelib"):
                patch.setattr(logging.getLogger(name), "handlers", [looking])
            try:
                yield
            finally:
                events.unregister("before-call.dynamodb", self.database.answer)
                forget()
        assert not looking.endless, looking.endless

    def time(self) -> datetime:
        """Return the simulated time."""
        return START + timedelta(seconds=self.schedule.now)


def _run_once(handlers: Mapping[str, jobs.Work], queue: Queue) -> None:
    """Run the jobs that are due. If the queue cannot be read, the next run does them."""
    with suppress(UnavailableError):
        jobs.run(handlers, threads=2, queue=queue)


def forget() -> None:
    """Clear a process's caches."""
    metrics.clear_value_cache()
    subscriptions.forget()
    visitors.forget()


def _is_pending(answer: Answer) -> bool:
    """Whether another process is still working on the same key."""
    return answer.status == 409 and answer.data.get("code") == "in_progress"


class _Chains(logging.Handler):
    """Collects logged errors whose chain of causes comes back to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.endless: list[str] = []

    def handle(self, record: logging.LogRecord) -> bool:
        """Follow the causes of a logged error. The record itself is not formatted here."""
        error = record.exc_info[1] if record.exc_info else None
        seen: set[int] = set()
        while error is not None:
            if id(error) in seen:
                self.endless.append(repr(error))
                break
            seen.add(id(error))
            error = error.__cause__ or error.__context__
        return True
