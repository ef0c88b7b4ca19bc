"""Retries after concurrent writes and after failures of the database."""

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from math import inf
from typing import NamedTuple, TypeVar

from chalicelib.core import deadline
from chalicelib.core.errors import ConcurrentUpdateError, UnavailableError

MAX_ATTEMPTS = 12  # before a conflict becomes a 503 error; with pauses, they take a few seconds
FIRST_PAUSE = 0.01  # The longest first pause in seconds. The bound doubles with each attempt.
LONGEST_PAUSE = 0.5  # seconds
HIGH_CONTENTION_SECONDS = 20.0  # ends before the request's deadline
# A multiple of the failed attempt's duration. Pauses in proportion to the duration keep writers
# apart even if the database is slow. In a simulation with fifty writers of one row, they halved the
# attempts and saved time.
MAX_PAUSE_FACTOR = 8

T = TypeVar("T")


class RetryPolicy(NamedTuple):
    """Limits of the retries after conflicts, which also end at the request's deadline."""

    attempts: int | None = MAX_ATTEMPTS
    seconds: float = inf
    longest_pause: float = LONGEST_PAUSE  # seconds
    proportional: bool = False  # The bound on pauses depends on the attempt's duration.


DEFAULT_RETRY_POLICY = RetryPolicy()
NO_RETRY = RetryPolicy(attempts=1)
"""For the new state of a record that was read before, which fails for good if another has saved it.
After a conflict that passes, whoever runs the job again writes it."""


def high_contention() -> RetryPolicy:
    """Return the policy for rows with many concurrent writers, such as a fully booked day."""
    return RetryPolicy(None, HIGH_CONTENTION_SECONDS, longest_pause=4.0, proportional=True)


sleep: Callable[[float], None] = time.sleep  # Tests replace it.

# Returns the context of a retry under high contention. A process on AWS has one request at a time,
# so its context does nothing. The local server has many, and lets them retry in turn
# (``infra.local.workarounds``).
turn: Callable[[], AbstractContextManager[object]] = nullcontext


def retry_on_conflict(
    attempt: Callable[[], T], retry_policy: Callable[[], RetryPolicy] = lambda: DEFAULT_RETRY_POLICY
) -> T:
    """Call ``attempt``, which reads and commits, until its commit succeeds.

    Raises UnavailableError if every allowed attempt ended in a conflict, or the deadline passed.
    ``retry_policy`` is called after each attempt, because an attempt may detect many writers.
    """
    started = deadline.monotonic()
    policy = DEFAULT_RETRY_POLICY
    for number in count():
        attempt_started = deadline.monotonic()
        try:
            if not number or not policy.proportional:
                return attempt()
            with turn():
                attempt_started = deadline.monotonic()
                return attempt()
        except ConcurrentUpdateError as error:
            # Python removes the name ``error`` at the end of the block.
            conflict = error
        policy, now = retry_policy(), deadline.monotonic()
        seconds_left = started + policy.seconds - now
        if deadline.passed() or seconds_left <= 0 or number + 1 == policy.attempts:
            break
        # The exponent is limited because a policy may allow any number of attempts.
        longest = FIRST_PAUSE * 2 ** min(number, 16)
        if policy.proportional:
            factor = min(MAX_PAUSE_FACTOR, 2 ** (number + 1))
            longest = max(FIRST_PAUSE, factor * (now - attempt_started))
        pause_up_to(min(longest, policy.longest_pause, seconds_left))
    raise UnavailableError from conflict


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Pause before a retry. The longest possible pause grows with ``number`` (full jitter)."""
    pause_up_to(min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16)))


def pause_up_to(seconds: float) -> None:
    """Pause for a random time of at most ``seconds``, so that concurrent writers spread out."""
    sleep(random.uniform(0, seconds))  # noqa: S311  jitter needs no secure randomness
