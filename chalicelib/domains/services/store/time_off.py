"""Store periods when a resource, or a whole workspace, cannot be booked (ADR 20).

One query finds the time off that can affect a slot, even if much time off has passed. The compact
index has the fields that slots need, sorted by the end of time off.

A booking must not commit while time off for the same period is created. Each creation and deletion
increases the version of a lock row, and of the row of its resource. Bookings read the lock, then
the time off (``read_checked``), and require in their transaction that the lock is unchanged.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.ids import new_id
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.engine import locks
from chalicelib.engine.listing.index_entries import BY_ROW
from chalicelib.engine.locks import LockRow
from chalicelib.engine.reading import Cost, Key, Partition, Rows, fetch
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

LOCK = "time-off"  # name of a lock row (``engine.locks``)

LATEST = 10**15 - 1  # upper bound of moments, in milliseconds

_FURTHEST = timedelta(days=1)  # maximum offset of a time zone from UTC, rounded up


class TimeOff(NamedTuple):
    """Time off with either whole local dates, in each resource's own zone, or a span of moments."""

    id: str
    resource_id: str | None  # None: of all resources
    moments: Span | None  # milliseconds since 1970 UTC
    first_day: date | None
    last_day: date | None

    @property
    def all_day(self) -> bool:
        return self.moments is None

    def applies_to(self, resource_id: str) -> bool:
        return self.resource_id in {None, resource_id}

    def span(self, timezone: str) -> Span:
        # For a resource in the time zone.
        if self.moments is not None:
            return self.moments
        assert self.first_day is not None and self.last_day is not None  # noqa: S101, PT018  both or neither
        return zoned_times.span_of_days(self.first_day, last=self.last_day, timezone=timezone)

    @property
    def span_in_any_zone(self) -> Span:
        # A span that contains the time off in every time zone.
        if self.moments is not None:
            return self.moments
        start, end = self.span("UTC")
        # Zones reach from UTC-12 to UTC+14, so a day begins and ends within this margin.
        margin = _FURTHEST // timedelta(milliseconds=1)
        return Span(start - margin, end + margin)


class TimeOffRow(ContentRow):
    """A stored row of time off. Its index entry has the fields that slots need.

    ``f1`` is the resource, ``n1`` and ``n2`` are the moments, ``y1`` and ``y2`` the dates.
    """

    y1 = UnicodeAttribute(null=True)  # type: ignore[assignment]  # dates; no list filters by them
    y2 = UnicodeAttribute(null=True)  # type: ignore[assignment]  # as above
    reason = UnicodeAttribute(null=True)
    created_at = UTCDateTimeAttribute()

    @property
    def id(self) -> str:
        return self.sk

    @property
    def time_off(self) -> TimeOff:
        return _read(self.serialize())


def new_row(
    workspace_id: str,
    resource_id: str | None,
    *,
    moments: Span | None = None,
    days: tuple[date, date] | None = None,
    reason: str | None = None,
) -> TimeOffRow:
    """Return a row of new time off, with either a span of moments or the first and last date."""
    first, last = days or (None, None)
    time_off = TimeOff(new_id(), resource_id, moments, first, last)
    return TimeOffRow(
        _partition(workspace_id),
        time_off.id,
        r=f"{_ends(time_off.span_in_any_zone.end)}#{time_off.id}",
        f1=resource_id,
        n1=moments and moments.start,
        n2=moments and moments.end,
        y1=first and first.isoformat(),
        y2=last and last.isoformat(),
        reason=reason,
        created_at=clock.now(),
    )


def all_of(workspace_id: str, *, resource_id: str) -> list[TimeOff]:
    """Return all time off of a single resource, past and future."""
    items = Partition(_partition(workspace_id), Cost()).items(
        index_name=BY_ROW, filter_condition=ContentRow.f1 == resource_id, consistent_read=True
    )
    return list(map(_read, items))


def overlapping(workspace_id: str, first_ms: int, *, last_ms: int) -> list[TimeOff]:
    """Return time off between two moments, of any resource, sorted by its end.

    Both moments are in milliseconds since 1970 UTC, and inclusive. Whole dates are included if they
    overlap in any zone; ``TimeOff.span`` returns their span for one resource.
    """
    # The index is sorted by the end, so time off that has passed is not read.
    not_ended = ContentRow.r >= _ends(first_ms + 1)
    # One strongly consistent query.
    items = Partition(_partition(workspace_id), Cost()).items(
        index_name=BY_ROW, range_key_condition=not_ended, consistent_read=True
    )
    return [absence for absence in map(_read, items) if absence.span_in_any_zone.start <= last_ms]


def key(workspace_id: str, *, time_off_id: str) -> Key:
    """Return the key of time off, so that it can be read with other rows."""
    return Key(TimeOffRow, _partition(workspace_id), time_off_id)


def find(workspace_id: str, *, time_off_id: str) -> TimeOffRow | None:
    """Return time off by its id, or None."""
    return TimeOffRow.find(_partition(workspace_id), time_off_id)


def find_all(workspace_id: str, ids: Sequence[str]) -> list[TimeOffRow]:
    """Return time off by ids, in their order, without missing ids."""
    rows = fetch(key(workspace_id, time_off_id=time_off_id) for time_off_id in ids)
    return [row for row in rows if isinstance(row, TimeOffRow)]


def stage_creation(unit: UnitOfWork, row: TimeOffRow, resource: ResourceRow | None) -> None:
    """Stage new time off of a resource or the workspace. Concurrent bookings then conflict."""
    unit.create(row)
    _raise_version(unit, row, resource)


def stage_deletion(unit: UnitOfWork, row: TimeOffRow, resource: ResourceRow | None) -> None:
    """Stage the deletion of time off. ``resource`` is its resource, if it still exists."""
    unit.delete(row, if_there=True)
    _raise_version(unit, row, resource)


def lock_key(workspace_id: str) -> Key:
    """Return the key of the lock row, so that it can be read with other rows."""
    return locks.lock_key(workspace_id, what=LOCK)


def read_lock(workspace_id: str, rows: Rows | None = None) -> LockRow:
    """Return the lock row of the workspace's time off."""
    return locks.lock_row(workspace_id, what=LOCK, rows=rows)


class CheckedTimeOff(NamedTuple):
    """Time off of a workspace, and its lock, which was read before."""

    lock: LockRow
    periods: Sequence[TimeOff]

    def require_unchanged(self, unit: UnitOfWork) -> None:
        """Require at commit that the workspace's time off is unchanged."""
        version = self.lock.version
        is_same = LockRow.version == version if version else LockRow.pk.does_not_exist()
        # Time off is written with a new version of the lock, so the lock shows every change.
        unit.require(self.lock, is_same)


def read_checked(unit: UnitOfWork, span: Span, keys: Iterable[Key] = ()) -> CheckedTimeOff:
    """Return the time off between two moments, read once side by side with other rows."""
    # The lock is first. If time off is added after it was read, the commit fails.
    lock = read_lock(unit.workspace_id, unit.rows)
    periods = unit.rows.read_beside(
        keys, (LOCK, span), lambda: overlapping(unit.workspace_id, span.start, last_ms=span.end)
    )
    return CheckedTimeOff(lock, periods)


def _raise_version(unit: UnitOfWork, row: TimeOffRow, resource: ResourceRow | None) -> None:
    unit.mention(f"time_off:{row.id}")
    locks.stage_raise(unit, LOCK)
    if resource is not None:
        unit.save(resource)


def _partition(workspace_id: str) -> str:
    return f"W#{workspace_id}#TIME_OFF"


def _ends(moment: int) -> str:
    return f"{max(0, moment):015d}"


def _read(item: Mapping[str, Any]) -> TimeOff:
    resource_id = item["f1"]["S"] if "f1" in item else None
    if "n1" in item:
        moments = Span(int(item["n1"]["N"]), int(item["n2"]["N"]))
        return TimeOff(item["sk"]["S"], resource_id, moments, None, None)
    first, last = (date.fromisoformat(item[slot]["S"]) for slot in ("y1", "y2"))
    return TimeOff(item["sk"]["S"], resource_id, None, first, last)
