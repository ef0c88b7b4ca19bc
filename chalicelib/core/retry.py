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
PATIENCE_SECONDS = 8.0
"""How long attempts go on instead where many are expected to write the same row at once."""
FEWER_AT_ONCE = 2
"""So many times are pauses doubled where many rivals are expected, so that fewer meet again."""
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


def retry_on_conflict(
    attempt: Callable[[], T],
    patience: Patience = PATIENCE,
    rivals: Callable[[], bool] = lambda: False,
) -> T:
    """Run an attempt that reads, decides and commits, until its commit wins.

    Pauses are jittered and grow (full jitter), so that rivals spread out. If it has ``rivals``, as
    the attempt that lost may have said, it goes on for ``PATIENCE_SECONDS`` however often it loses,
    with longer pauses from the start.

    Raises:
        UnavailableError: every attempt lost, or the request's time is up.
    """
    many_until = deadline.Deadline(PATIENCE_SECONDS)
    for number in count():
        try:
            return attempt()
        except ConcurrentUpdateError as error:
            lost = error
        many = rivals()
        last = number + 1 == patience.attempts
        if deadline.passed() or (many_until.passed if many else last):
            break
        backoff(number + FEWER_AT_ONCE if many else number, patience.longest_pause)
    raise UnavailableError from lost


def backoff(number: int, longest_pause: float = LONGEST_PAUSE) -> None:
    """Wait before trying again, the longer the more often it failed before (full jitter)."""
    longest = min(longest_pause, FIRST_PAUSE * 2 ** min(number, 16))
    sleep(random.uniform(0, longest))  # noqa: S311  jitter is no secret
