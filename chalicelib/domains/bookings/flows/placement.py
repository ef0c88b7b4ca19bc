"""Check whether a time can be booked, and stage the booking.

A placement reads opening hours, time off and calendar days. It writes the calendar days, and
requires that opening hours and time off are unchanged at commit (ADR 21).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple, NoReturn, Self

from chalicelib.core import clock, retry
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ConflictError, ValidationError, call
from chalicelib.domains.bookings.flows import booking_reads, slot_search
from chalicelib.domains.bookings.flows.slot_out import SlotOut, SlotResource
from chalicelib.domains.bookings.flows.slot_search import Candidate, Search, Zones
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, NoSlotReason, Query, Slot
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bookings.store.calendar_days import CalendarDays, DayFullError
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.domains.services.store import opening_hours, resources, time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.services.store.time_off import CheckedTimeOff
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span
from chalicelib.lib.zoned_times import LocalTimeError

DAY_FULL = "day_full"  # The calendar day of the resource has the maximum number of bookings.
ALTERNATIVES = 5


class SlotUnavailableError(ConflictError):
    """The time cannot be booked, for the ``reason``. ``alternatives`` are free times near it.

    ``resources`` are the resources that the alternatives name.
    """

    code = "slot_unavailable"

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        alternatives: Sequence[SlotOut],
        resources: Sequence[SlotResource],
    ) -> None:
        details = {
            "reason": reason,
            "alternatives": [slot.model_dump(mode="json", by_alias=True) for slot in alternatives],
            "resources": [
                resource.model_dump(mode="json", by_alias=True) for resource in resources
            ],
        }
        super().__init__(message, details=details)


class SlotRequest(NamedTuple):
    """The requested time, and optionally one resource of the service."""

    start: date  # without a UTC offset, in ``timezone``
    resource_id: str | None = None  # Default: the free one with the fewest bookings of the day.
    timezone: str | None = None
    # The time may be in the past and outside the opening hours, and the service's steps, time off,
    # notice and horizon do not apply. The booking is still refused if the time is booked, or if the
    # resource is inactive, deleted, not bound to the service, or there for another's dated start.
    ignores_schedule: bool = False
    # Ids of the resources whose price and length the client was shown. None: all of the service.
    among: frozenset[str] | None = None


@dataclass(eq=False, repr=False)
class Placement:
    """A requested time, and all records that decide whether it can be booked."""

    unit: UnitOfWork
    requested: SlotRequest
    start: int
    candidates: Sequence[Candidate]
    rules: ServiceRules
    zone: str
    search: Search | None = None  # finds alternatives
    # To be moved or reactivated: its own time counts as free. Of a visit, all bookings.
    existing: Sequence[BookingRow] = ()
    _now: int = field(init=False)
    _off: CheckedTimeOff | None = field(init=False)
    _days: CalendarDays = field(init=False)

    def __post_init__(self) -> None:
        # Time off and calendar days are read now unless they were read ahead.
        # A popular day has many writers, so the retries go on for longer.
        self.unit.retry_policy = retry.high_contention()
        self._now = epoch_ms(clock.now())
        span = slots.busy_range(self.rules, self.start, last=self.start)
        ids = [candidate.resource.id for candidate in self.candidates]
        spans = booking_reads.spans_of(self.rules, ids, self.start)
        if len(self.candidates) > 1:
            spans += self._working_days()
        # A move to another day must also take the booking out of its former day.
        spans += [(booking.resource_id, booking.widest) for booking in self.existing]
        off = None if self.requested.ignores_schedule else span
        self._off = booking_reads.read_calendars(self.unit, spans, off)
        self._days = CalendarDays(self.unit.workspace_id, spans, self.unit.rows)

    @classmethod
    def create(cls, unit: UnitOfWork, service: ServiceRow, requested: SlotRequest) -> Self:
        """Read all records that decide whether a service can be booked at a time.

        Raises:
            NotFoundError: the resource does not exist.
            ValidationError: the start is not a valid moment, or it has passed.
            SlotUnavailableError: the service cannot be booked at all, or not with this resource.
        """
        search = Search.create(unit.workspace_id, service, requested.resource_id, rows=unit.rows)
        if requested.among is not None:
            search = search.among(requested.among)
        return cls._create(unit, search, requested)

    @classmethod
    def create_for_move(cls, unit: UnitOfWork, booking: BookingRow, requested: SlotRequest) -> Self:
        """Read what decides whether a booking can be moved. Raises as ``create``."""
        workspace_id, rows = unit.workspace_id, unit.rows
        ids = {booking.resource_id, requested.resource_id or booking.resource_id}
        keys = [SERVICES.key(workspace_id, record_id=booking.service_id)]
        keys += opening_hours.keys_with_schedules(workspace_id, ids)
        if not requested.ignores_schedule:
            keys.append(time_off.lock_key(workspace_id))
        rows.read(keys)
        service = slot_search.service_of(workspace_id, booking, rows)
        search = Search.create(workspace_id, service, requested.resource_id, booking, rows)
        return cls._create(unit, search, requested, [booking])

    @classmethod
    def create_for_rebooking(cls, unit: UnitOfWork, booking: BookingRow) -> Self:
        """Read what decides if a new booking may have a booking's time. Raises as ``create``."""
        workspace_id = unit.workspace_id
        service = booking_reads.read_service(unit, booking.service_id)
        site = service and binding.site_of_service(workspace_id, service.site_id)
        if service is None or (site is not None and site.status == SUSPENDED):
            refuse(NoSlotReason.SERVICE_INACTIVE, [], [], booking.timezone)
        if RESOURCES.find(workspace_id, record_id=booking.resource_id) is None:
            refuse(NoSlotReason.NO_RESOURCES, [], [], booking.timezone)
        # The service must not be switched off in the meantime.
        unit.require(service, ServiceRow.version == service.version)
        search = Search.create(workspace_id, service, booking.resource_id, rows=unit.rows)
        search = search._replace(rules=slot_search.rules_of(service, booking))
        place = SlotRequest(booking.starts_at, booking.resource_id)
        return cls._create(unit, search, place, [booking])

    @classmethod
    def create_for_reactivation(cls, unit: UnitOfWork, booking: BookingRow) -> Self:
        """Read what decides whether a booking may block its time again. Raises as ``create``."""
        resource = RESOURCES.find(unit.workspace_id, record_id=booking.resource_id)
        if resource is None:
            refuse(NoSlotReason.NO_RESOURCES, [], [], booking.timezone)
        return cls(
            unit,
            # Opening hours are ignored, because the booking was accepted before.
            SlotRequest(booking.starts_at, resource.id, ignores_schedule=True),
            epoch_ms(booking.starts_at),
            [Candidate(resource)],
            slot_search.rules_of_booking(booking),
            booking.timezone,
            existing=[booking],
        )

    @classmethod
    def _create(
        cls,
        unit: UnitOfWork,
        search: Search,
        requested: SlotRequest,
        existing: Sequence[BookingRow] = (),
    ) -> Self:
        # The first of the existing bookings is the one whose start is found.
        active, bound = search.candidates.active, search.candidates.bound
        zones = slot_search.zones(
            bound,
            requested.resource_id,
            requested=requested.timezone,
            of_workspace=lambda: slot_search.workspace_of(unit).timezone,
        )
        start = moment_of(requested, zones) - search.offset
        same_start = bool(existing) and start == epoch_ms(existing[0].starts_at)
        if start < epoch_ms(clock.now()) and not (requested.ignores_schedule or same_start):
            message = f"expected a time in the future, received {requested.start}"
            raise ValidationError.of("startAt", message=message)
        # A caller that ignores the schedule may move a booking of an inactive service.
        service_may_be_inactive = bool(existing) and requested.ignores_schedule and bool(active)
        if search.unavailable_reason is not None and not service_may_be_inactive:
            refuse(search.unavailable_reason, [], bound, zones.effective)
        return cls(
            unit,
            requested,
            start,
            active,
            search.rules,
            zones.effective,
            search,
            existing,
        )

    def choose(self) -> Candidate:
        """Return the free resource with the fewest bookings of the day.

        Raises SlotUnavailableError with alternatives if no resource is free.
        """
        read = [self._calendar(candidate) for candidate in self.candidates]
        free = [
            calendar
            for calendar in read
            if slots.is_free(
                self.rules,
                calendar,
                self.start,
                now=self._now,
                ignore_schedule=self.requested.ignores_schedule,
            )
        ]
        if free:
            chosen = slots.least_busy(free, self.start, now=self._now).resource_id
            return next(c for c in self.candidates if c.resource.id == chosen)
        query = Query(self.start, self.start, self._now)
        reason = (
            None if self.requested.ignores_schedule else slots.union(self.rules, read, query).reason
        )
        return self._unavailable(reason or NoSlotReason.FULLY_BOOKED)

    def _working_days(self) -> Iterator[tuple[str, Span]]:
        """Yield the opening hours of the local day, which choosing a resource counts bookings in.

        They seldom reach into another UTC day, so seldom more is read than the time itself needs.
        """
        for candidate in self.candidates:
            resource, schedule = candidate.resource, opening_hours.schedule_of(candidate.hours)
            if day := slots.working_day(schedule, resource.timezone, self.start):
                yield resource.id, day

    def stage(self, booking: BookingRow, replacing: tuple[str, BusyEntry] | None = None) -> None:
        """Stage the calendar days with the booking. The commit requires unchanged preconditions."""
        # ``replacing`` is the resource and the entry of the booking before the move.
        if replacing is not None:
            self._days.remove(*replacing)
        try:
            self._days.add(booking.resource_id, booking.busy)
        except DayFullError:
            self._unavailable(DAY_FULL)
        self._days.stage(self.unit)
        (candidate,) = (
            candidate
            for candidate in self.candidates
            if candidate.resource.id == booking.resource_id
        )
        self._require_unchanged(candidate)
        self._require_time_off_unchanged()

    def reactivate(self, booking: BookingRow) -> None:
        self.choose()
        self.stage(booking)

    def _require_unchanged(self, candidate: Candidate) -> None:
        # After a concurrent change of hours or time off, the commit fails and the unit runs again.
        resources.require_unchanged(self.unit, candidate.resource)
        if not self.requested.ignores_schedule:
            opening_hours.require_hours_unchanged(self.unit, candidate.resource.id, candidate.hours)

    def _require_time_off_unchanged(self) -> None:
        if self._off is not None:
            self._off.require_unchanged(self.unit)

    def _calendar(self, candidate: Candidate) -> Calendar:
        off = self._off.periods if self._off else ()
        days = self._days.of(candidate.resource.id)
        if self.requested.ignores_schedule:
            days = days._replace(elsewhere=[])
        calendar = candidate.calendar(days, off)
        for booking in self.existing:
            calendar = calendar.exclude_booking(booking.id)
        return calendar

    def _unavailable(self, reason: str) -> NoReturn:
        alternatives = (
            self.search.find_nearest(
                self.start + self.search.offset, now=self._now, count=ALTERNATIVES
            )
            if self.search
            else []
        )
        refuse(
            reason,
            alternatives,
            [candidate.resource for candidate in self.candidates],
            self.zone,
            self.search,
        )


def moment_of(requested: SlotRequest, zones: Zones) -> int:
    """Return a requested start in ms since 1970 UTC: a whole minute that is not ambiguous.

    Raises ValidationError for any other.
    """
    start = requested.start
    if not isinstance(start, datetime):
        message = f"expected a time such as {start}T12:00, received a date"
        raise ValidationError.of("startAt", message=message)
    if start.tzinfo is None and zones.differ:
        message = (
            "expected a time with an offset, such as "
            f"{start.isoformat(timespec='minutes')}+03:00, because the resources of this service "
            f"are in several time zones ({', '.join(sorted(zones.bound))})"
        )
        raise ValidationError.of("startAt", message=message)
    try:
        moment = zoned_times.exact_moment(start, zones.effective)
    except LocalTimeError as error:
        raise ValidationError.of("startAt", message=str(error)) from None
    # Calendar days store minutes, so seconds would be lost.
    if moment.second or moment.microsecond:
        message = f"expected a time without seconds, received {start.isoformat()}"
        raise ValidationError.of("startAt", message=message)
    return epoch_ms(moment)


_REASON_TEXTS: Mapping[str, str] = {
    NoSlotReason.SERVICE_INACTIVE: "the service is not active",
    NoSlotReason.NO_RESOURCES: "the service has no active resource",
    NoSlotReason.NOT_BOUND: "the service is not bound to this resource",
    NoSlotReason.NO_SCHEDULE: "no opening hours are set",
    NoSlotReason.DOES_NOT_FIT: "the opening hours are shorter than the service",
    NoSlotReason.OUTSIDE_HORIZON: "it is further ahead than bookings are allowed",
    NoSlotReason.NO_STARTS: "the service is offered on its dates only, and this is none of them",
    NoSlotReason.CLOSED: "it is outside the opening hours, or it is not the start of a slot",
    NoSlotReason.TIME_OFF: "the resource has time off at this time",
    NoSlotReason.TOO_LITTLE_NOTICE: "it is earlier than the minimum notice allows",
    NoSlotReason.FULLY_BOOKED: "it is already booked",
    DAY_FULL: "the maximum number of bookings on that day is reached",
}


def refuse(
    reason: str,
    alternatives: Sequence[Slot],
    resources: Sequence[ResourceRow],
    zone: str,
    search: Search | None = None,
) -> NoReturn:
    """Raise SlotUnavailableError with the reason and nearby free slots, which a search found."""
    advice = (
        "Book one of the alternatives."
        if alternatives
        else f"Find free slots with {call('svc_get_available_slots')}."
    )

    msg = f"This time cannot be booked: {_REASON_TEXTS[reason]}. {advice}"
    raise SlotUnavailableError(
        msg,
        reason=str(reason),
        alternatives=[SlotOut.from_slot(slot, zone) for slot in alternatives],
        resources=SlotResource.several(resources, search),
    )
