"""The time limit of a request.

API Gateway ends a request after 29 seconds, so the service stops earlier. The entry point sets the
deadline once. Code that waits for an outside service calls ``remaining`` for its time-out. Work
without a caller, such as scheduled jobs, has no deadline.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from math import inf
from typing import Protocol, TypeVar

REQUEST_SECONDS = 24.0
"""Seconds until the deadline of a request.

API Gateway ends a request after 29 s. Work in progress at the deadline takes at most 3 s more.
"""

MAX_CALLS = 16
"""Maximum calls of one block of ``side_by_side`` that run at the same time. Further calls wait."""

T = TypeVar("T")
R = TypeVar("R")

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)

monotonic: Callable[[], float] = time.monotonic
"""The clock of deadlines. Tests replace it."""


class within:  # noqa: N801  a context manager, called like the function that it could be
    """Set a deadline in ``seconds`` for the ``with`` block and for contexts copied inside."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        """Set the deadline."""
        self._token = _ends.set(monotonic() + self._seconds)

    def __exit__(self, *_: object) -> None:
        """Restore the previous deadline."""
        _ends.reset(self._token)


def remaining(at_most: float) -> float:
    """Return the seconds until the deadline, from 0 to ``at_most``."""
    ends = _ends.get()
    return at_most if ends is None else max(0.0, min(at_most, ends - monotonic()))


class Deadline:
    """A time limit for one piece of work, valid in any thread.

    It never exceeds the request's deadline.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = monotonic() + remaining(seconds)

    def seconds_left(self, at_most: float = inf) -> float:
        """Return the seconds until the limit, from 0 to ``at_most``."""
        return max(0.0, min(at_most, self._ends - monotonic()))

    @property
    def passed(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds_left() == 0


def passed() -> bool:
    """Whether the request's deadline has passed."""
    return remaining(1.0) == 0


def map_in_threads(work: Callable[[T], R], items: Sequence[T], max_threads: int) -> list[R]:
    """Return the results of ``work`` for the items, computed in threads under the same deadline.

    At most ``max_threads`` items are processed at the same time.
    """
    if not items:
        return []
    # Only one thread at a time can run in a context, so each item has a copy.
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(max_threads, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(work, item), contexts, items))


class Start(Protocol):
    """Starts a call in a thread, under the deadline of the request, and returns its future.

    The future's ``result`` waits for the call and raises its error. Errors therefore keep the order
    in which results are read. The error of a result that is never read has no effect.
    """

    def __call__(self, call: Callable[[], R]) -> Future[R]:
        """Start the call."""


class side_by_side:  # noqa: N801  as ``within``
    """Yields a function that starts calls side by side. The end of the block waits for all calls.

    A call may wait for the result of an earlier call. Only the block starts calls, so the pool of
    threads is created for the first call: many blocks need no pool.

    >>> with side_by_side() as start:
    ...     first, second = start(lambda: "a"), start(lambda: "b")
    >>> first.result() + second.result()
    'ab'
    """

    _pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Start:
        """Return the function."""
        return self._start

    def __exit__(self, *_: object) -> None:
        """Wait for all calls."""
        if self._pool is not None:
            self._pool.shutdown()

    def _start(self, call: Callable[[], R]) -> Future[R]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_CALLS)
        return self._pool.submit(copy_context().run, call)
