"""Scheduled jobs by several runners at the same time, each a process as on AWS."""

import logging
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from chalicelib.core.unit import AuditEvent
from chalicelib.engine import jobs
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from infra.bench import database
from infra.bench.dynamodb_usage import metering
from infra.operator.transfer.batch_writes import BatchWriter

KIND, WORKSPACE = "bench-job", "bench-jobs"
RUNNERS = (1, 2, 4)
JOBS_A_RUNNER = 2_500
LATENCY_MS = 5
"""Delay of each request, as in the same region of AWS. Assumed, not measured."""


class Done(NamedTuple):
    """What the runners of one measurement did."""

    runners: int
    jobs: int
    requests: int
    cpu_seconds: float
    seconds: float


def section() -> str:
    """Measure and return this section of the page."""
    with database.seeded({}, in_memory=True):
        lines = [
            f"| {done.runners} | {done.jobs:,} | {done.seconds:.0f} s "
            f"| {done.jobs / done.seconds * 60:,.0f} | {done.requests / done.jobs:.2f} "
            f"| {done.cpu_seconds / done.jobs * 1000:.1f} ms |"
            for done in map(_measure, RUNNERS)
        ]
    return "\n".join([*ABOUT, *lines, ""])


ABOUT = [
    "## Jobs, on DynamoDB Local",
    "",
    "Due jobs of one kind, whose work is one transaction of two rows. Each runner is a process,",
    f"and each of its requests is delayed by {LATENCY_MS} ms. A job that runs twice would fail",
    "here. A job takes three requests: lease, work and deletion. What is above three",
    "are leases that another runner took first, and reads of the queue. Database and runners",
    "share the machine's processors, so look at the last two columns.",
    "",
    "| runners | jobs | time | jobs a minute | requests per job | CPU per job |",
    "|---|---|---|---|---|---|",
]


def _measure(runners: int) -> Done:
    """Run due jobs by several processes that begin at the same time."""
    count = runners * JOBS_A_RUNNER
    with BatchWriter() as writer:
        for number in range(count):
            job = jobs.row(KIND, WORKSPACE, {"row": f"{runners}-{number}"})
            writer.put(jobs.JobRow, job.serialize())
    context = get_context("spawn")
    ready = context.Barrier(runners + 1)
    with context.Pool(runners, initializer=_prepare, initargs=(ready,)) as pool:
        results = pool.map_async(_run, range(runners), chunksize=1)
        ready.wait()
        begun = time.perf_counter()
        done = results.get()
        seconds = time.perf_counter() - begun
    finished, requests, cpu_seconds = (sum(each) for each in zip(*done, strict=True))
    if finished != count or jobs.oldest_due() is not None:
        msg = f"{finished:,} of {count:,} jobs were finished"
        raise RuntimeError(msg)
    return Done(runners, int(finished), int(requests), cpu_seconds, seconds)


_ready: list[Barrier] = []
"""The barrier of this runner."""


def _prepare(ready: Barrier) -> None:
    """Prepare a runner's process. The environment names the database.

    Without the workarounds for DynamoDB Local, a transaction is one request, as on AWS.
    """
    logging.getLogger("chalicelib").setLevel(logging.ERROR)
    _ready.append(ready)


def _run(_: int) -> tuple[int, int, float]:
    """Run jobs until none is due. Returns the finished jobs, the requests and the CPU seconds."""
    jobs.oldest_due()  # connects
    _ready[0].wait()
    finished, begun = 0, time.process_time()
    with metering(LATENCY_MS / 1000) as usage:
        while jobs.oldest_due() is not None:
            finished += jobs.run({KIND: _work})[KIND]
    return finished, usage.round_trips, time.process_time() - begun


def _work(job: jobs.JobRow) -> None:
    """Create a row that must not exist yet, in a transaction with an audit record."""

    def stage(unit: UnitOfWork) -> None:
        unit.create(ControlRow(f"BENCH#{WORKSPACE}", job.payload["row"]))

    run_unit(WORKSPACE, AuditEvent.by_job(KIND), stage)
