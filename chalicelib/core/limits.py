"""Limits as operations declare them; they are counted in the database (``engine.limits``).

A Lambda instance serves one request at a time, so a counter in its memory limits nobody
(security.md, Rate limits).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, Self


@dataclass(frozen=True, slots=True)
class Limit:
    """So many calls of a subject within a window. ``RATE_LIMIT_SCALE`` multiplies ``max_requests``.

    ``name`` separates the counters of one subject; ``what`` says what is counted, such as "AI
    drafts a day". A limit that ``fails_open`` admits calls that the database cannot count.
    ``weigh`` says how many units a call takes, by its input; without it, each call takes one.
    ``within`` names what of its input the caller has a limit of its own for, such as a form.
    """

    name: str
    what: str
    max_requests: int
    window: timedelta
    fails_open: bool = False
    weigh: Callable[[Any], int] | None = None
    within: Callable[[Any], str] | None = None

    @property
    def by_input(self) -> bool:
        """Whether the input must be known to count a call."""
        return self.weigh is not None or self.within is not None

    def weighed(self, weigh: Callable[[Any], int]) -> Self:
        """Return this limit, of which a call takes as many units as its input says; 0 is none."""
        return replace(self, weigh=weigh)


HEAVY = Limit(
    "heavy",
    "calls a minute that fetch, draft or search outside",
    60,
    timedelta(minutes=1),
    fails_open=True,
)
"""Operations that keep a Lambda, or a service outside, busy for seconds; held by an API key."""


class RateLimitStatus(NamedTuple):
    """What remains of a limit, for the ``RateLimit-*`` headers."""

    limit: int
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an answer that a shared counter stands behind."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }
