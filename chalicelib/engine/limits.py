"""Rate limits counted in the database, for operations that cost money or use outside services."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import ceil
from typing import NamedTuple, Self

from pynamodb.attributes import NumberAttribute
from pynamodb.exceptions import UpdateError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from chalicelib.core import clock, deadline
from chalicelib.core.errors import RateLimitedError, UnavailableError
from chalicelib.core.limits import Limit, RateLimitStatus
from chalicelib.core.settings import settings
from chalicelib.engine.connection import CONDITION_FAILED, error_code, raise_failure
from chalicelib.engine.reading import Cost, Key, Partition, Rows
from chalicelib.engine.tables import ControlRow
from chalicelib.engine.unit import UnitOfWork

log = logging.getLogger(__name__)

# Shares of visitors that an IPv6 network of 48 bits has in all. One subscriber may have the whole
# network (RFC 6177).
NETWORK_SHARES = 10
NETWORK_SUFFIX = "-network"  # ends the name of a network's limit, after the name of the visitor's


class RateLimitRow(ControlRow):
    used = NumberAttribute(attr_name="taken", default=0)


def take(limit: Limit, subject: str, units: int = 1) -> RateLimitStatus:
    """Count a call of a subject, such as a key or a workspace. Returns the remaining calls.

    Raises RateLimitedError with ``Retry-After`` in whole seconds, or UnavailableError if the
    database cannot count and the limit does not fail open.
    """
    window = _Window.current(limit, subject)
    row, max_requests, wait = window.row, window.max_requests, window.wait
    try:
        # A new window has no counter that the condition could compare, so a larger call is refused
        # here.
        if units <= max_requests:
            # One conditional update checks and counts, so concurrent calls cannot exceed the limit.
            row.update(window.taking(units), condition=window.has_room(units))
            return RateLimitStatus(max_requests, max_requests - int(row.used), wait)
    except (UpdateError, UnavailableError) as error:
        if error_code(error) != CONDITION_FAILED:
            if not limit.fails_open:
                raise_failure(error)
            log.warning("a limit could not be counted", exc_info=True)
            return RateLimitStatus(max_requests, max_requests, wait)
    raise window.refusal


def take_each(subjects: Sequence[tuple[Limit, str]], units: int = 1) -> list[RateLimitStatus]:
    """Count a call under several limits side by side. Returns and raises as ``take``."""
    now = clock.now()
    with deadline.side_by_side() as start:
        counts = [start(partial(take, *subject, units)) for subject in subjects]
    failed = [number for number, count in enumerate(counts) if count.exception() is not None]
    if failed:
        # A refused call is given back to all later limits.
        for later, count in list(zip(subjects, counts, strict=True))[failed[0] + 1 :]:
            if count.exception() is None:
                give_back(*later, now, units)
    return [count.result() for count in counts]


def take_share(
    limit: Limit, subjects: Sequence[str], units: int = 1, *, shared: Limit | None = None
) -> RateLimitStatus:
    """Count a call of a caller and its IPv6 network, if any, and return the lower remainder.

    Raises as ``take`` does.
    """
    counters = visitor_limits(limit, subjects, shared)
    if len(counters) == 1:  # as of most callers, who need no threads
        return take(*counters[0], units)
    return min(take_each(counters, units), key=lambda status: status.remaining)


def visitor_limits(
    limit: Limit, subjects: Sequence[str], shared: Limit | None = None
) -> list[tuple[Limit, str]]:
    """Return a visitor's limit, and that of its IPv6 network (``Principal.share_subjects``)."""
    max_requests = NETWORK_SHARES * limit.max_requests
    if shared is not None:
        # A network may use at most half of the limit of all visitors.
        max_requests = max(limit.max_requests, min(max_requests, shared.max_requests // 2))
    network = replace(
        limit,
        name=f"{limit.name}{NETWORK_SUFFIX}",
        what=f"{limit.what} from one network",
        max_requests=max_requests,
        share=limit,
    )
    return list(zip((limit, network), subjects, strict=False))


def key(limit: Limit, subject: str) -> Key:
    """Return the key of a subject's counter, to read it ahead for ``stage``."""
    return _Window.current(limit, subject).key


def check(limit: Limit, subject: str) -> None:
    """Raise RateLimitedError for a subject that has reached a limit. Nothing is counted."""
    window = _Window.current(limit, subject)
    row = RateLimitRow.find(window.row.pk, window.row.sk)
    if row is not None and row.used >= window.max_requests:
        raise window.refusal


def used(limit: Limit, subject: str, rows: Rows) -> int:
    """Return the units that a subject had used when the rows were read."""
    row = rows.find(RateLimitRow, key(limit, subject))
    return int(row.used) if row else 0


def has_room(limit: Limit, subject: str, rows: Rows) -> bool:
    """Return whether a limit was not reached when the rows were read."""
    return used(limit, subject, rows) < _Window.current(limit, subject).max_requests


def used_between(
    limit: Limit, subject: str, *, first: datetime, last: datetime, at_most: int
) -> list[tuple[datetime, int]]:
    """Return the windows of a limit with ``kept`` that counted units, newest first.

    Each has its beginning and its units. Only the newest ``at_most`` are read.
    """
    bounds = (_begin(moment, limit.window).isoformat() for moment in (first, last))
    rows = Partition(f"LIMIT#{limit.name}#{subject}", Cost(), RateLimitRow).items(
        at_most, range_key_condition=RateLimitRow.sk.between(*bounds), scan_index_forward=False
    )
    return [(datetime.fromisoformat(row["sk"]["S"]), int(row["taken"]["N"])) for row in rows]


def refusal(limit: Limit, subject: str) -> RateLimitedError:
    """Return the error for a limit that a subject has reached."""
    return _Window.current(limit, subject).refusal


def require_room(counters: Iterable[tuple[Limit, str]], rows: Rows) -> None:
    """Raise RateLimitedError if a limit was reached when the rows were read."""
    for limit, subject in counters:
        if not has_room(limit, subject, rows):
            raise refusal(limit, subject)


def stage(
    unit: UnitOfWork,
    limit: Limit,
    subject: str,
    *,
    runs_again: bool = False,
    refused: Callable[[RateLimitedError], RateLimitedError] | None = None,
) -> None:
    """Stage one more unit for a subject, in the transaction of the limited change.

    At commit, ``RateLimitedError``, or what ``refused`` makes of it, is raised if the limit is
    reached; with ``runs_again``, the unit of work runs again instead.
    """
    window = _Window.current(limit, subject)
    error = window.refusal if refused is None else refused(window.refusal)
    # A refused transaction costs as much as one that is carried out, so a counter that was read
    # ahead is looked at first.
    if window.key in unit.rows and not has_room(limit, subject, unit.rows):
        raise error
    conflict = None if runs_again else error
    unit.update(window.row, window.taking(1), window.has_room(1), on_conflict=conflict)


class _Window(NamedTuple):
    limit: Limit
    row: RateLimitRow
    max_requests: int
    ends: datetime
    wait: int

    @classmethod
    def current(cls, limit: Limit, subject: str) -> Self:
        now = clock.now()
        begun = _begin(now, limit.window)
        ends = begun + limit.window
        return cls(
            limit,
            RateLimitRow(f"LIMIT#{limit.name}#{subject}", begun.isoformat()),
            round(limit.max_requests * settings().rate_limit_scale),
            ends,
            ceil((ends - now).total_seconds()),
        )

    @property
    def key(self) -> Key:
        return Key(RateLimitRow, self.row.pk, self.row.sk)

    def taking(self, units: int) -> list[Action]:
        return [RateLimitRow.used.add(units), RateLimitRow.expires.set(self.ends + self.limit.kept)]

    def has_room(self, units: int) -> Condition:
        room: Condition = RateLimitRow.used <= self.max_requests - units
        fits: Condition = RateLimitRow.used.does_not_exist() | room
        return fits

    @property
    def refusal(self) -> RateLimitedError:
        max_requests, wait = self.max_requests, self.wait
        allowed = f"{max_requests:,} {self.limit.what} are allowed"
        msg = f"Too many requests: {allowed}. Try again in {wait:,} s."
        headers = {**RateLimitStatus(max_requests, 0, wait).headers, "Retry-After": str(wait)}
        # A network's limit is the same reason to its visitors as their own.
        key = self.limit.name.removesuffix(NETWORK_SUFFIX).replace("-", "_")
        return RateLimitedError(msg, key=key, headers=headers)


def give_back(limit: Limit, subject: str, counted_at: datetime, units: int = 1) -> None:
    """Subtract the units of a call that should not count from the window that counted it."""
    begun = _begin(counted_at, limit.window)
    row = RateLimitRow(f"LIMIT#{limit.name}#{subject}", begun.isoformat())
    try:
        # The row may have expired. Without the condition, the update would create one below zero.
        row.update([RateLimitRow.used.add(-units)], condition=RateLimitRow.used >= units)
    except UpdateError as error:
        if error_code(error) != CONDITION_FAILED:
            raise_failure(error)


# Windows are aligned to the clock, so each counter is one row.
def _begin(moment: datetime, window: timedelta) -> datetime:
    # Days begin at midnight UTC.
    epoch = datetime.fromtimestamp(0, UTC)
    return moment - (moment - epoch) % window
