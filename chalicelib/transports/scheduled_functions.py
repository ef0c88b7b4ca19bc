"""Run scheduled jobs, in scheduled Lambdas on AWS and in threads under ``chalice local``."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from chalicelib.core import clock, deadline
from chalicelib.core.jobs import JOB_HANDLERS, Queue
from chalicelib.engine import jobs
from chalicelib.engine.events import wake

PERIOD_SECONDS = 60
# Well below the function's timeout of five minutes. Remaining jobs wait for the next run.
TIME_LIMIT_SECONDS = 240
THREADS = 4  # Jobs of a run that are done at the same time. A job mostly waits for the database.
# Seconds for which the function starts webhook runs. A webhook run that starts just before this
# limit may need another 50 seconds, which its lease covers
# (``domains.webhooks.flows.due_deliveries``). The function's timeout is 340 seconds.
EVENT_TIME_LIMIT_SECONDS = 200
# Runners of the jobs of events, and threads of each. They mostly wait for external servers. A
# runner reads the queue again only after all its threads have finished, so a run of a slow webhook
# holds up one runner, and the others go on.
EVENT_RUNNERS, EVENT_THREADS = 4, 4
# How often a developer's runner looks for jobs of events that are due, such as repetitions.
EVENT_PERIOD_SECONDS = 2
MAIL_QUEUE = "mail-feedback"  # The end of the name of the queue with the reports of SES on e-mail.

log = logging.getLogger(__name__)


def run_jobs() -> dict[str, int]:
    """Run the jobs that are due, and return the number of jobs done of each kind."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    counts = jobs.run(JOB_HANDLERS, stop=lambda: time.monotonic() > end, threads=THREADS)
    _log_run("scheduled jobs", Queue.MAIN, counts)
    return counts


def run_events(event: Mapping[str, Any]) -> dict[str, Any]:
    """Handle an event of the function ``run-events``.

    Messages of the e-mail queue are reports of SES. The response names the messages that the queue
    keeps. The schedule, and messages of the other queue, run the jobs.
    """
    records = event.get("Records", ())
    if records and records[0]["eventSourceARN"].endswith(f"-{MAIL_QUEUE}"):
        from chalicelib.domains.mails.flows import mail_feedback

        failed_ids = mail_feedback.receive(records)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed_ids]}
    return run_event_jobs()


def run_event_jobs() -> dict[str, int]:
    """Run the jobs of events that are due, and return the number of jobs done of each kind.

    The jobs that they make are run as well, so that an event is sent in the run that reads it.
    """
    end = time.monotonic() + EVENT_TIME_LIMIT_SECONDS
    runners = [end] * EVENT_RUNNERS
    counts = sum(deadline.map_in_threads(_run_event_jobs, runners, EVENT_RUNNERS), Counter[str]())
    _log_run("jobs of events", Queue.EVENTS, counts)
    return counts


def _run_event_jobs(end: float) -> Counter[str]:
    counts = Counter[str]()
    while batch_counts := +Counter(_run_due_event_jobs(end)):
        counts += batch_counts
    return counts


def _log_run(message: str, queue: Queue, counts: Mapping[str, int]) -> None:
    oldest = jobs.oldest_due(queue)
    if any(counts.values()) or oldest:
        waited = (clock.now() - oldest).total_seconds() if oldest else 0
        # The backlog alarms read ``oldestSeconds`` (``infra.deploy.stacks.alarms``).
        log.info(message, extra={"done": counts, "oldestSeconds": round(waited)})


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
