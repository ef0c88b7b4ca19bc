"""The runner of scheduled jobs: a scheduled Lambda on AWS, a thread under ``chalice local``."""

import logging
import threading
import time

from chalicelib.core import clock
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.engine import jobs

PERIOD_SECONDS = 60
TIME_LIMIT_SECONDS = 240
"""Well inside the function's five minutes; what is left waits for the next run."""

log = logging.getLogger(__name__)


def run_jobs() -> dict[str, int]:
    """Do what is due now; return how much of each kind was done."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    done = jobs.run(JOB_HANDLERS, stop=lambda: time.monotonic() > end)
    oldest = jobs.oldest_due()
    if any(done.values()) or oldest:
        waited = (clock.now() - oldest).total_seconds() if oldest else 0
        # The alarm on a backlog reads the number (``infra.deploy.stacks.alarms``).
        log.info("scheduled jobs", extra={"done": done, "oldestSeconds": round(waited)})
    return done


def run_in_background() -> None:
    """Run what is due every minute for as long as the process lives."""

    def forever() -> None:
        while True:
            try:
                run_jobs()
            except Exception:
                log.exception("the runner of scheduled jobs failed")
            time.sleep(PERIOD_SECONDS)

    threading.Thread(target=forever, daemon=True, name="scheduled-jobs").start()
