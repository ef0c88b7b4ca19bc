"""Limits counted in the database: for what costs money, or the patience of those we ask outside.

Windows are aligned to the clock, so one counter is one row, and one conditional update both asks
and takes: of any number of racing calls, exactly as many are admitted as the limit says.
"""

import logging
from datetime import UTC, datetime, timedelta

from pynamodb.attributes import NumberAttribute
from pynamodb.exceptions import UpdateError

from chalicelib.core import clock
from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.limits import Limit, RateLimitStatus
from chalicelib.core.settings import settings
from chalicelib.store.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.store.tables import ControlRow

log = logging.getLogger(__name__)


class TakenRow(ControlRow):
    """How much a subject has taken within one window."""

    taken = NumberAttribute(default=0)


def take(limit: Limit, subject: str, units: int = 1) -> RateLimitStatus:
    """Count a call of a subject, such as a key or a workspace; return what remains.

    Raises:
        RateLimitedError: the limit is reached; with ``Retry-After`` in whole seconds.
        UnavailableError: the database cannot count, and the limit does not fail open.
    """
    max_requests = round(limit.max_requests * settings().rate_limit_scale)
    now = clock.now()
    begun = _begin(now, limit.window)
    ends = begun + limit.window
    wait = max(1, round((ends - now).total_seconds()))
    row = TakenRow(f"LIMIT#{limit.name}#{subject}", begun.isoformat())
    try:
        if units <= max_requests:
            free = TakenRow.taken <= max_requests - units
            row.update(
                [TakenRow.taken.add(units), TakenRow.expires.set(ends)],
                condition=TakenRow.taken.does_not_exist() | free,
            )
            return RateLimitStatus(max_requests, max_requests - int(row.taken), wait)
    except (UpdateError, UnavailableError) as error:
        if error_code(error) != CONDITION_FAILED:
            if not limit.fails_open:
                raise_failure(error)
            log.warning("a limit could not be counted", exc_info=True)
            return RateLimitStatus(max_requests, max_requests, wait)
    msg = f"Too many requests: {max_requests:,} {limit.what} are allowed. Try again in {wait:,} s."
    headers = {**RateLimitStatus(max_requests, 0, wait).headers, "Retry-After": str(wait)}
    raise RateLimitedError(msg, headers=headers)


def give_back(limit: Limit, subject: str) -> None:
    """Uncount a call of a subject that turned out not to count. A new window is left as it is."""
    now = clock.now()
    row = TakenRow(f"LIMIT#{limit.name}#{subject}", _begin(now, limit.window).isoformat())
    try:
        row.update([TakenRow.taken.add(-1)], condition=TakenRow.taken >= 1)
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


def _begin(moment: datetime, window: timedelta) -> datetime:
    """Return when the window that a moment lies in began; days begin at midnight UTC."""
    epoch = datetime.fromtimestamp(0, UTC)
    return moment - (moment - epoch) % window
