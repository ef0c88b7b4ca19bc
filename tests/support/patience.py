"""Waiting in tests: as long as necessary, so that no test fails on a busy machine.

A test does not assert that something takes less than a number of seconds, because the duration
depends on the machine's load. Instead, the wrong outcome would take for ever: a server stays
silent, or a second time limit is an hour. The test asserts the event that ended the wait, and
pytest's own limit ends a wait that hangs. CPU time may be bounded, at many times its usual value.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0
"""Seconds to wait for an expected event.

Lower than pytest's limit, so that failures are explained.
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
    """Return the result of an attempt, under a time limit that is long enough for it to begin.

    Use it to test a limit that ends an activity in progress. A busy machine may be too slow to
    begin within the limit, which is then doubled for another attempt.
    """
    while not far_enough(result := attempt(seconds)):
        assert seconds < PATIENCE, "no time limit was long enough"
        seconds *= 2
    return result
