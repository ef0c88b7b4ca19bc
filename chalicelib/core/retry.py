"""Trying again: after another writer was first, or when the database did not answer."""

import random
import time
from collections.abc import Callable
from itertools import count
from typing import NamedTuple, TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12
"""Attempts before lost races become a 503; with the pauses, a few seconds at most."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5

T = TypeVar("T")


class Patience(NamedTuple):
    """How often an attempt is made, until time is up in any case, and the longest pause between."""

    attempts: int | None = MAX_ATTEMPTS
    longest_pause: float = LONGEST_PAUSE


PATIENCE = Patience()

sleep: Callable[[float], None] = time.sleep
"""Replaced in tests."""


def retry_on_conflict(attempt: Callable[[], T], patience: Patience = PATIENCE) -> T:
    """Run an attempt that reads, decides and commits, until its commit wins.

    Pauses are jittered and grow (full jitter), so that rivals spread out.

    Raises:
        UnavailableError: every attempt lost, or the request's time is up.
    """
    for number in count():
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
        if deadline.passed() or number + 1 == patience.attempts:
            break
        backoff(number, patience.longest_pause)
    raise UnavailableError from lost


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    longest = min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16))
    sleep(random.uniform(0, longest))  # noqa: S311  jitter is no secret
