"""Trying again: after another writer was first, or when the database did not answer."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12
"""Attempts before lost races become a 503; with the pauses, a few seconds at most."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5

T = TypeVar("T")

sleep: Callable[[float], None] = time.sleep
"""Replaced in tests."""


def retry_on_conflict(attempt: Callable[[], T]) -> T:
    """Run an attempt that reads, decides and commits, until its commit wins.

    Pauses are jittered and grow (full jitter), so that rivals spread out.

    Raises:
        UnavailableError: every attempt lost, or the request's time is up.
    """
    for number in range(MAX_ATTEMPTS):
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
            if deadline.passed():
                break
            backoff(number)
    raise UnavailableError from lost


def backoff(number: int) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**number)
    sleep(random.uniform(0, longest))  # noqa: S311  jitter is no secret
