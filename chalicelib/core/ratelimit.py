"""In-process token buckets.

Ordinary calls are limited without a database write (security.md, Rate limits).
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Lock

from chalicelib.core.errors import RateLimitedError


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """What is left of a limit, for the ``RateLimit-*`` headers."""

    limit: int
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        """The three headers every answer to a key carries."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }


class TokenBuckets:
    """A bucket per name, refilled at ``rate`` a second up to ``burst``.

    The least recently used names are forgotten.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        names: int = 10_000,
    ) -> None:
        self.rate, self.burst, self._clock, self._names = rate, burst, clock, names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str) -> RateLimitStatus:
        """Take one token.

        Raises:
            RateLimitedError: with ``Retry-After`` in whole seconds when the bucket is empty.
        """
        with self._lock:
            now = self._clock()
            tokens, then = self._buckets.pop(name, (float(self.burst), now))
            tokens = min(self.burst, tokens + (now - then) * self.rate)
            allowed = tokens >= 1
            tokens -= allowed
            self._buckets[name] = (tokens, now)
            if len(self._buckets) > self._names:
                self._buckets.popitem(last=False)
        left = RateLimitStatus(self.burst, int(tokens), ceil((self.burst - tokens) / self.rate))
        if not allowed:
            wait = str(max(1, ceil((1 - tokens) / self.rate)))
            msg = f"Too many requests. Wait {wait} s; {self.rate:g} a second are allowed."
            raise RateLimitedError(msg, headers={**left.headers, "Retry-After": wait})
        return left
