"""Read in which hours the staff and other resources are open."""

from collections.abc import Collection, Mapping
from datetime import date
from typing import NamedTuple

from chalicelib.core import deadline
from chalicelib.domains.reports.rules.open_minutes import OpenDays
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.engine.reading import fetch


class OpenResource(NamedTuple):
    """A resource, and its open minutes by local day, times its seats."""

    name: str
    minutes: Mapping[date, int]


def read(
    workspace_id: str, resource_ids: Collection[str], first: date, *, last: date, zone: str
) -> dict[str, OpenResource]:
    """Return the hours of resources by their ids, without deleted ones.

    They are the hours and the time off as they are set now. Inactive resources are closed.
    """
    days = OpenDays(first, last, zone)
    span = days.span
    with deadline.side_by_side() as start:
        off_task = start(lambda: time_off.overlapping(workspace_id, span.start, last_ms=span.end))
        # They may be a second old, at half the read units.
        keys = opening_hours.keys_with_schedules(workspace_id, resource_ids)
        rows = fetch(keys, consistent=False)
        off = off_task.result()
    hours = {row.sk: row for row in rows if isinstance(row, ScheduleRow)}
    return {
        row.id: OpenResource(
            row.name,
            {
                day: minutes * int(row.capacity)
                for day, minutes in days.minutes(
                    opening_hours.schedule_of(hours.get(row.id)),
                    row.timezone,
                    [each.span(row.timezone) for each in off if each.applies_to(row.id)],
                ).items()
            }
            if row.status == "active"
            else {},
        )
        for row in rows
        if isinstance(row, ResourceRow)
    }
