"""Scheduled jobs by several runners at the same time, each a process as on AWS."""

import logging
import os
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

from chalicelib.core.unit import AuditEvent
from chalicelib.engine import jobs
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.transports.schedules import THREADS
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering
from infra.local.dynamodb import Database
from infra.operator.transfer.batch_writes import BatchWriter

KIND, WORKSPACE = "bench-job", "bench-jobs"
RUNS = ((1, 1), (1, THREADS), (2, THREADS), (4, THREADS))
"""Runners, and threads of each."""
JOBS_A_RUNNER = 1_000
LATENCY_MS = 5
"""Delay of each request, as in the same region of AWS. Assumed, not measured."""
TRANSACTION_MS = 15
"""Duration of a transaction on AWS. Assumed, not measured."""


class Done(NamedTuple):
    """The work of the runners in one measurement. CPU seconds include the database's."""

    runners: int
    threads: int
    jobs: int
    requests: int
    cpu_seconds: float
    database_seconds: float
    seconds: float

    @property
    def cells(self) -> list[str]:
        """The cells of the row of the table."""
        ours, its = (s / self.jobs * 1000 for s in (self.cpu_seconds, self.database_seconds))
        return [
            *(f"{self.runners}", f"{self.threads}", f"{self.jobs:,}", f"{self.seconds:.0f} s"),
            *(f"{self.jobs / self.seconds * 60:,.0f}", f"{self.requests / self.jobs:.2f}"),
            *(f"{ours:.1f} ms", f"{its:.1f} ms", f"{CORES * 60_000 / (ours + its):,.0f}"),
            f"{_a_minute_on_aws(self.runners, self.threads, self.requests / self.jobs, ours):,.0f}",
        ]


def section() -> str:
    """Measure and return this section of the page."""
    with database.seeded({}, in_memory=True) as server:
        lines = [f"| {' | '.join(_measure(server, *run).cells)} |" for run in RUNS]
    return "\n".join([*ABOUT, *lines, ""])


CORES = os.cpu_count() or 1
COLUMNS = (
    *("runners", "threads", "jobs", "time", "jobs a minute", "requests per job"),
    *("CPU per job", "of the database", "bound of the machine", "on AWS"),
)
ABOUT = [
    "## Jobs, on DynamoDB Local",
    "",
    "Due jobs of one kind, whose work is one transaction of two rows. Each runner is a process",
    f"with some threads, and each of its requests is delayed by {LATENCY_MS} ms. A job that runs",
    "twice would fail here. A job takes three requests: lease, work and deletion. What is above",
    "three are leases that another runner took first, and reads of the queue. Database and runners",
    f"share {CORES} processors with whatever else runs on the machine. The bound of the machine is",
    "how many jobs a minute their CPU time would allow if nothing else ran. The last column is",
    f"computed for runners on AWS, with a whole processor each: {LATENCY_MS} ms for a request,",
    f"{TRANSACTION_MS} ms for a transaction and the CPU time measured here.",
    "",
    f"| {' | '.join(COLUMNS)} |",
    "|---" * len(COLUMNS) + "|",
]


def _a_minute_on_aws(runners: int, threads: int, requests: float, cpu_ms: float) -> float:
    """Return the jobs a minute of runners, each of which waits or computes."""
    one_after_another = (requests - 1) * LATENCY_MS + TRANSACTION_MS + cpu_ms
    return runners * 60_000 / max(cpu_ms, one_after_another / threads)


def _measure(server: Database, runners: int, threads: int) -> Done:
    """Run due jobs by several processes that begin at the same time."""
    count = runners * JOBS_A_RUNNER
    with BatchWriter() as writer:
        for number in range(count):
            job = jobs.row(KIND, WORKSPACE, {"row": f"{runners}-{threads}-{number}"})
            writer.put(jobs.JobRow, job.serialize())
    context = get_context("spawn")
    ready = context.Barrier(runners + 1)
    with context.Pool(runners, initializer=_prepare, initargs=(ready,)) as pool:
        results = pool.map_async(_run, [threads] * runners, chunksize=1)
        ready.wait()
        begun, used = time.perf_counter(), database.cpu_seconds(server)
        done = results.get()
        seconds = time.perf_counter() - begun
        used = database.cpu_seconds(server) - used
    finished, requests, cpu_seconds = (sum(each) for each in zip(*done, strict=True))
    if finished != count or jobs.oldest_due() is not None:
        msg = f"{finished:,} of {count:,} jobs were finished"
        raise RuntimeError(msg)
    return Done(runners, threads, int(finished), int(requests), cpu_seconds, used, seconds)


_ready: list[Barrier] = []
"""The barrier of this runner."""


def _prepare(ready: Barrier) -> None:
    """Prepare a runner's process. The environment names the database.

    Without the workarounds for DynamoDB Local, a transaction is one request, as on AWS.
    """
    logging.getLogger("chalicelib").setLevel(logging.ERROR)
    _ready.append(ready)


def _run(threads: int) -> tuple[int, int, float]:
    """Run jobs until none is due. Returns the finished jobs, the requests and the CPU seconds."""
    jobs.oldest_due()  # connects
    _ready[0].wait()
    finished, begun = 0, time.process_time()
    with metering(LATENCY_MS / 1000) as usage:
        while jobs.oldest_due() is not None:
            finished += jobs.run({KIND: _work}, threads=threads)[KIND]
    return finished, usage.round_trips, time.process_time() - begun


def _work(job: jobs.JobRow) -> None:
    """Create a row that must not exist yet, in a transaction with an audit record."""

    def stage(unit: UnitOfWork) -> None:
        unit.create(ControlRow(f"BENCH#{WORKSPACE}", job.payload["row"]))

    run_unit(WORKSPACE, AuditEvent.by_job(KIND), stage)
