"""Retries after concurrent writes and after failures of the database."""

import random
import time
from collections.abc import Callable
from itertools import count
from math import inf
from typing import NamedTuple, TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12
"""Attempts before conflicts become a 503. With the pauses, they take a few seconds at most."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5
HIGH_CONTENTION_SECONDS = 8.0
MOST_ATTEMPTS_PAUSED = 8
"""Pauses grow to at most this multiple of the lost attempt's duration under high contention.

Pauses in proportion to the duration keep writers apart even if the database is slow. In a
simulation, fifty writers of one row needed half the attempts and less time.
"""

T = TypeVar("T")


class RetryPolicy(NamedTuple):
    """How long to retry after conflicts: a number of attempts, seconds, or the deadline.

    Pauses take at most ``longest_pause`` seconds. They double each time or, with ``proportional``,
    follow the duration of the attempt.
    """

    attempts: int | None = MAX_ATTEMPTS
    seconds: float = inf
    longest_pause: float = LONGEST_PAUSE
    proportional: bool = False


DEFAULT_RETRY_POLICY = RetryPolicy()


def high_contention() -> RetryPolicy:
    """Return the policy for rows with many concurrent writers, such as a popular day."""
    return RetryPolicy(None, HIGH_CONTENTION_SECONDS, longest_pause=4.0, proportional=True)


sleep: Callable[[float], None] = time.sleep
"""The function that pauses. Tests replace it."""


def retry_on_conflict(
    attempt: Callable[[], T], retry_policy: Callable[[], RetryPolicy] = lambda: DEFAULT_RETRY_POLICY
) -> T:
    """Run an attempt that reads, decides and commits, until its commit succeeds.

    Pauses grow and are random (full jitter), so that writers spread out. ``retry_policy`` is called
    after each attempt, because an attempt may find out how many writers there are.

    Raises:
        UnavailableError: every attempt met a conflict, or the request's time is up.
    """
    began = deadline.monotonic()
    for number in count():
        begun = deadline.monotonic()
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
        how, now = retry_policy(), deadline.monotonic()
        left = began + how.seconds - now
        if deadline.passed() or left <= 0 or number + 1 == how.attempts:
            break
        longest = FIRST_PAUSE * 2 ** min(number, 16)
        if how.proportional:
            longest = max(FIRST_PAUSE, min(MOST_ATTEMPTS_PAUSED, 2 ** (number + 1)) * (now - begun))
        pause_up_to(min(longest, how.longest_pause, left))
    raise UnavailableError from lost


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Pause before a retry. The pause grows with the number of failures (full jitter)."""
    pause_up_to(min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16)))


def pause_up_to(seconds: float) -> None:
    """Pause for a random time of at most ``seconds``, so that concurrent writers spread out."""
    sleep(random.uniform(0, seconds))  # noqa: S311  jitter is no secret
