"""Rate limits as operations declare them. The database counts calls (``engine.limits``)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, Self


# A Lambda instance serves one request at a time, so a counter in its memory could not limit
# callers.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Limit:
    """A maximum of calls by one subject in a window of time.

    >>> Limit("draft", "AI drafts a day", 20, timedelta(days=1)).needs_input
    False
    """

    name: str  # separates the counters of one subject
    what: str  # what is counted, such as "AI drafts a day"
    max_requests: int  # ``RATE_LIMIT_SCALE`` multiplies it.
    window: timedelta
    fails_open: bool = False  # admits a call that the database cannot count
    kept: timedelta = timedelta(0)  # for which counts stay after their windows, to be read
    # Returns the units that a call takes, from its input. By default one.
    weigh: Callable[[Any], int] | None = None
    # Returns the part of the input that has a counter of its own for each caller, such as a form.
    within: Callable[[Any], str] | None = None
    # If visitors share the limit, that of one visitor, who then cannot use up what all share.
    share: "Limit | None" = None

    @property
    def needs_input(self) -> bool:
        """Whether the input must be known to count a call."""
        return self.weigh is not None or self.within is not None

    def weighed(self, weigh: Callable[[Any], int]) -> Self:
        """Return this limit with a function for the units of a call. A call of 0 is not counted."""
        return replace(self, weigh=weigh)


# Operations that occupy a Lambda or an outside service for seconds, limited per API key.
HEAVY = Limit(
    "heavy",
    "calls a minute that fetch, draft or search outside",
    60,
    timedelta(minutes=1),
    fails_open=True,
    kept=timedelta(days=90),  # as the audit log
)


# The limit that a key's owner may set, with a maximum of each key. Other keys are not counted.
KEY_CALLS = Limit(
    "key-calls", "calls a minute with this key", 0, timedelta(minutes=1), fails_open=True
)


class RateLimitStatus(NamedTuple):
    limit: int
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }
