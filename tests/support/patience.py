"""How long tests wait: as long as it takes, so that no busy machine fails them.

A test does not assert that something took less than so many seconds, because that depends on what
else the machine does. It arranges that the wrong outcome takes for ever (a server that stays
silent, a time limit of an hour beside the one under test), asserts what ended the wait, and leaves
what hangs to pytest's own limit. Processor time may be bounded, at many times what is usual.
"""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0
"""Seconds to wait for what is going to happen; below pytest's limit, so failures have words."""
FOR_EVER = 3_600.0
"""Seconds of a time limit that is not to be reached; above pytest's limit."""

T = TypeVar("T")


def wait_for(condition: Callable[[], bool], pause: float = 0.01) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(pause)


def stretched(attempt: Callable[[float], T], seconds: float, far_enough: Callable[[T], bool]) -> T:
    """Return what an attempt returns under a time limit that let it get far enough.

    For tests of what happens when a limit ends something that has begun. A busy machine may be too
    slow to begin within the limit, which is then doubled for another attempt.
    """
    while not far_enough(result := attempt(seconds)):
        assert seconds < PATIENCE, "no time limit was long enough"
        seconds *= 2
    return result
