"""Check whether a visit can have its times, and stage its bookings (ADR 139).

All bookings of a visit are placed by one transaction, or none is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from chalicelib.core import retry
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import booking_reads, slot_search, visit_search
from chalicelib.domains.bookings.flows.placement import DAY_FULL, Placement, SlotRequest, refuse
from chalicelib.domains.bookings.flows.slot_search import (
    Candidate,
    Candidates,
    VisitPart,
)
from chalicelib.domains.bookings.rules import slots, visits
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, NoSlotReason
from chalicelib.domains.bookings.rules.visits import Choice, Taken
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bookings.store.calendar_days import CalendarDays, DayFullError
from chalicelib.domains.services.flows import binding
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.domains.services.store import time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.domains.sites.store.sites import SUSPENDED
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span

# Whether these offers, one of each service, are what a client was shown.
Agrees = Callable[[Sequence[Offer]], bool]


class Place(NamedTuple):
    """Who does a part of a visit, and when it begins."""

    candidate: Candidate
    start: int
    duration_min: int


@dataclass(eq=False, repr=False)
class VisitPlacement(Placement):
    """The requested time of a visit, and all records that decide whether it can be booked."""

    parts: Sequence[VisitPart] = ()

    @classmethod
    def create_visit(
        cls, unit: UnitOfWork, services: Sequence[ServiceRow], requested: SlotRequest
    ) -> Self:
        """Read what decides whether services can be booked in a row. Raises as ``create``."""
        search = visit_search.create(unit.workspace_id, services, requested.resource_id, unit.rows)
        return cls._of(cls._create(unit, search, requested), search.parts)

    @classmethod
    def create_for_group(  # noqa: PLR0913  what a move consists of
        cls,
        unit: UnitOfWork,
        visit: Sequence[BookingRow],
        group: Sequence[BookingRow],
        requested: SlotRequest,
        *,
        named: BookingRow,
        resource_ids: Sequence[str | None],
    ) -> Self:
        """Read what decides whether bookings of a visit can be moved together.

        ``requested`` has the new start of the ``named`` one, and ``resource_ids`` the resource of
        each, None for the present one. Raises as ``create``.
        """
        unit.rows.read([time_off.lock_key(unit.workspace_id)])
        search = visit_search.create_for_move(
            unit.workspace_id, group, resource_ids, named=named, rows=unit.rows
        )
        others = [booking for booking in visit if booking not in group]
        return cls._of(cls._create(unit, search, requested, [*group, *others]), search.parts)

    @classmethod
    def create_for_new_group(
        cls, unit: UnitOfWork, visit: Sequence[BookingRow], group: Sequence[BookingRow]
    ) -> Self:
        """Read what decides if new bookings may have the times of these. Raises as ``create``."""
        for booking in group:
            service = booking_reads.read_service(unit, booking.service_id)
            site = service and binding.site_of_service(unit.workspace_id, service.site_id)
            if service is None or (site is not None and site.status == SUSPENDED):
                refuse(NoSlotReason.SERVICE_INACTIVE, [], [], booking.timezone)
            require_once(unit, service)
        ids = [booking.resource_id for booking in group]
        _require_resources(unit, group)
        request = SlotRequest(group[0].starts_at)
        return cls.create_for_group(unit, visit, group, request, named=group[0], resource_ids=ids)

    @classmethod
    def create_for_return(
        cls, unit: UnitOfWork, visit: Sequence[BookingRow], group: Sequence[BookingRow]
    ) -> Self:
        """Read what decides whether bookings of a visit may block their times again.

        Raises as ``create``.
        """
        resources = _require_resources(unit, group)
        parts = []
        for booking, pause_min in zip(group, visit_search.pauses(group), strict=True):
            rules = slot_search.rules_of_booking(booking)
            candidates = Candidates([Candidate(resources[booking.resource_id])], [], None)
            service = slot_search.service_of(unit.workspace_id, booking, unit.rows)
            parts.append(VisitPart(service, candidates, rules, pause_min))
        others = [booking for booking in visit if booking not in group]
        placement = cls(
            unit,
            # Opening hours are ignored, because the bookings were accepted before.
            SlotRequest(group[0].starts_at, ignores_schedule=True),
            epoch_ms(group[0].starts_at),
            [Candidate(resource) for resource in resources.values()],
            visit_search.hull(parts),
            group[0].timezone,
            existing=[*group, *others],
        )
        return cls._of(placement, parts)

    @classmethod
    def _of(cls, placement: Self, parts: Sequence[VisitPart]) -> Self:
        placement.parts = parts
        return placement

    def choose_all(self, agrees: Agrees | None = None) -> list[Place]:
        """Return who does each part, and when: as few people as possible.

        If their offers are not what the client was shown (``agrees``), but the cheapest offer of
        each service is, those who have the cheapest are chosen, if they are free.

        Raises SlotUnavailableError with alternatives if the visit is not possible.
        """
        calendars = [self._calendar(candidate) for candidate in self.candidates]
        parts = slot_search.parts_with(self.parts, calendars)
        choice = self._choose(parts, calendars)
        if choice.reason is not None:
            self._unavailable(choice.reason)
        if agrees is not None and not agrees(
            [
                part.service.offer(resource_id)
                for part, (resource_id, _) in zip(self.parts, choice.places, strict=True)
            ]
        ):
            choice = self._choose_cheapest(parts, calendars, agrees) or choice
        candidates = {candidate.resource.id: candidate for candidate in self.candidates}
        return [
            Place(
                candidates[resource_id], start, part.rules.with_resource(resource_id).duration_min
            )
            for part, (resource_id, start) in zip(self.parts, choice.places, strict=True)
        ]

    def _choose_cheapest(
        self, parts: Sequence[visits.Part], calendars: Sequence[Calendar], agrees: Agrees
    ) -> Choice | None:
        by_part = [
            {calendar.resource_id: part.service.offer(calendar.resource_id) for calendar in own}
            for part, own in zip(self.parts, (each.calendars for each in parts), strict=True)
        ]
        cheapest = [min(offers.values()) for offers in by_part]
        if not agrees(cheapest):
            return None
        choice = self._choose(
            [
                part._replace(
                    calendars=[
                        calendar
                        for calendar in part.calendars
                        if offers[calendar.resource_id] == offer
                    ]
                )
                for part, offers, offer in zip(parts, by_part, cheapest, strict=True)
            ],
            calendars,
        )
        return choice if choice.reason is None else None

    def _choose(self, parts: Sequence[visits.Part], calendars: Sequence[Calendar]) -> Choice:
        by_id = {calendar.resource_id: calendar for calendar in calendars}
        return visits.choose(
            parts,
            self.start,
            now=self._now,
            ignore_schedule=self.requested.ignores_schedule,
            rank=lambda each: slots.rank(by_id[each], self.start, now=self._now),
        )

    def stage_all(
        self,
        placed: Sequence[BookingRow],
        entries: Iterable[BookingRow],
        replacing: Iterable[tuple[str, BusyEntry]] = (),
    ) -> None:
        """Stage the calendar days with the ``entries``, of which some were ``placed`` anew.

        The commit requires that nothing which decides about the placed ones has changed.
        """
        try:
            stage_days(self._days, self.unit, entries, replacing)
        except DayFullError:
            self._unavailable(DAY_FULL)
        ids = {booking.resource_id for booking in placed}
        for candidate in self.candidates:
            if candidate.resource.id in ids:
                self._require_unchanged(candidate)
        self._require_time_off_unchanged()


def stage_days(
    days: CalendarDays,
    unit: UnitOfWork,
    entries: Iterable[BookingRow],
    replacing: Iterable[tuple[str, BusyEntry]],
) -> None:
    """Stage calendar days without some entries and with others. Raises DayFullError."""
    for resource_id, entry in replacing:
        days.remove(resource_id, entry)
    for booking in entries:
        days.add(booking.resource_id, booking.busy)
    days.stage(unit)


def read_days(unit: UnitOfWork, visit: Sequence[BookingRow]) -> CalendarDays:
    """Return the calendar days of a visit that keeps its times."""
    # All bookings of a day write the same calendar row, so conflicts are expected.
    unit.retry_policy = retry.high_contention()
    return CalendarDays(
        unit.workspace_id, [(booking.resource_id, booking.widest) for booking in visit]
    )


def set_buffers(visit: Iterable[BookingRow]) -> None:
    """Set what the resources of a visit keep free before and after each booking that blocks."""
    blocking = [booking for booking in visit if booking.blocks]
    taken = [
        Taken(
            booking.resource_id,
            Span(epoch_ms(booking.starts_at), epoch_ms(booking.ends_at)),
            int(booking.buffer_before_min),
            int(booking.buffer_after_min),
        )
        for booking in blocking
    ]
    for booking, kept in zip(blocking, visits.kept_buffers(taken), strict=True):
        booking.visit_buffers = list(kept)


def require_once(unit: UnitOfWork, service: ServiceRow) -> None:
    """Require at commit that a service is unchanged, once for all parts of a visit."""
    condition = ServiceRow.version == service.version
    unit.stage_once(f"service {service.id}", lambda unit: unit.require(service, condition))


def _require_resources(unit: UnitOfWork, group: Sequence[BookingRow]) -> dict[str, ResourceRow]:
    keys = {
        booking.resource_id: RESOURCES.key(unit.workspace_id, record_id=booking.resource_id)
        for booking in group
    }
    unit.rows.read(keys.values())
    found = {
        resource_id: resource
        for resource_id, key in keys.items()
        if (resource := unit.rows.find(ResourceRow, key)) is not None
    }
    if len(found) < len(keys):
        refuse(NoSlotReason.NO_RESOURCES, [], [], group[0].timezone)
    return found
