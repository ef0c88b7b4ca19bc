"""Rows of resources (staff, rooms and equipment) and their opening hours (ADR 20).

A booking's transaction requires the ``ResourceRow.version`` that it read. So every change that
affects bookings increases the version: hours, zone, capacity, status, and the resource's own time
off (``domains.services.store.time_off``). Deletion removes the row. Descriptions and photos
increase the version, too; a concurrent booking then runs again.
"""

from collections.abc import Collection, Sequence
from datetime import date, timedelta

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.domains.files.store.files import SHOWN_IMAGES, ImageMap
from chalicelib.domains.services.rules.opening_hours import Schedule
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import register_listing
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow, JsonAttribute, Record
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span

IN_ORDER = SortIndex("sortOrder")


class ResourceRow(Record):
    """A resource that services are booked with.

    ``images`` has the photo, if any. ``timezone`` is an IANA name.
    """

    name = UnicodeAttribute()
    type = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)
    timezone = UnicodeAttribute()
    capacity = NumberAttribute()
    status = UnicodeAttribute()
    sort_order = NumberAttribute()


RESOURCES = register_listing(
    Listing(
        row=ResourceRow,
        noun="RESOURCE",
        listed_by="svc_list_resources",
        text=lambda resource: (resource.name,),
        status="status",
        numbers=("sort_order",),
        sorts={"sortOrder": "n1", "name": "t"},
        indexes=(IN_ORDER, SortIndex("sortOrder", partition_by="status")),
        files=SHOWN_IMAGES,
        inline_bytes=NAME_BYTES,
    )
)


class ScheduleRow(ContentRow):
    """Opening hours of a resource.

    They are stored separately because of their size: 400 dates of 24 intervals are 100 KB.
    ``hours`` has the start and end minutes of the intervals of each weekday and date. Each change
    writes another ``resource_version``, the version that the resource has after the change.
    """

    hours: JsonAttribute = JsonAttribute()
    resource_version = NumberAttribute(null=True)
    updated_at = UTCDateTimeAttribute()

    @property
    def schedule(self) -> Schedule:
        """The opening hours as a ``Schedule``."""
        return Schedule(
            tuple(_spans(minutes) for minutes in self.hours["weekly"]),
            {date.fromisoformat(d): _spans(hours) for d, hours in self.hours["dates"].items()},
        )


def save_schedule(unit: UnitOfWork, resource: ResourceRow, schedule: Schedule) -> ScheduleRow:
    """Stage the opening hours and their resource, which increases the resource's version.

    Other changes of the resource are saved in the same write.
    """
    hours = {
        "weekly": [_minutes(spans) for spans in schedule.weekly],
        "dates": {day.isoformat(): _minutes(spans) for day, spans in schedule.dates.items()},
    }
    key = _schedule_key(unit.workspace_id, resource.id)
    row = ScheduleRow(
        key.pk,
        key.sk,
        hours=hours,
        # The version is the one after the commit, so a later change of hours writes another number.
        resource_version=int(resource.version or 0) + 1,
        updated_at=clock.now(),
    )
    unit.save(row)
    unit.save(resource)
    return row


def require_with_schedule(
    workspace_id: str, resource_id: str
) -> tuple[ResourceRow, ScheduleRow | None]:
    """Return a resource and its opening hours, or None if they were never set.

    Raises:
        NotFoundError: no resource of the workspace has this id.
    """
    rows = Rows()
    resource_key, schedule_key = keys_with_schedules(workspace_id, [resource_id])
    rows.read([resource_key, schedule_key])
    resource = RESOURCES.found(rows.find(ResourceRow, resource_key))
    return resource, rows.find(ScheduleRow, schedule_key)


def find_with_schedules(
    workspace_id: str, ids: Collection[str], rows: Rows | None = None
) -> list[tuple[ResourceRow, ScheduleRow | None]]:
    """Return the live resources with these ids, in their order, with their opening hours.

    Missing resources are left out. Opening hours that were never set are None. Up to 50 resources
    are read in one strongly consistent request, which is not a snapshot: the hours may be older
    than the resource (``require_hours_unchanged``).
    """
    rows_read = (rows or Rows()).fetch(keys_with_schedules(workspace_id, ids))
    hours = {row.sk: row for row in rows_read if isinstance(row, ScheduleRow)}
    return [(row, hours.get(row.id)) for row in rows_read if isinstance(row, ResourceRow)]


def find_schedule(workspace_id: str, resource_id: str) -> ScheduleRow | None:
    """Return the opening hours of a resource, or None if they were never set."""
    key = _schedule_key(workspace_id, resource_id)
    return ScheduleRow.find(key.pk, key.sk)


def hours_version(hours: ScheduleRow | None) -> int:
    """Return the version of opening hours. Each change writes another one.

    It is 0 for hours that were never set, and for rows that were written without a version.
    """
    return int(hours.resource_version or 0) if hours else 0


def schedule_of(hours: ScheduleRow | None) -> Schedule:
    """Return the opening hours in a row, which are empty if they were never set."""
    return hours.schedule if hours else Schedule()


def keys_with_schedules(workspace_id: str, ids: Collection[str]) -> list[Key]:
    """Return the keys of resources and of their opening hours."""
    resources = [RESOURCES.key(workspace_id, resource_id) for resource_id in ids]
    return [*resources, *keys_of_schedules(workspace_id, ids)]


def keys_of_schedules(workspace_id: str, ids: Collection[str]) -> list[Key]:
    """Return the keys of the opening hours of resources."""
    return [_schedule_key(workspace_id, resource_id) for resource_id in ids]


def stage_deletion(
    unit: UnitOfWork, resource: ResourceRow, schedule: ScheduleRow | None, *, retention: timedelta
) -> None:
    """Stage a resource's deletion, which ends its slots.

    Its hours are kept for the same time.
    """
    until = clock.now() + retention
    unit.soft_delete(resource, until=until)
    if schedule is not None:
        # The hours must not outlive their resource for ever, so both expire together.
        unit.update(schedule, [ScheduleRow.expires.set(until)])


def require(unit: UnitOfWork, resource_id: str, *, on_conflict: AppError | None = None) -> None:
    """Require that a resource exists when the unit commits."""
    key = RESOURCES.key(unit.workspace_id, resource_id)
    unit.require(ResourceRow(key.pk, key.sk), on_conflict=on_conflict)


def require_unchanged(unit: UnitOfWork, resource: ResourceRow) -> None:
    """Require that a resource and its own time off are unchanged at commit.

    Bookings use this. Concurrent bookings of one resource may conflict and run again, because
    DynamoDB lets only one transaction at a time check a row.
    """
    unit.require(resource, ResourceRow.version == resource.version)


def require_hours_unchanged(unit: UnitOfWork, resource_id: str, hours: ScheduleRow | None) -> None:
    """Require that the opening hours of a resource are unchanged at commit."""
    key = _schedule_key(unit.workspace_id, resource_id)
    condition: Condition
    if hours is None:
        # New hours have a row, so a missing row is the state that was read.
        condition = ScheduleRow.pk.does_not_exist()
    elif hours.resource_version is None:  # written before rows had it
        condition = ScheduleRow.pk.exists() & ScheduleRow.resource_version.does_not_exist()
    else:
        condition = ScheduleRow.resource_version == hours.resource_version
    unit.require(ScheduleRow(key.pk, key.sk), condition)


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new resource last."""
    last = RESOURCES.read_along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0


def _schedule_key(workspace_id: str, resource_id: str) -> Key:
    return Key(ScheduleRow, f"W#{workspace_id}#SCHEDULE", resource_id)


def _minutes(spans: Sequence[Span]) -> list[int]:
    return [minute for span in spans for minute in span]


def _spans(minutes: Sequence[int]) -> tuple[Span, ...]:
    return tuple(map(Span, minutes[::2], minutes[1::2]))
