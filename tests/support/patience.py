"""Waits as long as necessary, so that no test fails on a busy machine.

A test does not assert that something takes less than a number of seconds, because the duration
depends on the machine's load. Instead, the test arranges that only the expected event can end the
wait. For example, the server never responds, or another time limit is an hour (``FOR_EVER``). The
test asserts which event ended the wait. If the event never occurs, pytest's time limit fails the
test. A test may limit CPU time, at many times its usual value.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 100.0
"""Seconds to wait for an expected event.

Lower than pytest's limit, so that the test fails with an assertion instead of a timeout.
"""
FOR_EVER = 3_600.0
"""Seconds of a time limit that must not be reached. Higher than pytest's limit."""

T = TypeVar("T")


def wait_for(condition: Callable[[], bool], pause: float = 0.01) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(pause)


def stretched(attempt: Callable[[float], T], seconds: float, far_enough: Callable[[T], bool]) -> T:
    """Repeat an attempt, each time with twice the time limit, until its result is far enough.

    Use it to test a time limit that ends an activity in progress. On a busy machine, a short limit
    may pass before the activity has begun. ``seconds`` is the first limit.
    """
    while not far_enough(result := attempt(seconds)):
        assert seconds < PATIENCE, "no time limit was long enough"
        seconds *= 2
    return result
