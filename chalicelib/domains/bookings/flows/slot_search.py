"""Read the calendars of a service's resources, and find free slots.

Listing slots and booking one decide by the same predicate (``domains.bookings.rules.slots``).
"""

from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta
from typing import NamedTuple, Self

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules import slots, visits
from chalicelib.domains.bookings.rules.slots import (
    NEXT_AVAILABLE_DAYS,
    Availability,
    Calendar,
    NoSlotReason,
    Query,
    Slot,
)
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bookings.store.calendar_days import BookedDays
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.open_windows import Schedule
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span, merge

ACTIVE = "active"
PARALLEL = 16  # queries of one search
CHUNK = timedelta(days=31)  # read in one step to find the next slot
_DAY = timedelta(days=1)
# Reasons that also hold for any later range.
PERMANENT_REASONS = frozenset(
    {
        NoSlotReason.SERVICE_INACTIVE,
        NoSlotReason.NO_RESOURCES,
        NoSlotReason.NOT_BOUND,
        NoSlotReason.NO_SCHEDULE,
        NoSlotReason.DOES_NOT_FIT,
        NoSlotReason.OUTSIDE_HORIZON,
    }
)


def workspace_of(unit: UnitOfWork) -> WorkspaceRow:
    """Return the workspace of a unit, the same for each run of the unit."""
    return unit.run_side_effect_once(
        "workspace", lambda: workspaces.get(unit.workspace_id, unit.rows)
    )


def service_of(workspace_id: str, booking: BookingRow, rows: Rows | None = None) -> ServiceRow:
    """Return the service of a booking. For a deleted service, return an inactive one."""
    key = SERVICES.key(workspace_id, record_id=booking.service_id)
    # No slots are free for a booking of a deleted service, but ``ignores_schedule`` can still move
    # it.
    return (rows or Rows()).find(ServiceRow, key) or ServiceRow(
        SERVICES.partition(workspace_id),
        booking.service_id,
        name=booking.service_name,
        status="inactive",
        duration_min=booking.duration_min,
        buffer_before_min=booking.buffer_before_min,
        buffer_after_min=booking.buffer_after_min,
        min_notice_min=0,
        horizon_days=0,
    )


class Candidate(NamedTuple):
    resource: ResourceRow
    hours: ScheduleRow | None = None  # None: no hours are set.

    def calendar(self, days: BookedDays, off: Sequence[TimeOff]) -> Calendar:
        """Return the resource's calendar with its days, and its part of ``off``.

        Time in which the resource's own calendar is busy counts as time off (ADR 135).
        """
        resource = self.resource
        return Calendar(
            resource.id,
            resource.timezone,
            opening_hours.schedule_of(self.hours),
            int(resource.capacity),
            days.entries,
            [
                *(
                    absence.span(resource.timezone)
                    for absence in off
                    if absence.applies_to(resource.id)
                ),
                *days.elsewhere,
            ],
            days.starts,
        )


class Candidates(NamedTuple):
    """The active resources that a service can be booked with, sorted."""

    active: list[Candidate]
    # Every existing resource of the service, even if inactive or not requested. Times without an
    # offset are read in the zones of these resources.
    bound: list[ResourceRow]
    reason: NoSlotReason | None  # for an empty list

    @classmethod
    def read(
        cls,
        workspace_id: str,
        service: ServiceRow,
        resource_id: str | None,
        *,
        current_resource_id: str | None = None,
        rows: Rows | None = None,
    ) -> Self:
        """Return a service's active resources, or the requested one, or raise NotFoundError."""
        # The resource of a booking to be moved counts as bound, too.
        ids = list(
            dict.fromkeys(
                [*service.resource_ids, *([current_resource_id] if current_resource_id else [])]
            )
        )
        existing = [
            Candidate(*pair) for pair in opening_hours.find_with_schedules(workspace_id, ids, rows)
        ]
        existing.sort(key=lambda candidate: (candidate.resource.sort_order, candidate.resource.id))
        bound = [candidate.resource for candidate in existing]
        if resource_id is not None and resource_id not in {resource.id for resource in bound}:
            RESOURCES.require(workspace_id, record_id=resource_id)
            return cls([], bound, NoSlotReason.NOT_BOUND)
        active = [
            candidate
            for candidate in existing
            if candidate.resource.status == ACTIVE and resource_id in {None, candidate.resource.id}
        ]
        return cls(active, bound, None if active else NoSlotReason.NO_RESOURCES)


def time_with(booking: BookingRow, service: ServiceRow | None, resource_id: str) -> Span:
    """Return the time of a booking, without its buffers, if a resource does it at its start."""
    start = epoch_ms(booking.starts_at)
    if service is None:
        return Span(start, epoch_ms(booking.ends_at))
    length = rules_of(service, booking).with_resource(resource_id).duration_min
    return Span(start, start + length * 60_000)


def rules_of_booking(booking: BookingRow) -> ServiceRules:
    """Return the rules of the slot that a booking had, whatever its service is now."""
    length = int(booking.duration_min)
    return ServiceRules(
        length,
        length,
        int(booking.buffer_before_min),
        int(booking.buffer_after_min),
        service_id=booking.service_id,
    )


def rules_of(service: ServiceRow, booking: BookingRow | None = None) -> ServiceRules:
    """Return the slot rules of a service. A booking to be moved keeps its length and buffers.

    It takes the length with another resource that needs another time than its resource does now.
    """
    if booking is None:
        return service.rules
    rules = service.rules
    kept = rules.with_resource(booking.resource_id)
    length = Length(int(booking.duration_min), kept.step_min)
    lengths = {booking.resource_id: length}
    for resource_id in service.resource_ids if rules.lengths else ():
        own = rules.with_resource(resource_id)
        is_same = own.duration_min == kept.duration_min
        lengths[resource_id] = length if is_same else Length(own.duration_min, own.step_min)
    return rules._replace(
        duration_min=length.duration_min,
        buffer_before_min=int(booking.buffer_before_min),
        buffer_after_min=int(booking.buffer_after_min),
        lengths=lengths if rules.lengths else {},
    )


def read(
    workspace_id: str,
    candidates: Sequence[Candidate],
    rules: ServiceRules,
    first: int,
    *,
    last: int,
) -> list[Calendar]:
    """Return the calendars of resources for slots that start between two moments."""
    span = slots.busy_range(rules, first, last=last)
    ids = [candidate.resource.id for candidate in candidates]

    # One DynamoDB query per resource and one for time off, in parallel.
    days: dict[str, BookedDays] = {}
    off: list[TimeOff] = []

    def read_one(resource_id: str | None) -> None:
        if resource_id is None:
            off.extend(time_off.overlapping(workspace_id, span.start, last_ms=span.end))
        else:
            days[resource_id] = calendar_days.read(workspace_id, resource_id=resource_id, span=span)

    deadline.map_in_threads(read_one, [None, *ids], PARALLEL)
    return [candidate.calendar(days[candidate.resource.id], off) for candidate in candidates]


class VisitPart(NamedTuple):
    """One service of a visit that is searched for."""

    service: ServiceRow
    candidates: Candidates
    rules: ServiceRules
    pause_min: int = 0  # as in ``visits.Part``

    @property
    def unavailable_reason(self) -> NoSlotReason | None:
        if self.service.status != ACTIVE:
            return NoSlotReason.SERVICE_INACTIVE
        return self.candidates.reason


class Search(NamedTuple):
    workspace_id: str
    service: ServiceRow
    candidates: Candidates  # of all parts of a visit
    rules: ServiceRules  # of a visit: those of its first service, with the length of all
    moving: str | None = None  # the id of a booking to be moved, whose own time counts as free
    parts: tuple[VisitPart, ...] = ()  # of a visit
    moved_visit: frozenset[str] = frozenset()  # the bookings of the visit to be moved, as above
    # The slots are those of the booking that begins so long after the start of the visit.
    offset: int = 0

    @classmethod
    def create(
        cls,
        workspace_id: str,
        service: ServiceRow,
        resource_id: str | None,
        moving: BookingRow | None = None,
        rows: Rows | None = None,
    ) -> Self:
        current_resource_id = moving.resource_id if moving else None
        candidates = Candidates.read(
            workspace_id, service, resource_id, current_resource_id=current_resource_id, rows=rows
        )
        rules = rules_of(service, moving)
        return cls(workspace_id, service, candidates, rules, moving.id if moving else None)

    def among(self, resource_ids: Collection[str]) -> Self:
        """Return the search with only these of its resources."""
        found = self.candidates
        active = [each for each in found.active if each.resource.id in resource_ids]
        reason = None if active else found.reason or NoSlotReason.NO_RESOURCES
        return self._replace(candidates=found._replace(active=active, reason=reason))

    @property
    def unavailable_reason(self) -> NoSlotReason | None:
        """Reason why no range can have slots, or None. It is known without reading calendars."""
        if self.parts:
            reasons = (part.unavailable_reason for part in self.parts)
            return next((reason for reason in reasons if reason is not None), None)
        if self.service.status != ACTIVE:
            return NoSlotReason.SERVICE_INACTIVE
        return self.candidates.reason

    @property
    def shown_resources(self) -> list[ResourceRow]:
        # If no resource can be booked, all resources of the service are shown. The bookings of a
        # visit that is moved keep theirs, unless one of the others is chosen.
        if self.moved_visit:
            return self.candidates.bound
        return [candidate.resource for candidate in self.candidates.active] or self.candidates.bound

    @property
    def own_prices(self) -> dict[str, int]:
        """Prices by resource if any differs from the service's. A moved booking keeps its price.

        Of a visit, there are none: each of its services has its own.
        """
        if self.parts:
            return {}
        ids = self.service.resource_ids if self.service.overrides and self.moving is None else ()
        prices = {resource_id: self.service.offer(resource_id).price for resource_id in ids}
        return prices if set(prices.values()) - {int(self.service.price)} else {}

    @property
    def own_lengths(self) -> dict[str, int]:
        """Minutes by resource if they depend on it. Of a visit, there are none, as for prices."""
        if self.parts or not self.rules.lengths:
            return {}
        ids = [resource.id for resource in self.candidates.bound]
        return {each: self.rules.with_resource(each).duration_min for each in ids}

    def slots(self, query: Query, calendars: Sequence[Calendar] | None = None) -> Availability:
        # ``calendars`` are those of the range, if they have been read.
        if self.unavailable_reason is not None:
            return Availability([], self.unavailable_reason)
        if self.parts:
            return self._visits(query)
        if calendars is None:
            calendars = self.calendars(query.first, last=query.last)
        return slots.union(self.rules, calendars, query)

    def next(self, query: Query) -> Slot | None:
        """Return the first slot in 93 days after a range, or after now if the range has passed."""
        if self.unavailable_reason is not None:
            return None
        first = max(query.last + 1, query.now)
        last = first + _ms(timedelta(days=NEXT_AVAILABLE_DAYS))
        for begin in range(first, last + 1, _ms(CHUNK)):
            chunk = query._replace(first=begin, last=min(begin + _ms(CHUNK) - 1, last))
            if self.parts:
                if found := self._visits(chunk).slots:
                    return found[0]
                continue
            calendars = self.calendars(chunk.first, last=chunk.last)
            if next_slot := slots.next_available(self.rules, calendars, chunk):
                return next_slot
        return None

    def find_nearest(self, start: int, *, now: int, count: int) -> list[Slot]:
        query = Query(start - _ms(timedelta(days=1)), start + _ms(timedelta(days=7)), now)
        nearest = sorted(self.slots(query).slots, key=lambda slot: abs(slot.start - start))
        return sorted(nearest[:count], key=lambda slot: slot.start)

    def calendars(self, first: int, *, last: int) -> list[Calendar]:
        """Return the calendars of the active resources for slots that start between two moments."""
        calendars = read(self.workspace_id, self.candidates.active, self.rules, first, last=last)
        # The booking that is moved must not block its own new time.
        for booking_id in self.moved_visit or {self.moving} - {None}:
            calendars = [calendar.exclude_booking(str(booking_id)) for calendar in calendars]
        return calendars

    def _visits(self, query: Query) -> Availability:
        query = query._replace(first=query.first - self.offset, last=query.last - self.offset)
        calendars = self.calendars(query.first, last=query.last)
        found = visits.union(parts_with(self.parts, calendars), query)
        if self.moving is None:
            return found
        return found._replace(slots=[visits.of_part(slot, self.offset) for slot in found.slots])


def parts_with(parts: Sequence[VisitPart], calendars: Sequence[Calendar]) -> list[visits.Part]:
    """Return the parts of a visit with their calendars, which were read."""
    by_id = {calendar.resource_id: calendar for calendar in calendars}
    return [
        visits.Part(
            part.service.id,
            part.rules,
            [by_id[candidate.resource.id] for candidate in part.candidates.active],
            part.pause_min,
        )
        for part in parts
    ]


class Zones(NamedTuple):
    requested: str | None
    resource: str | None
    bound: frozenset[str]
    workspace: str

    @property
    def effective(self) -> str:
        return zoned_times.resolve_timezone(
            self.requested, resource=self.resource, bound=self.bound, workspace=self.workspace
        )

    @property
    def differ(self) -> bool:
        # Several zones apply and the request does not choose one.
        return not (self.requested or self.resource) and len(self.bound) > 1


def zones(
    bound: Sequence[ResourceRow],
    resource_id: str | None,
    *,
    requested: str | None,
    of_workspace: Callable[[], str],
) -> Zones:
    """Return the zones that apply to times without an offset."""
    # The workspace's zone is read only if no other zone is known.
    of_resource = next(
        (resource.timezone for resource in bound if resource.id == resource_id), None
    )
    all_zones = frozenset(resource.timezone for resource in bound)
    workspace = "" if requested or of_resource or len(all_zones) == 1 else of_workspace()
    return Zones(requested, of_resource, all_zones, workspace)


def range_of(first: date | None, *, last: date | None, zone: str, days: int) -> Span:
    """Return the range from one time or date to another, both inclusive, in a zone.

    By default, it begins now and ends at the same local time this many ``days`` later, even if the
    clocks change.
    """
    begin = clock.now() if first is None else clock.moment_of(first, zone)
    end = (
        zoned_times.moment_days_later(first or begin, days, zone) - timedelta(milliseconds=1)
        if last is None
        else clock.moment_of(last, zone, end=True)
    )
    return Span(epoch_ms(begin), epoch_ms(end))


def is_open_for(visit: Span, hours: Schedule, timezone: str) -> bool:
    """Return whether the time of a booking, without its buffers, lies within opening hours."""
    opened = open_windows.windows(
        hours,
        timezone,
        clock.local_day(clock.moment_at(visit.start), timezone) - 2 * _DAY,
        last=clock.local_day(clock.moment_at(visit.end), timezone) + _DAY,
    )
    return any(
        span.start <= visit.start and visit.end <= span.end for span in merge(opened, touching=True)
    )


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
