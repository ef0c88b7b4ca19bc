"""Store the opening hours of resources (ADR 20)."""

from collections.abc import Collection, Sequence
from datetime import date, timedelta

from pynamodb.attributes import NumberAttribute, UTCDateTimeAttribute
from pynamodb.expressions.condition import Condition

from chalicelib.core import clock
from chalicelib.domains.services.rules.open_windows import Schedule
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.engine.reading import Key, Rows
from chalicelib.engine.tables import ContentRow, JsonAttribute, Row
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span


class ScheduleRow(ContentRow):
    """Opening hours of a resource, apart from it: 400 dates of 24 intervals are 100 KB."""

    # Start and end minutes of the intervals of each weekday and date.
    hours: JsonAttribute = JsonAttribute()
    # The version of the resource after the last change of hours.
    resource_version = NumberAttribute(null=True)
    updated_at = UTCDateTimeAttribute()

    @property
    def schedule(self) -> Schedule:
        return Schedule(
            tuple(_spans(minutes) for minutes in self.hours["weekly"]),
            {date.fromisoformat(d): _spans(hours) for d, hours in self.hours["dates"].items()},
        )


def save_schedule(unit: UnitOfWork, resource: ResourceRow, schedule: Schedule) -> ScheduleRow:
    """Stage the opening hours and their resource, with its other changes and a higher version."""
    hours = {
        "weekly": [_minutes(spans) for spans in schedule.weekly],
        "dates": {day.isoformat(): _minutes(spans) for day, spans in schedule.dates.items()},
    }
    key = _schedule_key(unit.workspace_id, resource_id=resource.id)
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
    workspace_id: str, *, resource_id: str
) -> tuple[ResourceRow, ScheduleRow | None]:
    """Return a resource and its opening hours, or None if never set, or raise NotFoundError."""
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
    return pairs((rows or Rows()).fetch(keys_with_schedules(workspace_id, ids)))


def pairs(rows: Sequence[Row]) -> list[tuple[ResourceRow, ScheduleRow | None]]:
    """Return the resources among rows, in their order, with their opening hours among them."""
    hours = {row.sk: row for row in rows if isinstance(row, ScheduleRow)}
    return [(row, hours.get(row.id)) for row in rows if isinstance(row, ResourceRow)]


def find_schedule(workspace_id: str, *, resource_id: str) -> ScheduleRow | None:
    """Return the opening hours of a resource, or None if they were never set."""
    key = _schedule_key(workspace_id, resource_id=resource_id)
    return ScheduleRow.find(key.pk, key.sk)


def hours_version(hours: ScheduleRow | None) -> int:
    """Return the version of opening hours, which changes with them. It is 0 if there is none."""
    return int(hours.resource_version or 0) if hours else 0


def schedule_of(hours: ScheduleRow | None) -> Schedule:
    """Return the opening hours in a row, which are empty if they were never set."""
    return hours.schedule if hours else Schedule()


def keys_with_schedules(workspace_id: str, ids: Collection[str]) -> list[Key]:
    """Return the keys of resources and of their opening hours."""
    resources = [RESOURCES.key(workspace_id, record_id=resource_id) for resource_id in ids]
    return [*resources, *keys_of_schedules(workspace_id, ids)]


def keys_of_schedules(workspace_id: str, ids: Collection[str]) -> list[Key]:
    """Return the keys of the opening hours of resources."""
    return [_schedule_key(workspace_id, resource_id=resource_id) for resource_id in ids]


def stage_deletion(
    unit: UnitOfWork, resource: ResourceRow, schedule: ScheduleRow | None, *, retention: timedelta
) -> None:
    """Stage a resource's deletion, which ends its slots. Its hours are kept for the same time."""
    until = clock.now() + retention
    unit.soft_delete(resource, until=until)
    if schedule is not None:
        # The hours must not outlive their resource for ever, so both expire together.
        unit.update(schedule, [ScheduleRow.expires.set(until)])


def require_hours_unchanged(unit: UnitOfWork, resource_id: str, hours: ScheduleRow | None) -> None:
    """Require that the opening hours of a resource are unchanged at commit."""
    key = _schedule_key(unit.workspace_id, resource_id=resource_id)
    condition: Condition
    if hours is None:
        # New hours have a row, so a missing row is the state that was read.
        condition = ScheduleRow.pk.does_not_exist()
    elif hours.resource_version is None:  # written before rows had it
        condition = ScheduleRow.pk.exists() & ScheduleRow.resource_version.does_not_exist()
    else:
        condition = ScheduleRow.resource_version == hours.resource_version
    unit.require(ScheduleRow(key.pk, key.sk), condition)


def _schedule_key(workspace_id: str, *, resource_id: str) -> Key:
    return Key(ScheduleRow, f"W#{workspace_id}#SCHEDULE", resource_id)


def _minutes(spans: Sequence[Span]) -> list[int]:
    return [minute for span in spans for minute in span]


def _spans(minutes: Sequence[int]) -> tuple[Span, ...]:
    return tuple(map(Span, minutes[::2], minutes[1::2]))
