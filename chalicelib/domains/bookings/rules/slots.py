"""Decide when a service can be booked. Listing and booking use the same predicate."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, Self

from chalicelib.core import clock
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.rules.open_windows import Schedule, fits, windows
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.lib.spans import Span, merge, peaks

NEXT_AVAILABLE_DAYS = 93  # after an empty range, in which the next slot is searched
_MINUTE = 60_000
_DAY = timedelta(days=1)
_WEEK = 7 * 24 * 60 * _MINUTE


class NoSlotReason(StrEnum):
    """Stage that removed the last candidate for a slot, in the order of stages."""

    SERVICE_INACTIVE = "service_inactive"
    NO_RESOURCES = "no_resources"
    NOT_BOUND = "not_bound"
    NO_SCHEDULE = "no_schedule"
    DOES_NOT_FIT = "does_not_fit"
    OUTSIDE_HORIZON = "outside_horizon"
    NO_STARTS = "no_starts"  # of a service with fixed starts, no date is in the range
    CLOSED = "closed"
    TIME_OFF = "time_off"
    TOO_LITTLE_NOTICE = "too_little_notice"
    FULLY_BOOKED = "fully_booked"


_STAGES = list(NoSlotReason)


class BusyEntry(NamedTuple):
    """A blocking booking, with the buffers from the time of its creation."""

    booking_id: str
    start: int
    end: int
    buffer_before_min: int = 0
    buffer_after_min: int = 0
    until: int | None = None  # when an unpaid hold expires and no longer blocks

    def blocks(self, now: int) -> bool:
        """Whether it is no hold that has expired."""
        return self.until is None or self.until > now

    @property
    def buffered(self) -> Span:
        return Span(
            self.start - self.buffer_before_min * _MINUTE,
            self.end + self.buffer_after_min * _MINUTE,
        )


class Calendar(NamedTuple):
    """Opening hours, seats, bookings and time off of a resource."""

    resource_id: str
    timezone: str
    schedule: Schedule
    capacity: int = 1
    # At least the blocking bookings whose buffered span overlaps ``busy_range``, and the spans off
    # that overlap the slots. Whole days off are converted by ``zoned_times.span_of_days``.
    busy: Sequence[BusyEntry] = ()
    time_off: Sequence[Span] = ()
    # At least those whose buffered span overlaps ``busy_range``. They do not overlap.
    starts: Sequence[DatedStart] = ()

    def exclude_booking(self, booking_id: str) -> Self:
        return self._replace(busy=[entry for entry in self.busy if entry.booking_id != booking_id])

    def entries_on(self, day: date, now: int) -> int:
        """Return the number of bookings that start on a local day, without holds that expired."""
        first, last = (
            clock.epoch_ms(clock.moment_of(day, self.timezone, end=end)) for end in (False, True)
        )
        return sum(first <= entry.start <= last and entry.blocks(now) for entry in self.busy)


class Query(NamedTuple):
    """Range of requested starts, both ends inclusive, and the present moment."""

    first: int
    last: int
    now: int


class ResourceSlots(NamedTuple):
    """Free seats of one resource, by start in order."""

    seats: Mapping[int, int]
    reason: NoSlotReason | None = None  # for no free seats


class Slot(NamedTuple):
    start: int
    end: int  # with the resource that needs the least time
    seats: Mapping[str, int]  # free seats by resource
    parts: "Sequence[SlotPart]" = ()  # of a visit, in order
    places: int | None = None  # of fixed starts: all places of the resources, free or not


class SlotPart(NamedTuple):
    """A service of a visit, and the free seats of each resource that may do it at its time."""

    service_id: str
    start: int
    end: int
    seats: Mapping[str, int]


class Availability(NamedTuple):
    """The slots of all resources by start, or the reason for an empty result."""

    slots: Sequence[Slot]
    reason: NoSlotReason | None = None


def busy_range(service: ServiceRules, first: int, *, last: int) -> Span:
    """Return the span that slots from ``first`` to ``last`` take, including their buffers.

    It is that of the resource that needs the most time.
    """
    # A booking is relevant if its own buffered span overlaps this one.
    return Span(
        first - service.buffer_before_min * _MINUTE,
        last + (service.longest_min + service.buffer_after_min) * _MINUTE,
    )


def slots(service: ServiceRules, calendar: Calendar, query: Query) -> ResourceSlots:
    """Return every slot of one resource in a range."""
    service = service.with_resource(calendar.resource_id)
    horizon = _horizon(service, calendar, query.now)
    if query.first > horizon:
        return ResourceSlots({}, NoSlotReason.OUTSIDE_HORIZON)
    last = min(query.last, horizon)
    if service.fixed_starts:
        starts = _dated_starts(service, calendar, query.first, last=last)
        if not starts:
            return ResourceSlots({}, NoSlotReason.NO_STARTS)
        starts = _in_hours(service, calendar, starts)
    else:
        starts = _starts_in_hours(service, calendar, query.first, last=last)
    return _bookable(service, calendar, starts, query.now)


def slots_at(
    service: ServiceRules, calendar: Calendar, starts: Sequence[int], *, now: int
) -> ResourceSlots:
    """Return which of ascending starts can be booked, as ``slots`` does but without its grid."""
    service = service.with_resource(calendar.resource_id)
    horizon = _horizon(service, calendar, now)
    starts = [start for start in starts if start <= horizon]
    if not starts:
        return ResourceSlots({}, NoSlotReason.OUTSIDE_HORIZON)
    if service.fixed_starts:
        dated = set(_dated_starts(service, calendar, starts[0], last=starts[-1]))
        starts = [start for start in starts if start in dated]
        if not starts:
            return ResourceSlots({}, NoSlotReason.NO_STARTS)
    return _bookable(service, calendar, _in_hours(service, calendar, starts), now)


def _dated_starts(service: ServiceRules, calendar: Calendar, first: int, *, last: int) -> list[int]:
    return sorted(
        dated.start
        for dated in calendar.starts
        if first <= dated.start <= last
        and dated.takes(
            service.service_id, dated.start, busy_range(service, dated.start, last=dated.start)
        )
    )


def _in_hours(service: ServiceRules, calendar: Calendar, starts: Sequence[int]) -> list[int]:
    # Which of ascending starts lie in opening hours with their whole length.
    length = service.duration_min * _MINUTE
    opened = _opened(calendar, starts[0], last=starts[-1] + length)
    blocks = merge(opened, touching=True)
    return [start for start in starts if _lies_in(blocks, Span(start, start + length))]


def _bookable(
    service: ServiceRules, calendar: Calendar, starts: list[int], now: int
) -> ResourceSlots:
    # The starts in opening hours at which the resource is free.
    if not starts:
        return ResourceSlots({}, NoSlotReason.CLOSED)
    off = peaks(starts, 0, minutes_after=service.duration_min * _MINUTE, spans=calendar.time_off)
    starts = [start for start, count in zip(starts, off, strict=True) if not count]
    if not starts:
        return ResourceSlots({}, NoSlotReason.TIME_OFF)
    earliest = now + service.min_notice_min * _MINUTE
    starts = starts[bisect_left(starts, earliest) :]
    if not starts:
        return ResourceSlots({}, NoSlotReason.TOO_LITTLE_NOTICE)
    free = _free_seats(service, calendar, starts, now)
    seats = {start: count for start, count in zip(starts, free, strict=True) if count > 0}
    return ResourceSlots(seats, None if seats else NoSlotReason.FULLY_BOOKED)


def is_free(
    service: ServiceRules,
    calendar: Calendar,
    start: int,
    *,
    now: int,
    ignore_schedule: bool = False,
) -> bool:
    """Return whether ``slots`` would list this start, or whether no booking prevents it."""
    # With ``ignore_schedule``, only other bookings and dated starts count. Opening hours, the grid,
    # time off, notice, horizon and the current time are ignored.
    if ignore_schedule:
        own = service.with_resource(calendar.resource_id)
        return next(_free_seats(own, calendar, [start], now)) > 0
    return start in slots(service, calendar, Query(start, start, now)).seats


def has_start(service: ServiceRules, calendar: Calendar, start: int) -> bool:
    """Return whether a resource has a dated start of the service at a moment."""
    own = service.with_resource(calendar.resource_id)
    return bool(_dated_starts(own, calendar, start, last=start))


def least_busy(calendars: Sequence[Calendar], start: int, *, now: int) -> Calendar:
    """Return the calendar with the fewest entries on the local day of a start."""
    return min(calendars, key=lambda calendar: rank(calendar, start, now=now))


def rank(calendar: Calendar, start: int, *, now: int) -> tuple[int, bytes]:
    """Return what sorts calendars by their entries on the local day of a start.

    Of several with equally many, the first is another one from day to day, and the same one for
    each call.
    """
    day = _local_day(start, calendar.timezone)
    tie = hashlib.sha256(f"{calendar.resource_id} {day}".encode()).digest()
    return calendar.entries_on(day, now), tie


def working_day(schedule: Schedule, timezone: str, moment: int) -> Span | None:
    """Return the span from the first to the last opening hour of a moment's local day."""
    day = _local_day(moment, timezone)
    opened = windows(schedule, timezone, day, last=day)
    return Span(opened[0].start, max(span.end for span in opened)) if opened else None


def union(service: ServiceRules, calendars: Sequence[Calendar], query: Query) -> Availability:
    """Return the slots of alternative resources. Each slot has all resources that are free."""
    # Resources keep their given order.
    slot_lists = [slots(service, calendar, query) for calendar in calendars]
    if slot_list := _group_by_start(service, calendars, slot_lists):
        return Availability(slot_list)
    return Availability([], furthest_reason(service, calendars, slot_lists))


def furthest_reason(
    service: ServiceRules, calendars: Sequence[Calendar], slot_lists: Sequence[ResourceSlots]
) -> NoSlotReason:
    """Return why no resource has a slot: the reason of the one that passed most stages."""
    reasons = [
        _refine_reason(service, calendar, resource_slots.reason)
        for calendar, resource_slots in zip(calendars, slot_lists, strict=True)
        if resource_slots.reason
    ]
    return max(reasons, key=_STAGES.index, default=NoSlotReason.NO_RESOURCES)


def next_available(
    service: ServiceRules, calendars: Sequence[Calendar], query: Query
) -> Slot | None:
    """Return the first slot of a range. Weeks are searched one by one."""
    for first in range(query.first, query.last + 1, _WEEK):
        week = query._replace(first=first, last=min(first + _WEEK - 1, query.last))
        slot_lists = [slots(service, calendar, week) for calendar in calendars]
        if slot_list := _group_by_start(service, calendars, slot_lists):
            return slot_list[0]
    return None


def _group_by_start(
    service: ServiceRules, calendars: Sequence[Calendar], slot_lists: Sequence[ResourceSlots]
) -> list[Slot]:
    seats: dict[int, dict[str, int]] = {}
    for calendar, resource_slots in zip(calendars, slot_lists, strict=True):
        for start, count in resource_slots.seats.items():
            seats.setdefault(start, {})[calendar.resource_id] = count
    lengths = {
        calendar.resource_id: service.with_resource(calendar.resource_id).duration_min * _MINUTE
        for calendar in calendars
    }
    capacities = {calendar.resource_id: calendar.capacity for calendar in calendars}
    return [
        Slot(
            start,
            start + min(lengths[resource_id] for resource_id in free),
            free,
            places=sum(map(capacities.__getitem__, free)) if service.fixed_starts else None,
        )
        for start, free in sorted(seats.items())
    ]


def _refine_reason(service: ServiceRules, calendar: Calendar, reason: NoSlotReason) -> NoSlotReason:
    # A reason that applies to every range is preferred.
    if not calendar.schedule.has_hours:
        return NoSlotReason.NO_SCHEDULE
    if reason in {NoSlotReason.OUTSIDE_HORIZON, NoSlotReason.CLOSED} and not fits(
        calendar.schedule, service.with_resource(calendar.resource_id).duration_min
    ):
        return NoSlotReason.DOES_NOT_FIT
    return reason


def _horizon(service: ServiceRules, calendar: Calendar, now: int) -> int:
    day = _local_day(now, calendar.timezone) + service.horizon_days * _DAY
    return clock.epoch_ms(clock.moment_of(day, calendar.timezone, end=True))


def _starts_in_hours(
    service: ServiceRules, calendar: Calendar, first: int, *, last: int
) -> list[int]:
    # Each window has its own grid, in absolute time from the window's start to its end. A slot that
    # begins in one window may continue into adjacent windows.
    duration, step = service.duration_min * _MINUTE, service.step_min * _MINUTE
    opened = _opened(calendar, first, last=last + duration)
    blocks = merge(opened, touching=True)
    starts: set[int] = set()
    for window in opened:
        block = blocks[bisect_right(blocks, window.start, key=lambda span: span.start) - 1]
        begin = window.start + max(0, -(-(first - window.start) // step)) * step
        starts.update(range(begin, min(window.end, block.end - duration + 1, last + 1), step))
    return sorted(starts)


def _opened(calendar: Calendar, first: int, *, last: int) -> list[Span]:
    return windows(
        calendar.schedule,
        calendar.timezone,
        # Opening hours end at most one day after their date. One more day covers clock changes.
        _local_day(first, calendar.timezone) - 2 * _DAY,
        last=_local_day(last, calendar.timezone) + _DAY,
    )


def _lies_in(blocks: Sequence[Span], span: Span) -> bool:
    place = bisect_right(blocks, span.start, key=lambda block: block.start) - 1
    return place >= 0 and span.end <= blocks[place].end


def _free_seats(
    service: ServiceRules, calendar: Calendar, starts: Sequence[int], now: int
) -> Iterator[int]:
    # The capacity less the peak of concurrent bookings. Both the buffers of the new booking and the
    # buffers of existing bookings are kept free.
    buffer_before, buffer_after = busy_range(service, 0, last=0)
    busy = (entry.buffered for entry in calendar.busy if entry.blocks(now))
    free = (
        calendar.capacity - peak
        for peak in peaks(starts, -buffer_before, minutes_after=buffer_after, spans=busy)
    )
    if not calendar.starts:
        return free
    spans = [dated.buffered for dated in calendar.starts]
    dated = peaks(starts, -buffer_before, minutes_after=buffer_after, spans=spans)
    return (
        0 if overlaps and not _is_taken_by_own(service, calendar, start) else count
        for start, count, overlaps in zip(starts, free, dated, strict=True)
    )


def _is_taken_by_own(service: ServiceRules, calendar: Calendar, start: int) -> bool:
    # Dated starts do not overlap, so one that takes the whole booking is the only one.
    taken = busy_range(service, start, last=start)
    return any(dated.takes(service.service_id, start, taken) for dated in calendar.starts)


def _local_day(moment: int, timezone: str) -> date:
    return clock.local_day(datetime.fromtimestamp(moment / 1000, UTC), timezone)


def clip(spans: Iterable[Span], bounds: Span) -> list[Span]:
    """Return the parts of spans inside the bounds, merged and sorted."""
    cut = (Span(max(span.start, bounds.start), min(span.end, bounds.end)) for span in spans)
    return merge((span for span in cut if span.start < span.end), touching=True)


def gaps(
    opened: Sequence[Span], busy: Iterable[Span], capacity: int, closed: Iterable[Span] = ()
) -> list[Span]:
    """Return the parts of opening hours with a free seat that are not closed."""
    # Each span in ``busy`` takes one of the ``capacity`` seats.
    changes = sorted(change for span in busy for change in ((span.start, 1), (span.end, -1)))
    full, taken_seats, since = list[Span](), 0, 0
    for moment, change in changes:
        if taken_seats < capacity <= taken_seats + change:
            since = moment
        elif taken_seats >= capacity > taken_seats + change:
            full.append(Span(since, moment))
        taken_seats += change
    return _subtract(opened, merge([*full, *closed], touching=True))


def _subtract(spans: Iterable[Span], holes: Sequence[Span]) -> list[Span]:
    remaining = []
    for span in spans:
        start = span.start
        for hole in holes:
            if hole.end <= start or hole.start >= span.end:
                continue
            if hole.start > start:
                remaining.append(Span(start, hole.start))
            start = max(start, hole.end)
        if start < span.end:
            remaining.append(Span(start, span.end))
    return remaining
