"""The time limit of a request. Work without a caller, such as scheduled jobs, has none."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from math import inf
from typing import Protocol, TypeVar

# API Gateway ends a request after 29 s. Work in progress at the deadline takes at most 3 s more.
REQUEST_SECONDS = 24.0

MAX_CALLS = 16  # of one ``side_by_side`` at the same time; further ones wait

T = TypeVar("T")
R = TypeVar("R")

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)

monotonic: Callable[[], float] = time.monotonic  # Tests replace it.


class within:  # noqa: N801  a context manager, called like the function that it could be
    """Set a deadline in ``seconds`` for the ``with`` block and for contexts copied inside."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._token = _ends.set(monotonic() + self._seconds)

    def __exit__(self, *_: object) -> None:
        _ends.reset(self._token)


def remaining(at_most: float) -> float:
    """Return the seconds until the deadline, from 0 to ``at_most``, for time-outs."""
    ends = _ends.get()
    return at_most if ends is None else max(0.0, min(at_most, ends - monotonic()))


class Deadline:
    """A time limit for one piece of work in any thread, within the request's deadline."""

    def __init__(self, seconds: float) -> None:
        self._ends = monotonic() + remaining(seconds)

    def seconds_left(self, at_most: float = inf) -> float:
        """Return the seconds until the limit, from 0 to ``at_most``."""
        return max(0.0, min(at_most, self._ends - monotonic()))

    @property
    def passed(self) -> bool:
        return self.seconds_left() == 0


def passed() -> bool:
    """Whether the request's deadline has passed."""
    return remaining(1.0) == 0


def map_in_threads(work: Callable[[T], R], items: Sequence[T], max_threads: int) -> list[R]:
    """Return the results of ``work`` for the items, computed in threads under the same deadline."""
    if not items:
        return []
    # Only one thread at a time can run in a context, so each item has a copy.
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(max_threads, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(work, item), contexts, items))


class Start(Protocol):
    """Starts a call in a thread, under the request's deadline, and returns its future.

    ``result`` raises the call's error, so errors keep the order in which results are read. The
    error of a result that is never read has no effect.
    """

    def __call__(self, call: Callable[[], R]) -> Future[R]:
        """Start the call."""


class side_by_side:  # noqa: N801  as ``within``
    """Yields a function that starts calls side by side. The end of the block waits for all calls.

    A call may wait for the result of an earlier call.

    >>> with side_by_side() as start:
    ...     first, second = start(lambda: "a"), start(lambda: "b")
    >>> first.result() + second.result()
    'ab'
    """

    _pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Start:
        return self._start

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _start(self, call: Callable[[], R]) -> Future[R]:
        # Many blocks start no call, and need no pool. Only the block starts calls, so this is no
        # race.
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_CALLS)
        return self._pool.submit(copy_context().run, call)
