"""Compute the opening hours, time off, busy times and free time of the staff on a day."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple, Self

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.booked_times import BookingEntry
from chalicelib.domains.bookings.store.calendar_days import BookedDays
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine.reading import fetch
from chalicelib.lib.spans import Span

# Staff members of a page of a day. The first page has all members with bookings.
MAX_STAFF = 12
MIN_GAP = 15 * 60_000  # of the free time that is shown, in milliseconds
_STEP = 5 * 60_000  # Free time from now on begins on a multiple of five minutes.
_DAY = timedelta(days=1)
_NOTHING = BookedDays([], [])


class StaffDayPlan(NamedTuple):
    """The day of one staff member."""

    resource: ResourceRow
    opened: list[Span]
    time_off: list[tuple[Span, str | None]]  # with the reason
    busy: list[Span]  # in the own calendar
    dates: list[tuple[DatedStart, int]]  # starts of services, with the number of bookings
    free: list[tuple[Span, int]]  # with the number of free places


def all_staff(workspace_id: str) -> list[ResourceRow]:
    """Return all resources in their order. Changes of the last second may be missing."""
    entries = sorted(
        RESOURCES.entries(workspace_id), key=lambda entry: (entry.numbers[0], entry.id)
    )
    return RESOURCES.fetch(workspace_id, [entry.id for entry in entries], consistent=False)


class StaffPlan(NamedTuple):
    """Opening hours, time off, busy times and bookings of some staff members in a period."""

    staff: Sequence[ResourceRow]
    hours: dict[str, ScheduleRow]
    off: Sequence[TimeOff]
    reasons: dict[str, str | None]
    entries: Sequence[BookingEntry]
    days: Mapping[str, BookedDays]  # busy in the own calendar, and dated starts, by resource

    @classmethod
    def read(
        cls,
        workspace_id: str,
        staff: Sequence[ResourceRow],
        period: Span,
        entries: Sequence[BookingEntry],
    ) -> Self:
        if not staff:
            return cls([], {}, [], {}, entries, {})
        ids = [member.id for member in staff]
        with deadline.side_by_side() as start:
            off_task = start(
                lambda: time_off.overlapping(workspace_id, period.start, last_ms=period.end)
            )
            keys = opening_hours.keys_of_schedules(workspace_id, ids)
            days = calendar_days.keys_of(workspace_id, [(id_, period) for id_ in ids])
            # The console only shows them, so they may be a second old, at half the read units.
            found = fetch([*keys, *days.values()], consistent=False)
            off = [absence for absence in off_task.result() if any(map(absence.applies_to, ids))]
        rows = time_off.find_all(workspace_id, [absence.id for absence in off])
        return cls(
            staff,
            {row.sk: row for row in found if isinstance(row, ScheduleRow)},
            off,
            {row.id: row.reason for row in rows},
            entries,
            calendar_days.days_among(found),
        )

    def plan_days(self, span: Span) -> Iterator[StaffDayPlan]:
        for resource in self.staff:
            opened = self._opened(resource, span)
            off = [
                (cut, self.reasons.get(absence.id))
                for absence in self.off
                if absence.applies_to(resource.id)
                for cut in slots.clip([absence.span(resource.timezone)], span)
            ]
            days = self.days.get(resource.id, _NOTHING)
            busy = slots.clip(days.elsewhere, span)
            dates = self._dates(days, span)
            # A member of the staff is not free for others during a class.
            closed = [*(span for span, _ in off), *busy, *(each.buffered for each in days.starts)]
            free = self._free(resource, opened, closed)
            yield StaffDayPlan(resource, opened, off, busy, dates, free)

    def _dates(self, days: BookedDays, span: Span) -> list[tuple[DatedStart, int]]:
        now = epoch_ms(clock.now())
        return [
            (
                dated,
                sum(entry.start == dated.start and entry.blocks(now) for entry in days.entries),
            )
            for dated in sorted(days.starts, key=lambda each: each.start)
            if dated.start < span.end and dated.end > span.start
        ]

    def _opened(self, resource: ResourceRow, span: Span) -> list[Span]:
        first, last = (
            clock.local_day(clock.moment_at(moment), resource.timezone) for moment in span
        )
        opened = open_windows.windows(
            opening_hours.schedule_of(self.hours.get(resource.id)),
            resource.timezone,
            first - 2 * _DAY,
            last=last + _DAY,
        )
        return slots.clip(opened, span)

    def _free(
        self,
        resource: ResourceRow,
        opened: Sequence[Span],
        closed: Sequence[Span],
    ) -> list[tuple[Span, int]]:
        if resource.status != "active":
            return []
        # Free time that begins in the past could not be booked, so it begins at the next step.
        now = -(-epoch_ms(clock.now()) // _STEP) * _STEP
        busy = [
            calendar_entry.span
            for calendar_entry in self.entries
            if calendar_entry.resource_id == resource.id
        ]
        capacity = int(resource.capacity)
        free_spans = slots.gaps(opened, busy, capacity, [Span(0, now), *closed])
        return [
            (part, capacity - taken_places)
            for span in free_spans
            if span.end - span.start >= MIN_GAP
            for part, taken_places in _split(span, busy)
        ]


def _split(span: Span, busy: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    inside = {moment for booking in busy for moment in booking if span.start < moment < span.end}
    for start, end in pairwise(sorted({*span, *inside})):
        yield Span(start, end), sum(booking.start <= start < booking.end for booking in busy)
