"""Run the soak with load and faults, then all jobs, then the checks."""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread, Timer
from typing import Any

from infra.proof.parts import KEPT, Figures
from infra.proof.soak import checks, load, stage, watch, world
from infra.proof.soak.acknowledged import Acknowledged
from infra.proof.soak.checks import require
from infra.proof.soak.client import Tally
from infra.proof.soak.dice import SEED
from infra.proof.soak.others import HOOK, Others
from infra.proof.soak.watch import Room, Sample, Watch
from infra.proof.soak.world import World

FAULTS = 0.02
"""Share of the requests to the database, to the model and to the webhooks' receiver that fail."""
WORLDS = 2
OVERHEAD_MINUTES = 1.5
"""Part of the time for the start, the jobs and the checks. A run of a minute takes half of this
time."""
TOP_UP_SECONDS, TOP_UP = 20.0, 12_345
OUTAGE_SECONDS, OUTAGE_AT = 14.0, 0.6
"""Length of the time without a database, and when it begins, as a share of the load. Answers that
end then cannot be settled, so that their holds are open until their jobs close them."""
AHEAD_MINUTES = (15, 24 * 60)
"""Times at which the jobs run after the load: when holds are recovered, and when webhooks rest."""
ROOM = Room(memory=10, files=16, threads=4, temporary=0, blocks=30_000)
"""Growth that counts as flat: memory in MB. The pool of connections to the database grows until it
has met the most concurrent requests, at most to 64 files."""
ROOM_OF_SHORT_RUN = Room(memory=40, files=40, threads=16, temporary=0, blocks=200_000)
"""In a run of few minutes, the process still warms up."""
SHORT_MINUTES = 8
LEAST_WORK = 0.5
"""Share of the intended work that a longer run must do, or else it has tried little."""
CRASHES = ("crashed", "uncaught", "unexpected")
"""Words of the errors in the log that no fault excuses."""


def run(minutes: float) -> Figures:
    """Soak for some minutes.

    Raises:
        BrokenPromiseError: something leaked or was lost.
    """
    others = Others()
    overhead = min(OVERHEAD_MINUTES, minutes / 2)
    with (
        TemporaryDirectory(prefix="soak-") as folder,
        others.running(),
        stage.database(Path(folder), others) as stack,
    ):
        worlds = [world.make(f"soak-{n}", hook_url=others.url + HOOK) for n in range(WORLDS)]
        paid = {
            soaked.name: world.top_up(soaked.name, 0, kopecks=world.BALANCE) for soaked in worlds
        }
        with stage.service(stack) as service:
            return _Soak(service, others, worlds, paid).run((minutes - overhead) * 60)


class _Soak:
    """A run on a started service."""

    def __init__(
        self, service: stage.Service, others: Others, worlds: list[World], paid: dict[str, int]
    ) -> None:
        self._service, self._others, self._worlds, self._paid = service, others, worlds, paid
        self._tally = Tally()
        self._watch = Watch(service.pid, service.temporary, lambda: service.control()["blocks"])

    def run(self, seconds: float) -> Figures:
        """Load, finish, check, and return the figures."""
        acknowledged, samples = self._load(seconds)
        jobs = [self._run_jobs(minutes) for minutes in AHEAD_MINUTES]
        figures = {
            "seed": SEED,
            "share": FAULTS,
            "outageSeconds": OUTAGE_SECONDS,
            "seconds": round(seconds),
            **self._figures_of_load(samples),
            "jobs": jobs,
            "jobsDone": self._jobs_done(),
            "loggedErrors": self._logged_errors(),
        }
        # The figures explain a failure of the checks below, so they are printed first.
        print(json.dumps(figures), file=sys.stderr)
        crashes = [
            figure for figure in figures["loggedErrors"] if any(c in figure for c in CRASHES)
        ]
        require(not crashes, f"there were internal errors: {', '.join(crashes)}")
        for run in jobs:
            require(not run["due"], f"jobs stay due {run['aheadMinutes']} minutes later: {run}")
        is_short = seconds <= SHORT_MINUTES * 60
        work, intended = self._tally.faces.total(), load.RATE * seconds
        require(
            is_short or work > intended * LEAST_WORK,
            f"the service was too slow: {work} of {intended:.0f} pieces of work were done",
        )
        room = ROOM_OF_SHORT_RUN if is_short else ROOM
        figures |= {
            "checked": self._check(acknowledged),
            "flat": watch.require_flat(samples, room),
            "room": room._asdict(),
        }
        return figures

    def _figures_of_load(self, samples: list[Sample]) -> Figures:
        state, (first, last) = self._service.control(), (samples[0], samples[-1])
        return {
            "clients": load.CLIENTS,
            "work": dict(sorted(self._tally.faces.items())),
            "requests": self._tally.kinds["request"],
            "left": self._tally.kinds["left"],
            "errors": self._tally.kinds["error"],
            "refusals": dict(sorted(self._tally.codes.items())),
            "databaseRequests": state["requests"],
            "databaseFaults": state["faults"],
            "modelRequests": self._others.model_requests,
            "otherFaults": dict(self._others.made),
            "cores": round((last.cpu - first.cpu) / (last.at - first.at), 2),
            "idle": self._watch.sample()._asdict(),
        }

    def _load(self, seconds: float) -> tuple[list[Acknowledged], list[Sample]]:
        """Load with faults, and return the responses that clients received, and the samples."""
        self._service.control(faults=FAULTS)
        self._others.share = FAULTS
        self._watch.start()
        try:
            with self._topping_up(), self._outage(seconds * OUTAGE_AT):
                acknowledged = load.run(self._service.port, self._worlds, self._tally, seconds)
        finally:
            samples = self._watch.stop()
        self._service.control(faults=0)
        self._others.share = 0
        return acknowledged, samples

    def _jobs_done(self) -> dict[str, int]:
        """Count the jobs of the whole run by kind, from the service's log."""
        job_counts = Counter[str]()
        for line in self._service.logged("info"):
            job_counts += Counter(line["done"] if isinstance(line.get("done"), dict) else {})
        return dict(job_counts.most_common())

    def _logged_errors(self) -> dict[str, int]:
        """Count the errors in the service's log by message, and keep them in a file."""
        errors = self._service.logged("error")
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / "soak-errors.json").write_text(json.dumps(errors, indent=1, ensure_ascii=False))
        return dict(Counter(error["message"] for error in errors))

    @contextmanager
    def _topping_up(self) -> Iterator[None]:
        """Credit the accounts during the block, so that top-ups and charges contend."""
        stop = Event()

        def work() -> None:
            number = 0
            while not stop.wait(TOP_UP_SECONDS):
                number += 1
                for soaked in self._worlds:
                    self._paid[soaked.name] += world.top_up(soaked.name, number, kopecks=TOP_UP)

        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    @contextmanager
    def _outage(self, after_seconds: float) -> Iterator[None]:
        """Let all requests to the database fail for a while during the block."""

        def work() -> None:
            self._service.control(faults=1)
            stop.wait(OUTAGE_SECONDS)
            self._service.control(faults=FAULTS)

        stop, timer = Event(), Timer(after_seconds, work)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            stop.set()
            timer.join()

    def _run_jobs(self, ahead_minutes: int) -> dict[str, Any]:
        """Run the jobs at a later time. Returns the done ones, and the queues with others."""
        began = time.monotonic()
        state = self._service.control(aheadMinutes=ahead_minutes)
        job_counts = {kind: number for kind, number in state["done"].items() if number}
        return {
            "aheadMinutes": ahead_minutes,
            "seconds": round(time.monotonic() - began, 1),
            "done": job_counts,
            "due": state["due"],
        }

    def _check(self, acknowledged: list[Acknowledged]) -> dict[str, int]:
        counts = Counter[str]()
        for soaked in self._worlds:
            own_writes = [one for one in acknowledged if one.workspace_id == soaked.workspace_id]
            counts += checks.check_world(soaked, self._paid[soaked.name], own_writes)
        counts["events"] = self._check_events(acknowledged)
        counts["topUps"] = sum(self._paid.values())
        return dict(counts)

    def _check_events(self, acknowledged: list[Acknowledged]) -> int:
        """Check that the receiver was sent the events of all acknowledged leads and bookings."""
        leads = [
            ("lead.created", id_)
            for acknowledgement in acknowledged
            for id_ in acknowledgement.submissions.values()
        ]
        bookings = [
            ("booking.created", id_)
            for acknowledgement in acknowledged
            for id_ in acknowledgement.bookings
        ]
        missing = [event for event in leads + bookings if event not in self._others.events]
        require(not missing, f"{len(missing)} events were never sent, such as {missing[:3]}")
        return len(leads) + len(bookings)
