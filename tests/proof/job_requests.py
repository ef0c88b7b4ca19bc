"""Requests that run the jobs of one kind, which other requests have created."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from chalicelib.core.jobs import JOB_HANDLERS, Queue
from chalicelib.engine.jobs import LONGEST_PAUSE
from chalicelib.transports import scheduled_functions
from tests.conftest import Answer, Time
from tests.proof.service_requests import STREAM_SECONDS, ServiceRequest, check_page
from tests.proof.stored_state import Place, StoredState

START = datetime(2027, 1, 15, 12, 0, tzinfo=UTC)
"""The time of each request."""
_RUNS = 3


class JobRequests:
    """Makes a request of each kind of jobs, when a request has left the first job of the kind."""

    def __init__(self, state: StoredState, time: Time) -> None:
        self._state, self._time = state, time
        self._known: set[tuple[str, str]] = set()

    def made_by(self, request: ServiceRequest) -> Iterator[ServiceRequest]:
        """Yield requests for the jobs that are there after a request, if their kinds are new.

        A changed example may leave jobs that do something else.
        """
        for place in sorted(self._state.jobs(), key=lambda place: place[2]):
            kind = _kind(place)
            changed_name = request.name if request.is_changed else ""
            if (kind, changed_name) in self._known or kind not in JOB_HANDLERS:
                continue
            self._known.add((kind, changed_name))
            yield ServiceRequest(
                f"job {kind} after {request.name}",
                partial(self._run, kind),
                check_page,
                repeat=partial(self._run_again, kind),
                prepare=partial(_send_all, request),
                seconds=STREAM_SECONDS,
            )

    def _run(self, kind: str) -> Answer:
        """Run the first job of a kind as the schedule would. Others are removed before."""
        places = sorted(self._state.jobs(), key=lambda place: (_kind(place) != kind, place[2]))
        self._state.remove(places[1:])
        self._time.now = max(self._time.now, _due(places[0])) + timedelta(seconds=1)
        return self._run_due(places[0])

    def _run_again(self, kind: str) -> Answer:
        """Run the jobs again after every pause. The job must be gone then.

        A job that another job writes again during the run is run once more.
        """
        answer = Answer(200, {}, b"{}")
        jobs_left = list(self._state.jobs())
        for _ in range(_RUNS):
            self._time.now += LONGEST_PAUSE
            if there := list(self._state.jobs()):
                answer = self._run_due(*there)
            there = [job for job in self._state.jobs() if _due(job) <= self._time.now]
            jobs_left = [job for job in jobs_left if job in there and _kind(job) == kind]
            if not jobs_left:
                return answer
        return Answer(500, {}, f"{jobs_left} is left".encode())

    def _run_due(self, *places: Place) -> Answer:
        # A job of one schedule may have made jobs of the other.
        are_events = {place[1].startswith(f"{Queue.EVENTS}#") for place in places}
        runs = {False: scheduled_functions.run_jobs, True: scheduled_functions.run_event_jobs}
        try:
            done = [runs[is_event]() for is_event in sorted(are_events)]
            return Answer(200, {}, json.dumps(done).encode())
        except Exception as error:  # The schedule runs them again.
            return Answer(500, {}, type(error).__name__.encode())


def _send_all(request: ServiceRequest) -> None:
    request.prepare()
    request.send()


def _kind(place: Place) -> str:
    return place[2].split("#")[1]


def _due(place: Place) -> datetime:
    return datetime.strptime(place[2].partition("#")[0], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
