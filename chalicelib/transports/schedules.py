"""The runner of due work: a scheduled Lambda on AWS, a thread under ``chalice local``."""

import logging
import threading
import time

import chalicelib.flows.replays  # noqa: F401  declares due work
from chalicelib.core.schedule import DUE_WORK
from chalicelib.store import due

PERIOD_SECONDS = 60
TIME_LIMIT_SECONDS = 240
"""Well inside the function's five minutes; what is left waits for the next run."""

log = logging.getLogger(__name__)


def run_due_work() -> dict[str, int]:
    """Do what is due now; return how much of each kind was done."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    done = due.run(DUE_WORK, stop=lambda: time.monotonic() > end)
    if any(done.values()):
        log.info("due work", extra={"done": done})
    return done


def run_in_background() -> None:
    """Run due work every minute for as long as the process lives."""

    def forever() -> None:
        while True:
            try:
                run_due_work()
            except Exception:
                log.exception("the runner of due work failed")
            time.sleep(PERIOD_SECONDS)

    threading.Thread(target=forever, daemon=True, name="due-work").start()
