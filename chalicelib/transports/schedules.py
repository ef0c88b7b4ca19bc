"""Runs scheduled jobs: in scheduled Lambdas on AWS, in threads under ``chalice local``."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from chalicelib.core import clock
from chalicelib.core.jobs import JOB_HANDLERS, Queue
from chalicelib.engine import jobs
from chalicelib.engine.events import wake

PERIOD_SECONDS = 60
TIME_LIMIT_SECONDS = 240
"""Well below the function's timeout of five minutes. Remaining jobs wait for the next run."""
THREADS = 4
"""Jobs of a run that are done at the same time. A job mostly waits for the database."""
EVENT_TIME_LIMIT_SECONDS = 200
"""A turn of a webhook that begins just before it takes up to 90 seconds more."""
EVENT_THREADS = 16
"""Jobs of events that are done at the same time. They mostly wait for servers of others."""
EVENT_PERIOD_SECONDS = 2
"""How often a developer's runner looks for jobs of events that are due, such as repetitions."""

log = logging.getLogger(__name__)


def run_jobs() -> dict[str, int]:
    """Run the jobs that are due, and return the number of jobs done of each kind."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    done = jobs.run(JOB_HANDLERS, stop=lambda: time.monotonic() > end, threads=THREADS)
    oldest = jobs.oldest_due()
    if any(done.values()) or oldest:
        waited = (clock.now() - oldest).total_seconds() if oldest else 0
        # The backlog alarm reads this number (``infra.deploy.stacks.alarms``).
        log.info("scheduled jobs", extra={"done": done, "oldestSeconds": round(waited)})
    return done


def run_event_jobs() -> dict[str, int]:
    """Run the jobs of events that are due, and return the number of jobs done of each kind.

    The jobs that they make are run as well, so that an event is sent in the run that reads it.
    """
    end = time.monotonic() + EVENT_TIME_LIMIT_SECONDS
    done = Counter[str]()
    while made := +Counter(_run_due_event_jobs(end)):
        done += made
    oldest = jobs.oldest_due(Queue.EVENTS)
    if any(done.values()) or oldest:
        waited = (clock.now() - oldest).total_seconds() if oldest else 0
        log.info("jobs of events", extra={"done": done, "oldestSeconds": round(waited)})
    return done


def _run_due_event_jobs(end: float) -> dict[str, int]:
    return jobs.run(
        JOB_HANDLERS,
        stop=lambda: time.monotonic() > end,
        threads=EVENT_THREADS,
        queue=Queue.EVENTS,
    )


def run_in_background() -> None:
    """Start the threads that run due jobs until the process ends."""
    _run_forever("scheduled-jobs", run_jobs, lambda: time.sleep(PERIOD_SECONDS))
    _run_forever("event-jobs", run_event_jobs, lambda: wake.wait(EVENT_PERIOD_SECONDS))


def _run_forever(name: str, run: Callable[[], object], wait: Callable[[], None]) -> None:
    def forever() -> None:
        while True:
            try:
                run()
            except Exception:
                log.exception("a runner of jobs failed", extra={"runner": name})
            wait()

    threading.Thread(target=forever, daemon=True, name=name).start()
