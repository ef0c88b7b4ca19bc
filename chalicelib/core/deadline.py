"""The time a request may take: the gateway gives up after 29 seconds, so we end before.

A deadline is set once where a request comes in; whatever waits for something outside asks how long
it may. Work without a caller, such as scheduled jobs, has none.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from math import inf
from typing import TypeVar

REQUEST_SECONDS = 24.0
"""API Gateway ends a request after 29 s; what is under way at the deadline takes at most 3 more."""

T = TypeVar("T")
R = TypeVar("R")

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)

monotonic: Callable[[], float] = time.monotonic
"""Replaced in tests."""


class within:  # noqa: N801  a context manager, called like the function that it could be
    """Give what runs in the ``with`` block, and in the contexts copied from it, so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        """Begin."""
        self._token = _ends.set(monotonic() + self._seconds)

    def __exit__(self, *_: object) -> None:
        """Give what is outside its own time again."""
        _ends.reset(self._token)


def remaining(at_most: float) -> float:
    """Return the seconds that are left, but no more than ``at_most``; 0 once time is up."""
    ends = _ends.get()
    return at_most if ends is None else max(0.0, min(at_most, ends - monotonic()))


class Deadline:
    """The time by which a piece of work must be done, in any thread; never after the request's."""

    def __init__(self, seconds: float) -> None:
        self._ends = monotonic() + remaining(seconds)

    def left(self, at_most: float = inf) -> float:
        """Return the seconds that are left, but no more than ``at_most``; 0 once time is up."""
        return max(0.0, min(at_most, self._ends - monotonic()))

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.left() == 0


def passed() -> bool:
    """Whether the time is up."""
    return remaining(1.0) == 0


def map_in_threads(work: Callable[[T], R], items: Sequence[T], at_once: int) -> list[R]:
    """Return what ``work`` returns for each item, some at a time, each under the same deadline."""
    if not items:
        return []
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(min(at_once, len(items))) as pool:
        return list(pool.map(lambda context, item: context.run(work, item), contexts, items))
