"""Limits counted in the database: for what costs money, or the patience of those we ask outside.

A limit is so many calls of a subject within a window: a minute, a UTC day. Windows are aligned to
the clock, so one counter is one row, and one conditional update both asks and takes: of any number
of racing calls, exactly as many are admitted as the limit says. Ordinary calls are limited in
memory (``core.ratelimit``).
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pynamodb.attributes import NumberAttribute
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.ratelimit import RateLimitStatus
from chalicelib.core.settings import settings
from chalicelib.store.idempotency import CONDITION_FAILED
from chalicelib.store.tables import ControlRow, error_code

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    """What is limited. ``RATE_LIMIT_SCALE`` multiplies ``max_requests``.

    ``name`` separates the counters of one subject; ``what`` says what is counted, such as
    "AI drafts a day". A limit that ``fails_open`` admits calls that the database cannot count.
    """

    name: str
    what: str
    max_requests: int
    window: timedelta
    fails_open: bool = False


HEAVY = Limit(
    "heavy",
    "photo searches, AI drafts and page imports a minute",
    60,
    timedelta(minutes=1),
    fails_open=True,
)
"""Operations that keep a Lambda, or a service outside, busy for seconds; held by an API key."""


class TakenRow(ControlRow):
    """How often a subject has come within one window."""

    taken = NumberAttribute(default=0)


def take(limit: Limit, subject: str) -> RateLimitStatus:
    """Count one call of a subject, such as a key or a workspace; return what is left.

    Raises:
        RateLimitedError: the limit is reached; with ``Retry-After`` in whole seconds.
        UnavailableError: the database cannot count, and the limit does not fail open.
    """
    max_requests = round(limit.max_requests * settings().rate_limit_scale)
    now = clock.now()
    begun = _begin(now, limit.window)
    ends = begun + limit.window
    left = max(1, round((ends - now).total_seconds()))
    row = TakenRow(f"LIMIT#{limit.name}#{subject}", begun.isoformat())
    try:
        if max_requests > 0:
            row.update(
                [TakenRow.taken.add(1), TakenRow.expires.set(ends)],
                condition=TakenRow.taken.does_not_exist() | (TakenRow.taken < max_requests),
            )
            return RateLimitStatus(max_requests, max_requests - int(row.taken), left)
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            if not limit.fails_open:
                raise UnavailableError from error
            log.warning("a limit could not be counted", exc_info=True)
            return RateLimitStatus(max_requests, max_requests, left)
    msg = f"Too many requests: {max_requests:,} {limit.what} are allowed. Try again in {left:,} s."
    headers = {**RateLimitStatus(max_requests, 0, left).headers, "Retry-After": str(left)}
    raise RateLimitedError(msg, headers=headers)


def _begin(moment: datetime, window: timedelta) -> datetime:
    """Return when the window that a moment lies in began; days begin at midnight UTC."""
    epoch = datetime.fromtimestamp(0, UTC)
    return moment - (moment - epoch) % window
