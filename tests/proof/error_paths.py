"""Inject each fault at each call site, once and always, and check the request's end."""

import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, process_time
from types import FrameType
from typing import Any

from chalicelib.core.errors import AppError
from tests.conftest import Answer, Time
from tests.proof.call_sites import CallSite, Injection, Seams
from tests.proof.faults import DETAIL, Fault
from tests.proof.job_requests import START, JobRequests
from tests.proof.observers import BrokenPromiseError, Log, Memory
from tests.proof.service_requests import ServiceRequest
from tests.proof.simulated_time import EndlessError

HANGING_SECONDS = 120
"""Real seconds after which a request hangs. It takes hundredths of a second, or some if busy."""
AT_LEAST = 100
"""Pairs of a run, however little time it has."""
PENDING_MINUTES = 2.1
"""After this time, a call that was marked as begun may be repeated."""


@dataclass
class Attack:
    """All faults and their outcomes."""

    requests: list[ServiceRequest]
    seams: Seams
    log: Log
    time: Time
    jobs: JobRequests
    memory: Memory = field(default_factory=Memory)
    statuses: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    request_count: int = 0
    pairs: int = 0
    reached: int = 0
    worst_seconds: dict[str, float] = field(default_factory=dict)
    _usual: dict[str, int] = field(default_factory=dict)

    def record(self) -> dict[CallSite, tuple[ServiceRequest, list[Fault]]]:
        """Send each request without a fault, and return the call sites, each with a request.

        Of the requests that reach a call site, the one with the fewest calls is used.

        Raises:
            BrokenPromiseError: a request fails.
        """
        sites: dict[CallSite, tuple[ServiceRequest, list[Fault]]] = {}
        costs: dict[CallSite, int] = {}
        for request in self.requests:  # Jobs add requests during the loop.
            self.seams.calls = 0
            answer = self._send(request)
            if answer.status not in {200, 303}:
                msg = f"{request.name} fails without a fault: {answer.status} {answer.body[:300]!r}"
                raise BrokenPromiseError(msg)
            self._usual[request.name] = answer.status
            for site, faults in self.seams.seen.items():
                if self.seams.calls < costs.get(site, sys.maxsize):
                    sites[site], costs[site] = (request, faults), self.seams.calls
            self.requests += self.jobs.made_by(request)
        return sites

    def run(self, seed: int, end: float) -> dict[str, Any]:
        """Attack in an order that the seed decides, until every pair was tried or time is up.

        ``end`` is a time of the monotonic clock.
        """
        begun = process_time()
        sites = self.record()
        pairs = [
            (request, Injection(site, fault, always))
            for site, (request, faults) in sites.items()
            for fault in faults
            for always in (False, True)
        ]
        # The order of the requests of jobs depends on ids, which differ between runs.
        pairs.sort(key=lambda pair: (pair[0].name, str(pair[1])))
        random.Random(seed).shuffle(pairs)
        for request, injection in pairs:
            if self.pairs >= AT_LEAST and monotonic() > end:
                break
            self.attack(request, injection)
        return {
            "seed": seed,
            "sites": len(sites),
            "gatewaySites": sum("." in site.callee for site in sites),
            "requestKinds": len(self.requests),
            "allPairs": len(pairs),
            "pairs": self.pairs,
            "reached": self.reached,
            "requests": self.request_count,
            "cpuSeconds": round(process_time() - begun),
            "worstSeconds": dict(sorted(self.worst_seconds.items())),
            "worstMegabytes": round(self.memory.most / 2**20, 1),
            "statuses": dict(sorted(self.statuses.items())),
            "broken": self.broken,
        }

    def attack(self, request: ServiceRequest, injection: Injection) -> None:
        """Send a request with a fault, and keep what it breaks."""
        self.pairs += 1
        try:
            answer = self._send(request, injection)
            self.statuses[_kind(answer)] += 1
            if not injection.always and request.repeat is not None:
                self._repeat(request, request.repeat, answer)
        except BrokenPromiseError as error:
            self.broken.setdefault(f"{request.name}: {injection}", str(error))
        finally:
            self.reached += bool(injection.hits)

    def _send(self, request: ServiceRequest, injection: Injection | None = None) -> Answer:
        """Send a request to the restored state, and check its end."""
        self.seams.state.restore()
        self.time.now = START
        self.seams.time.restart()
        self.seams.begin(request.name)
        request.prepare()
        self.seams.begin(request.name, injection)
        return self._send_and_check(request, request.send)

    def _send_and_check(self, request: ServiceRequest, send: Callable[[], Answer]) -> Answer:
        self.request_count += 1
        self.seams.time.restart()
        self.memory.begin()
        answer = ended(send)
        seconds = self.seams.time.now()
        kind = f"{request.seconds:g}"
        self.worst_seconds[kind] = max(self.worst_seconds.get(kind, 0.0), round(seconds, 2))
        self.memory.check()
        self.log.check()
        request.check(answer)
        if seconds > request.seconds:
            msg = f"it took {seconds:.1f} of {request.seconds:g} seconds"
            raise BrokenPromiseError(msg)
        if DETAIL.encode() in answer.body:
            msg = f"the answer has the text of an error: {answer.body[:300]!r}"
            raise BrokenPromiseError(msg)
        return answer

    def _repeat(self, request: ServiceRequest, send: Callable[[], Answer], first: Answer) -> None:
        """Repeat a request without a fault. It must succeed, also if the first one was marked."""
        self.seams.begin(request.name, None)
        answer = self._send_and_check(request, send)
        if _code(answer) == "in_progress":
            self.time.pass_by(minutes=PENDING_MINUTES)
            answer = self._send_and_check(request, send)
        if (
            answer.status != self._usual.get(request.name, 200)
            and _code(answer) != "already_created"
        ):
            msg = (
                f"after {first.status}, a repetition is answered with {answer.status}: "
                f"{answer.body[:300]!r}"
            )
            raise BrokenPromiseError(msg)


def _code(answer: Answer) -> str:
    try:
        return str(answer.data.get("code", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _kind(answer: Answer) -> str:
    code = _code(answer) if answer.status >= 400 else ""  # A success may have a code of its own.
    return f"{answer.status} {code}".strip()


def ended(send: Callable[[], Answer]) -> Answer:
    """Return the response to a request, or fail if it goes on without end.

    Raises:
        BrokenPromiseError: the request hangs, goes on past every limit, or ends in an exception.
    """
    try:
        with _alarm():
            return send()
    except EndlessError:
        msg = "the request goes on without end"
        raise BrokenPromiseError(msg) from None
    except AppError as error:
        return Answer(error.status, {}, error.message.encode())


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise an error in the main thread if a block takes far too long."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise EndlessError

    old_handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGING_SECONDS, HANGING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)
