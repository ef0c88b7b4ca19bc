"""Masters, rooms and equipment that services are booked with, and their opening hours (ADR 20).

A booking's transaction requires ``ResourceRow.version`` to be the one it read. So whatever changes
what can be booked raises it: hours, zone, capacity, status, deletion (no row at all), and time off
of the resource's own (``domains.bookings.store.time_off``). Descriptions and photos raise it, too:
a booking that loses the race for that begins again.
"""

from collections.abc import Collection, Sequence
from datetime import date, timedelta

from pynamodb.attributes import (
    ListAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from chalicelib.core import clock
from chalicelib.core.errors import AppError
from chalicelib.domains.bookings.rules.schedule import Schedule
from chalicelib.domains.files.store.images import SHOWN_IMAGES, ImageMap
from chalicelib.engine.listing import ordering
from chalicelib.engine.listing.declaration import SortIndex
from chalicelib.engine.listing.index_entries import NAME_BYTES
from chalicelib.engine.listing.listing import Listing
from chalicelib.engine.listing.registry import listed
from chalicelib.engine.reading import Key, fetch
from chalicelib.engine.tables import ContentRow, JsonAttribute, Record
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span

IN_ORDER = SortIndex("sortOrder")


class ResourceRow(Record):
    """A resource. ``images`` are its photo, if it has one; ``timezone`` an IANA name."""

    name = UnicodeAttribute()
    type = UnicodeAttribute()
    description = UnicodeAttribute(null=True)
    images: ListAttribute[ImageMap] = ListAttribute(of=ImageMap, default=list)
    timezone = UnicodeAttribute()
    capacity = NumberAttribute()
    status = UnicodeAttribute()
    sort_order = NumberAttribute()


RESOURCES = listed(
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
    """A resource's opening hours, separate from it: 400 dates of 24 intervals are 100 KB.

    ``hours`` holds, for each weekday and date, the minutes at which intervals start and end.
    """

    hours: JsonAttribute = JsonAttribute()
    updated_at = UTCDateTimeAttribute()

    @property
    def schedule(self) -> Schedule:
        """The hours, as the rules read them."""
        return Schedule(
            tuple(_spans(minutes) for minutes in self.hours["weekly"]),
            {date.fromisoformat(d): _spans(each) for d, each in self.hours["dates"].items()},
        )


def save_schedule(unit: UnitOfWork, resource: ResourceRow, schedule: Schedule) -> ScheduleRow:
    """Stage the opening hours of a resource that was read, and the resource, whose version rises.

    What else has changed of the resource is saved with it.
    """
    hours = {
        "weekly": [_minutes(spans) for spans in schedule.weekly],
        "dates": {day.isoformat(): _minutes(spans) for day, spans in schedule.dates.items()},
    }
    key = _schedule_key(unit.workspace_id, resource.id)
    row = ScheduleRow(key.pk, key.sk, hours=hours, updated_at=clock.now())
    unit.save(row)
    unit.save(resource)
    return row


def find_schedule(workspace_id: str, resource_id: str) -> ScheduleRow | None:
    """Return the opening hours of a resource, or None if they were never set."""
    key = _schedule_key(workspace_id, resource_id)
    return ScheduleRow.find(key.pk, key.sk)


def find_with_schedules(
    workspace_id: str, ids: Collection[str]
) -> list[tuple[ResourceRow, Schedule]]:
    """Return the live resources with these ids, in their order, and the opening hours of each.

    Missing resources are left out; hours that were never set are none. Read consistently, up to
    fifty resources in one request.
    """
    resources = [RESOURCES.key(workspace_id, each) for each in ids]
    schedules = [_schedule_key(workspace_id, each) for each in ids]
    rows = fetch([*resources, *schedules])
    hours = {row.sk: row.schedule for row in rows if isinstance(row, ScheduleRow)}
    return [(row, hours.get(row.id, Schedule())) for row in rows if isinstance(row, ResourceRow)]


def stage_deletion(unit: UnitOfWork, resource: ResourceRow, *, kept: timedelta) -> None:
    """Stage a resource's deletion, which alone ends its slots; its hours are kept as long as it."""
    until = clock.now() + kept
    unit.soft_delete(resource, until=until)
    schedule = find_schedule(unit.workspace_id, resource.id)
    if schedule is not None:
        unit.update(schedule, [ScheduleRow.expires.set(until)])


def require(unit: UnitOfWork, resource_id: str, *, on_conflict: AppError | None = None) -> None:
    """Demand that a resource exists when the unit commits."""
    key = RESOURCES.key(unit.workspace_id, resource_id)
    unit.require(ResourceRow(key.pk, key.sk), on_conflict=on_conflict)


def require_unchanged(unit: UnitOfWork, resource: ResourceRow) -> None:
    """Demand that a resource, its hours and its own time off are at commit as they were read.

    For what books it. Bookings of one resource at one moment may make each other begin again, as
    DynamoDB lets one transaction at a time look at a row.
    """
    unit.require(resource, ResourceRow.version == resource.version)


def number_at_end(workspace_id: str) -> int:
    """Return the sort order that puts a new resource last."""
    last = RESOURCES.along(workspace_id, IN_ORDER, 1, descending=True)
    return last[0].number + ordering.STEP if last else 0


def _schedule_key(workspace_id: str, resource_id: str) -> Key:
    return Key(ScheduleRow, f"W#{workspace_id}#SCHEDULE", resource_id)


def _minutes(spans: Sequence[Span]) -> list[int]:
    return [minute for span in spans for minute in span]


def _spans(minutes: Sequence[int]) -> tuple[Span, ...]:
    return tuple(map(Span, minutes[::2], minutes[1::2]))
