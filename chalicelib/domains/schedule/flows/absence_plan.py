"""Find who can take the bookings of a member of the staff who is away, or when they can be moved.

A colleague can take a booking at its own time if the colleague is active, provides the service, is
at work and is free then. The rules of new bookings, such as notice, horizon and the steps of slots,
do not apply: the client has the time already.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import NamedTuple, Self

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import booking_reads, placement, slot_search
from chalicelib.domains.bookings.flows.slot_search import ACTIVE, PARALLEL, Candidate
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.slots import Calendar, NoSlotReason, Query
from chalicelib.domains.bookings.store import booked_times, bookings, calendar_days
from chalicelib.domains.bookings.store.bookings import UPCOMING, BookingRow
from chalicelib.domains.bookings.store.calendar_days import BookedDays
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span

MAX_BOOKINGS = 50  # of one absence that are shown or changed at once
MAX_COLLEAGUES = 5  # named for a booking, the least busy first
# Staff members whose calendars are read. A service has up to 50, and a business rarely more.
MAX_READ = 50
SEARCHED_DAYS = 14  # after the absence, in which another time is searched
_DAY_MS = timedelta(days=1) // timedelta(milliseconds=1)


class OtherTime(NamedTuple):
    """The next time at which a booking could take place."""

    start: int
    resource: ResourceRow


class Proposal(NamedTuple):
    """What can be done with a booking of somebody who is away."""

    booking: BookingRow
    colleagues: list[ResourceRow]  # who are free at the time of the booking
    other_time: OtherTime | None  # only searched if nobody is free


def affected(
    workspace_id: str, resource_id: str, period: Span, limit: int | None = None
) -> tuple[list[BookingRow], int]:
    """Return the first bookings in a period that have not begun, by start, and their number.

    Bookings that have begun or ended, and holds that have expired, do not count.
    """
    now = epoch_ms(clock.now())
    entries = [
        entry
        for entry in booked_times.overlapping(workspace_id, period, resource_id)
        if entry.status in UPCOMING and entry.span.start > now
    ]
    # Holds that have just expired are left out as far as they are read.
    rows = booked_times.records_of(workspace_id, entries[:limit])
    upcoming = [row for row in rows if bookings.is_upcoming(row)]
    return upcoming, len(entries) - len(rows) + len(upcoming)


@dataclass(eq=False, repr=False)
class AbsencePlan:
    """The calendars of all who can provide the services of some bookings."""

    absent: ResourceRow
    services: Mapping[str, ServiceRow]
    candidates: Mapping[str, Candidate]
    off: Sequence[TimeOff]
    busy: dict[str, BookedDays]
    period: Span

    @classmethod
    def read(
        cls, workspace_id: str, absent: ResourceRow, period: Span, rows: Sequence[BookingRow]
    ) -> Self:
        """Read them with one request for each staff member, side by side, and few others."""
        service_ids = dict.fromkeys(row.service_id for row in rows)
        services = {row.id: row for row in SERVICES.fetch(workspace_id, list(service_ids))}
        ids = list(
            islice(
                dict.fromkeys(
                    resource_id for row in services.values() for resource_id in row.resource_ids
                ),
                MAX_READ,
            )
        )
        candidates = {
            resource.id: Candidate(resource, hours)
            for resource, hours in opening_hours.find_with_schedules(workspace_id, ids)
            if resource.status == ACTIVE
        }
        # A day more at both ends is longer than any booking with its buffers.
        span = Span(period.start - _DAY_MS, period.end + (SEARCHED_DAYS + 1) * _DAY_MS)
        off: list[TimeOff] = []
        busy: dict[str, BookedDays] = {}

        def read_one(resource_id: str | None) -> None:
            if resource_id is None:
                off.extend(time_off.overlapping(workspace_id, span.start, last_ms=span.end))
            else:
                busy[resource_id] = calendar_days.read(
                    workspace_id, resource_id=resource_id, span=span
                )

        if candidates:
            deadline.map_in_threads(read_one, [None, *candidates], PARALLEL)
        return cls(absent, services, candidates, off, busy, period)

    def propose(self, rows: Sequence[BookingRow]) -> Iterator[Proposal]:
        """Yield what can be done with each booking if the first choice is taken for all others."""
        now = epoch_ms(clock.now())
        for booking in rows:
            calendars = self._calendars(booking)
            free = self._free_colleagues(booking, calendars, now)
            other = None if free else self._other_time(booking, calendars, now)
            if free:
                self._take(free[0].resource_id, booking, epoch_ms(booking.starts_at))
            elif other is not None:
                self._take(other.resource.id, booking, other.start)
            colleagues = [self.candidates[calendar.resource_id].resource for calendar in free]
            yield Proposal(booking, colleagues[:MAX_COLLEAGUES], other)

    def _calendars(self, booking: BookingRow) -> list[Calendar]:
        service = self.services.get(booking.service_id)
        calendars = []
        for resource_id in service.resource_ids if service else ():
            if candidate := self.candidates.get(resource_id):
                calendar = candidate.calendar(self.busy[resource_id], self.off)
                # The services of one visit do not exclude each other.
                for booking_id in booking.visit or ():
                    calendar = calendar.exclude_booking(booking_id)
                if resource_id == self.absent.id:
                    calendar = calendar._replace(time_off=[*calendar.time_off, self.period])
                calendars.append(calendar)
        return calendars

    def _free_colleagues(
        self, booking: BookingRow, calendars: Sequence[Calendar], now: int
    ) -> list[Calendar]:
        start = epoch_ms(booking.starts_at)
        rules = (
            slot_search.rules_of(self.services[booking.service_id], booking) if calendars else None
        )
        free = [
            calendar
            for calendar in calendars
            if rules is not None
            and calendar.resource_id != self.absent.id
            and _keeps_visit(booking, self.services[booking.service_id], calendar.resource_id)
            and self._is_at_work(calendar.resource_id, booking)
            and slots.is_free(rules, calendar, start, now=now, ignore_schedule=True)
            and (not rules.fixed_starts or slots.has_start(rules, calendar, start))
        ]
        least_busy_first = list[Calendar]()
        while free and len(least_busy_first) < MAX_COLLEAGUES:
            least_busy_first.append(slots.least_busy(free, start, now=now))
            free.remove(least_busy_first[-1])
        return least_busy_first

    def _is_at_work(self, resource_id: str, booking: BookingRow) -> bool:
        visit = slot_search.time_with(booking, self.services.get(booking.service_id), resource_id)
        return _reason_against(self.candidates[resource_id], visit, self.off) is None

    def _other_time(
        self, booking: BookingRow, calendars: Sequence[Calendar], now: int
    ) -> OtherTime | None:
        service = self.services.get(booking.service_id)
        # Another time of a visit is one of all its services, which others may do as well.
        if service is None or service.status != ACTIVE or booking.visit:
            return None
        rules = slot_search.rules_of(service, booking)
        first = epoch_ms(booking.starts_at) + 1
        query = Query(first, self.period.end + SEARCHED_DAYS * _DAY_MS, now)
        own = [calendar.exclude_booking(booking.id) for calendar in calendars]
        slot = slots.next_available(rules, own, query)
        if slot is None:
            return None
        # The same person, if that is possible at the time.
        resource_id = self.absent.id if self.absent.id in slot.seats else next(iter(slot.seats))
        return OtherTime(slot.start, self.candidates[resource_id].resource)

    def _take(self, resource_id: str, booking: BookingRow, start: int) -> None:
        own = slot_search.time_with(booking, self.services.get(booking.service_id), resource_id)
        moved = booking.busy._replace(start=start, end=start + own.end - own.start)
        days = self.busy[resource_id]
        self.busy[resource_id] = days._replace(entries=[*days.entries, moved])


def require_at_work(unit: UnitOfWork, booking: BookingRow, resource_id: str) -> None:
    """Require that a colleague is at work during a booking, now and at commit.

    Whether other bookings leave the time free is checked by the move itself.

    Raises:
        SlotUnavailableError: the colleague's hours or time off exclude the time.
    """
    unit.rows.read(
        [
            *opening_hours.keys_with_schedules(unit.workspace_id, [resource_id]),
            time_off.lock_key(unit.workspace_id),
        ]
    )
    visit = slot_search.time_with(
        booking, booking_reads.read_service(unit, booking.service_id), resource_id
    )
    # A resource that does not exist is refused by the move.
    for found in opening_hours.find_with_schedules(unit.workspace_id, [resource_id], unit.rows):
        candidate = Candidate(*found)
        if not _keeps_visit(
            booking, booking_reads.read_service(unit, booking.service_id), resource_id
        ):
            placement.refuse(NoSlotReason.DOES_NOT_FIT, [], [candidate.resource], booking.timezone)
        checked = time_off.read_checked(unit, visit)
        reason = _reason_against(candidate, visit, checked.periods)
        if reason is not None:
            placement.refuse(reason, [], [candidate.resource], booking.timezone)
        opening_hours.require_hours_unchanged(unit, resource_id, candidate.hours)
        checked.require_unchanged(unit)


def _keeps_visit(booking: BookingRow, service: ServiceRow | None, resource_id: str) -> bool:
    # With another length, the services of the visit that follow would move, unasked.
    own = slot_search.time_with(booking, service, resource_id)
    return not booking.visit or own.end == epoch_ms(booking.ends_at)


def _reason_against(
    candidate: Candidate, visit: Span, off: Sequence[TimeOff]
) -> NoSlotReason | None:
    resource, schedule = candidate.resource, opening_hours.schedule_of(candidate.hours)
    if not slot_search.is_open_for(visit, schedule, resource.timezone):
        return NoSlotReason.CLOSED
    for absence in off:
        away = absence.span(resource.timezone)
        if absence.applies_to(resource.id) and away.start < visit.end and away.end > visit.start:
            return NoSlotReason.TIME_OFF
    return None
