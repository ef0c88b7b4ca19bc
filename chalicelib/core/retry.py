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
RIVALS_SECONDS = 8.0

T = TypeVar("T")


class Patience(NamedTuple):
    """How long lost races are run again: so often, so many seconds, or until the deadline.

    The pauses, at most ``longest_pause`` seconds, begin as if ``lost_before`` races had been lost.
    """

    attempts: int | None = MAX_ATTEMPTS
    seconds: float | None = None
    longest_pause: float = LONGEST_PAUSE
    lost_before: int = 0


PATIENCE = Patience()


def among_rivals() -> Patience:
    """Return the patience for what many are expected to write at once, such as a busy day."""
    return Patience(attempts=None, seconds=RIVALS_SECONDS, lost_before=2)


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
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
        how = patience()
        late = how.seconds is not None and deadline.monotonic() - began >= how.seconds
        if deadline.passed() or late or number + 1 == how.attempts:
            break
        backoff(number + how.lost_before, how.longest_pause)
    raise UnavailableError from lost


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    longest = min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16))
    sleep(random.uniform(0, longest))  # noqa: S311  jitter is no secret
