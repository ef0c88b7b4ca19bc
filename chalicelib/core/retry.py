"""Trying again: after another writer was first, or when the database did not answer."""

import random
import time
from collections.abc import Callable
from itertools import count
from math import inf
from typing import NamedTuple, TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12
"""Attempts before lost races become a 503; with the pauses, a few seconds at most."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5
RIVALS_SECONDS = 8.0
MOST_ATTEMPTS_PAUSED = 8
"""Where many rivals are expected, pauses grow to so many times what the lost attempt took.

However slow the database is, so that few of them meet again: fifty simulated rivals for one row win
in half the attempts, and sooner.
"""

T = TypeVar("T")


class Patience(NamedTuple):
    """How long lost races are run again: so often, so many seconds, or until the deadline.

    Pauses, of at most ``longest_pause`` seconds, double each time, or are ``in_proportion`` to what
    the attempt took.
    """

    attempts: int | None = MAX_ATTEMPTS
    seconds: float = inf
    longest_pause: float = LONGEST_PAUSE
    in_proportion: bool = False


PATIENCE = Patience()


def among_rivals() -> Patience:
    """Return the patience for what many are expected to write at once, such as a busy day."""
    return Patience(None, RIVALS_SECONDS, longest_pause=4.0, in_proportion=True)


sleep: Callable[[float], None] = time.sleep
"""Replaced in tests."""


def retry_on_conflict(
    attempt: Callable[[], T], patience: Callable[[], Patience] = lambda: PATIENCE
) -> T:
    """Run an attempt that reads, decides and commits, until its commit wins.

    Pauses are jittered and grow (full jitter), so that rivals spread out. The ``patience`` is asked
    for after each attempt, which may have found out how many rivals there are.

    Raises:
        UnavailableError: every attempt lost, or the request's time is up.
    """
    began = deadline.monotonic()
    for number in count():
        begun = deadline.monotonic()
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
        how, now = patience(), deadline.monotonic()
        left = began + how.seconds - now
        if deadline.passed() or left <= 0 or number + 1 == how.attempts:
            break
        longest = FIRST_PAUSE * 2 ** min(number, 16)
        if how.in_proportion:
            longest = max(FIRST_PAUSE, min(MOST_ATTEMPTS_PAUSED, 2 ** (number + 1)) * (now - begun))
        pause_up_to(min(longest, how.longest_pause, left))
    raise UnavailableError from lost


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    pause_up_to(min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16)))


def pause_up_to(seconds: float) -> None:
    """Wait for so long at most, by chance: rivals that paused together do not meet again."""
    sleep(random.uniform(0, seconds))  # noqa: S311  jitter is no secret
