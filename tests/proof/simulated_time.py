"""Simulate the time of waits, so that faults take no real time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from chalicelib.core import deadline, retry
from chalicelib.engine import jobs
from chalicelib.transports import scheduled_functions

ENDLESS = 900.0
"""Simulated seconds after which a request counts as endless. Jobs may take 300."""


class EndlessError(BaseException):
    """A request goes on after every limit. No handler of the service catches this error."""


class SimulatedTime:
    """The clock of deadlines, pauses and runs of jobs.

    Each thread has a time of its own, which begins with the time of the copied context. Waits
    of threads side by side therefore do not add up. The main thread waits for the others, so its
    time is the latest.
    """

    def __init__(self) -> None:
        self._latest = 0.0
        self._own: ContextVar[float] = ContextVar("seconds")
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the current thread's time in seconds."""
        if threading.current_thread() is threading.main_thread():
            self._own.set(self._latest)
            return self._latest
        return self._own.get(self._latest)

    def pass_by(self, seconds: float) -> None:
        """Let the current thread wait.

        Raises:
            EndlessError: the request has taken too long.
        """
        wake_time = self.now() + seconds
        self._own.set(wake_time)
        with self._lock:
            self._latest = max(self._latest, wake_time)
        if wake_time > ENDLESS:
            raise EndlessError

    def restart(self) -> None:
        """Begin again at zero."""
        self._latest = 0.0
        self._own.set(0.0)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Make it the clock of the service. Every pause takes its longest."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deadline, "monotonic", self.now)
            patch.setattr(retry, "sleep", self.pass_by)
            patch.setattr(jobs, "monotonic", self.now)
            patch.setattr(scheduled_functions, "time", SimpleNamespace(monotonic=self.now))
            patch.setattr(retry, "random", SimpleNamespace(uniform=lambda _, longest: longest))
            yield
