"""Trying again: after another writer was first, or when the database did not answer."""

import random
import time
from collections.abc import Callable
from itertools import count
from typing import TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12
"""Attempts before lost races become a 503; with the pauses, a few seconds at most."""
PATIENCE_SECONDS = 8.0
"""How long attempts go on instead where many are expected to write the same row at once."""
MOST_ATTEMPTS_PAUSED = 8
LONGEST_PAUSE_OF_RIVALS = 4.0
"""Where many rivals are expected, pauses grow to so many times what the lost attempt took.

However slow the database is, so that few of them meet again: fifty simulated rivals for one row win
in half the attempts, and sooner.
"""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5

T = TypeVar("T")

sleep: Callable[[float], None] = time.sleep
"""Replaced in tests."""


def retry_on_conflict(attempt: Callable[[], T], patient: Callable[[], bool] = lambda: False) -> T:
    """Run an attempt that reads, decides and commits, until its commit wins.

    Pauses are jittered and grow (full jitter), so that rivals spread out. If it is ``patient``, as
    the attempt that lost may have said, it goes on for ``PATIENCE_SECONDS`` however often it loses,
    with pauses in proportion to what its attempts take.

    Raises:
        UnavailableError: every attempt lost, or the request's time is up.
    """
    patience = deadline.Deadline(PATIENCE_SECONDS)
    for number in count():
        begun = deadline.monotonic()
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
            many = patient()
            given_up = patience.passed if many else number + 1 >= MAX_ATTEMPTS
            if given_up or deadline.passed():
                break
            if many:
                times = min(MOST_ATTEMPTS_PAUSED, 2 ** (number + 1))
                longest = max(FIRST_PAUSE, times * (deadline.monotonic() - begun))
                pause_up_to(patience.left(min(LONGEST_PAUSE_OF_RIVALS, longest)))
            else:
                backoff(number)
    raise UnavailableError from lost


def backoff(number: int) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    pause_up_to(min(LONGEST_PAUSE, FIRST_PAUSE * 2**number))


def pause_up_to(seconds: float) -> None:
    """Wait for so long at most, by chance: rivals that paused together do not meet again."""
    sleep(random.uniform(0, seconds))  # noqa: S311  jitter is no secret
