"""Store the dated starts of services, in the order of their times (ADR 141).

A start is also in each calendar day of its resource that it overlaps
(``bookings.store.calendar_days``). Slots and bookings read it there only, and a transaction changes
both.
"""

from datetime import timedelta
from typing import Self

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.engine import locks
from chalicelib.engine.locks import LockRow
from chalicelib.engine.reading import Key
from chalicelib.engine.tables import ContentRow
from chalicelib.engine.unit import UnitOfWork

LOCK = "dated-starts"  # name of a lock row (``engine.locks``)
_MINUTE = 60_000
LATEST = 10**9 * _MINUTE  # later than any start, in milliseconds


class DatedStartRow(ContentRow):
    """A start of a service with a resource. Its sort key is the service, the minute, the resource.

    The calendar days are the lock, so it has no version.
    """

    service_id = UnicodeAttribute()
    resource_id = UnicodeAttribute()
    starts_at = UTCDateTimeAttribute()
    duration_min = NumberAttribute()
    buffer_before_min = NumberAttribute()
    buffer_after_min = NumberAttribute()

    @classmethod
    def of(cls, workspace_id: str, resource_id: str, dated: DatedStart) -> Self:
        return cls(
            partition(workspace_id),
            f"{_key(dated.service_id, dated.start)}{resource_id}",
            service_id=dated.service_id,
            resource_id=resource_id,
            starts_at=clock.moment_at(dated.start),
            duration_min=(dated.end - dated.start) // _MINUTE,
            buffer_before_min=dated.buffer_before_min,
            buffer_after_min=dated.buffer_after_min,
        )

    @property
    def dated(self) -> DatedStart:
        return DatedStart(
            self.service_id,
            epoch_ms(self.starts_at),
            epoch_ms(self.starts_at + timedelta(minutes=int(self.duration_min))),
            int(self.buffer_before_min),
            int(self.buffer_after_min),
        )


def key(workspace_id: str, *, service_id: str, start: int, resource_id: str) -> Key:
    """Return the key of a start, which is in milliseconds since 1970 UTC."""
    return Key(DatedStartRow, partition(workspace_id), f"{_key(service_id, start)}{resource_id}")


def between(
    workspace_id: str, *, service_id: str, first_ms: int, last_ms: int = LATEST
) -> list[DatedStartRow]:
    """Return the starts of a service from one moment to another, both inclusive, by start."""
    # A minute later sorts after the last one with any resource.
    bounds = DatedStartRow.sk.between(
        _key(service_id, max(first_ms, 0)), _key(service_id, last_ms + _MINUTE)
    )
    rows = DatedStartRow.partition(partition(workspace_id), range_key_condition=bounds)
    return [row for row in rows if first_ms <= row.dated.start <= last_ms]


def note_addition(unit: UnitOfWork) -> None:
    """Stage that dates are added, for changes that require that none are."""
    locks.stage_raise(unit, LOCK)


def require_none_added(unit: UnitOfWork) -> None:
    """Require at commit that no dates were added since now. Call it before dates are read."""
    lock = locks.lock_row(unit.workspace_id, what=LOCK, rows=unit.rows)
    version = lock.version
    unit.require(lock, LockRow.version == version if version else LockRow.pk.does_not_exist())


def partition(workspace_id: str) -> str:
    """Return the partition of the dated starts of a workspace."""
    return f"W#{workspace_id}#DATED_START"


def _key(service_id: str, start: int) -> str:
    return f"{service_id}#{start // _MINUTE:010d}#"
