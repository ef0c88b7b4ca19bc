"""Rate limits as operations declare them. The database counts calls (``engine.limits``).

A Lambda instance serves one request at a time, so a counter in its memory could not limit callers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, Self


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Limit:
    """A maximum of calls by one subject in a window of time.

    ``RATE_LIMIT_SCALE`` multiplies ``max_requests``. ``name`` separates the counters of one
    subject. ``what`` describes what is counted, such as "AI drafts a day". If the database cannot
    count a call, a limit with ``fails_open`` admits it. ``weigh`` returns the units that a call
    takes, from its input; the default is one. ``within`` returns the part of the input that has a
    counter of its own for each caller, such as a form. If visitors share the limit, ``share`` is
    the limit of one visitor, who then cannot use up what all share.

    >>> Limit("draft", "AI drafts a day", 20, timedelta(days=1)).needs_input
    False
    """

    name: str
    what: str
    max_requests: int
    window: timedelta
    fails_open: bool = False
    weigh: Callable[[Any], int] | None = None
    within: Callable[[Any], str] | None = None
    share: "Limit | None" = None

    @property
    def needs_input(self) -> bool:
        """Whether the input must be known to count a call."""
        return self.weigh is not None or self.within is not None

    def weighed(self, weigh: Callable[[Any], int]) -> Self:
        """Return this limit with a function that returns the units of a call from its input.

        A call of 0 units is not counted.
        """
        return replace(self, weigh=weigh)


HEAVY = Limit(
    "heavy",
    "calls a minute that fetch, draft or search outside",
    60,
    timedelta(minutes=1),
    fails_open=True,
)
"""Operations that occupy a Lambda or an outside service for seconds, limited per API key."""


class RateLimitStatus(NamedTuple):
    """The state of a limit, for the ``RateLimit-*`` headers."""

    limit: int
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a response that is counted by a shared limit."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }
