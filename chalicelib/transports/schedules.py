"""Runs scheduled jobs: in a scheduled Lambda on AWS, in a thread under ``chalice local``."""

import logging
import threading
import time

from chalicelib.core import clock
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.engine import jobs

PERIOD_SECONDS = 60
TIME_LIMIT_SECONDS = 240
"""Well below the function's timeout of five minutes. Remaining jobs wait for the next run."""
THREADS = 4
"""Jobs of a run that are done at the same time. A job mostly waits for the database."""

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


def run_in_background() -> None:
    """Start a thread that runs due jobs every minute until the process ends."""

    def forever() -> None:
        while True:
            try:
                run_jobs()
            except Exception:
                log.exception("the runner of scheduled jobs failed")
            time.sleep(PERIOD_SECONDS)

    threading.Thread(target=forever, daemon=True, name="scheduled-jobs").start()
