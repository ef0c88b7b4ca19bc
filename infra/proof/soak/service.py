"""The process under test, which is the service of ``make dev`` with faults and a moved clock.

It runs as a program of its own, so that its memory, files and threads can be measured separately.
The route ``CONTROL`` exists only here. It sets the share of faults and runs the scheduled jobs at a
later time.
"""

import json
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from chalice.config import Config

import app as our_app
from chalicelib.core import clock, logs
from chalicelib.core.errors import UnavailableError
from chalicelib.core.jobs import Queue
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from chalicelib.transports import scheduled_functions
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local import workarounds
from infra.local.devserver import ROUTES, DevServer, LocalRoute
from infra.local.stack import HOST
from infra.proof.soak.database_faults import DatabaseFaults

CONTROL = "/soak"
ROUNDS = 60
"""Runs of the jobs until none may be due."""


class Control:
    """Responds to the soak's own requests, and always returns the state of the process."""

    def __init__(self, faults: DatabaseFaults) -> None:
        self._faults = faults

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Set ``faults`` (a share), or run the jobs at ``aheadMinutes`` from now."""
        settings: dict[str, Any] = json.loads(request.body or b"{}")
        self._faults.share = settings.get("faults", self._faults.share)
        state: dict[str, Any] = {
            "pid": os.getpid(),
            "requests": self._faults.requests,
            "faults": dict(self._faults.made),
            "blocks": sys.getallocatedblocks(),
        }
        if "aheadMinutes" in settings:
            state |= run_jobs(timedelta(minutes=settings["aheadMinutes"]))
        return HttpResponse(200, json.dumps(state).encode(), {"Content-Type": "application/json"})


def run_jobs(ahead: timedelta) -> dict[str, Any]:
    """Run the jobs due at a later time, and return the done and the remaining ones by kind."""
    job_counts: Counter[str] = Counter()
    due = ["unknown"]
    with clock.using(lambda: datetime.now(UTC) + ahead):
        for _ in range(ROUNDS):
            with suppress(UnavailableError):  # The database is slow on a busy machine.
                job_counts += Counter(scheduled_functions.run_jobs()) + Counter(
                    scheduled_functions.run_event_jobs()
                )
                due = [queue.value for queue in Queue if jobs.oldest_due(queue)]
                if not due:
                    break
            time.sleep(0.5)  # The runner in the background may hold the rest.
    return {"done": dict(job_counts), "due": due}


def main() -> None:
    """Serve until the process is ended."""
    logs.configure_process()
    workarounds.apply(in_memory=True)
    faults = DatabaseFaults()
    faults.install(connection().client)
    # Without the deadline of other requests, because jobs may take minutes.
    control = LocalRoute(
        CONTROL, Control(faults).answer, run=lambda request, answer: answer(request)
    )
    port = int(os.environ["PORT"])
    server = DevServer(our_app.app, Config(), HOST, port, routes=(*ROUTES, control))
    server.serve_forever()


if __name__ == "__main__":
    main()
