"""What can be booked: the calendars of a service's resources, and the slots that they leave.

Finding slots and booking one read different stretches of the same records, and decide by the same
predicate (``domains.bookings.rules.slots``).
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import NamedTuple, Self

from chalicelib.core import clock, deadline
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.schedule import Schedule
from chalicelib.domains.bookings.rules.slots import (
    NEXT_AVAILABLE_DAYS,
    Availability,
    BusyEntry,
    Calendar,
    NoSlotReason,
    Query,
    ServiceRules,
    Slot,
)
from chalicelib.domains.bookings.store import calendar_days, resources, time_off
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.bookings.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.bookings.store.services import SERVICES, ServiceRow
from chalicelib.domains.bookings.store.time_off import TimeOff
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

ACTIVE = "active"
PARALLEL = 16
"""Queries of one search at the same time."""
CHUNK = timedelta(days=31)
"""How much of the calendars is read at once while the next slot is looked for."""
FOR_GOOD = frozenset(
    {
        NoSlotReason.SERVICE_INACTIVE,
        NoSlotReason.NO_RESOURCES,
        NoSlotReason.NOT_BOUND,
        NoSlotReason.NO_SCHEDULE,
        NoSlotReason.DOES_NOT_FIT,
        NoSlotReason.OUTSIDE_HORIZON,
    }
)
"""Reasons that hold for any later range, too."""


def workspace_of(unit: UnitOfWork) -> WorkspaceRow:
    """Return the workspace of a unit, read once however often the unit begins again."""
    return unit.run_side_effect_once("workspace", lambda: workspaces.get(unit.workspace_id))


def service_of(workspace_id: str, booking: BookingRow) -> ServiceRow:
    """Return the service of a booking; of one that is gone, an inactive one as the booking knew it.

    So nothing says when it can be booked, but it can be moved by who ignores that.
    """
    return SERVICES.find(workspace_id, booking.service_id) or ServiceRow(
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
    """A resource that a service can be booked with, and its opening hours."""

    resource: ResourceRow
    schedule: Schedule

    def calendar(self, busy: Sequence[BusyEntry], off: Sequence[TimeOff]) -> Calendar:
        """Return its calendar with what is booked, and with those of some time off that are its."""
        resource = self.resource
        return Calendar(
            resource.id,
            resource.timezone,
            self.schedule,
            int(resource.capacity),
            busy,
            [each.span(resource.timezone) for each in off if each.is_of(resource.id)],
        )


class Candidates(NamedTuple):
    """The resources that a service can be booked with, in their order; or why there are none.

    ``bound`` are all that are there, active or not, named or not: what zones it is booked in.
    """

    found: list[Candidate]
    bound: list[ResourceRow]
    reason: NoSlotReason | None

    @classmethod
    def of(
        cls,
        workspace_id: str,
        service: ServiceRow,
        resource_id: str | None,
        kept: str | None = None,
    ) -> Self:
        """Return the active resources of a service, or the one of them that is named.

        ``kept`` is a resource that counts as bound, too: that of a booking to be moved.

        Raises:
            NotFoundError: no resource of the workspace has the id that is named.
        """
        ids = list(dict.fromkeys([*service.resource_ids, *([kept] if kept else [])]))
        rows = [Candidate(*each) for each in resources.find_with_schedules(workspace_id, ids)]
        rows.sort(key=lambda each: (each.resource.sort_order, each.resource.id))
        bound = [each.resource for each in rows]
        if resource_id is not None and resource_id not in {each.id for each in bound}:
            RESOURCES.require(workspace_id, resource_id)
            return cls([], bound, NoSlotReason.NOT_BOUND)
        found = [
            each
            for each in rows
            if each.resource.status == ACTIVE and resource_id in {None, each.resource.id}
        ]
        return cls(found, bound, None if found else NoSlotReason.NO_RESOURCES)


def rules_of(service: ServiceRow, booking: BookingRow | None = None) -> ServiceRules:
    """Return what a service asks of a slot; a booking to be moved keeps its length and buffers."""
    if booking is None:
        return service.rules
    return service.rules._replace(
        duration_min=int(booking.duration_min),
        buffer_before_min=int(booking.buffer_before_min),
        buffer_after_min=int(booking.buffer_after_min),
    )


def read(
    workspace_id: str, candidates: Sequence[Candidate], rules: ServiceRules, first: int, last: int
) -> list[Calendar]:
    """Return the calendars of resources, for slots that start from one moment to another.

    One Query a resource and one for time off, all at once.
    """
    span = slots.busy_range(rules, first, last)
    ids = [each.resource.id for each in candidates]

    days: dict[str, list[BusyEntry]] = {}
    off: list[TimeOff] = []

    def one(resource_id: str | None) -> None:
        if resource_id is None:
            off.extend(time_off.overlapping(workspace_id, span.start, span.end))
        else:
            days[resource_id] = calendar_days.read(workspace_id, resource_id, span)

    deadline.map_in_threads(one, [None, *ids], PARALLEL)
    return [each.calendar(days[each.resource.id], off) for each in candidates]


class Search(NamedTuple):
    """What slots are looked for: of which service, with which resources, by which rules.

    ``moving`` is the id of a booking that is not in its own way.
    """

    workspace_id: str
    service: ServiceRow
    candidates: Candidates
    rules: ServiceRules
    moving: str | None = None

    @classmethod
    def of(
        cls,
        workspace_id: str,
        service: ServiceRow,
        resource_id: str | None,
        moving: BookingRow | None = None,
    ) -> Self:
        """Return the search for slots of a service, or of those that a booking can be moved to."""
        kept = moving.resource_id if moving else None
        candidates = Candidates.of(workspace_id, service, resource_id, kept)
        rules = rules_of(service, moving)
        return cls(workspace_id, service, candidates, rules, moving.id if moving else None)

    @property
    def never(self) -> NoSlotReason | None:
        """Why there are no slots at any time, as far as can be told without a calendar."""
        if self.service.status != ACTIVE:
            return NoSlotReason.SERVICE_INACTIVE
        return self.candidates.reason

    @property
    def named(self) -> list[ResourceRow]:
        """The resources that slots can name; if none can be booked, all that the service has."""
        return [each.resource for each in self.candidates.found] or self.candidates.bound

    def slots(self, query: Query) -> Availability:
        """Return the slots in a range, or why there are none."""
        if self.never is not None:
            return Availability([], self.never)
        return slots.union(self.rules, self._calendars(query.first, query.last), query)

    def next(self, query: Query) -> Slot | None:
        """Return the first slot in the 93 days after a range, or from now; read by the month."""
        if self.never is not None:
            return None
        first = max(query.last + 1, query.now)
        last = first + _ms(timedelta(days=NEXT_AVAILABLE_DAYS))
        for begin in range(first, last + 1, _ms(CHUNK)):
            chunk = query._replace(first=begin, last=min(begin + _ms(CHUNK) - 1, last))
            calendars = self._calendars(chunk.first, chunk.last)
            if found := slots.next_available(self.rules, calendars, chunk):
                return found
        return None

    def around(self, start: int, now: int, count: int) -> list[Slot]:
        """Return the slots nearest to a start that cannot be had, in order."""
        query = Query(start - _ms(timedelta(days=1)), start + _ms(timedelta(days=7)), now)
        nearest = sorted(self.slots(query).slots, key=lambda slot: abs(slot.start - start))
        return sorted(nearest[:count], key=lambda slot: slot.start)

    def _calendars(self, first: int, last: int) -> list[Calendar]:
        found = read(self.workspace_id, self.candidates.found, self.rules, first, last)
        return [each.without(self.moving) for each in found] if self.moving else found


class Zones(NamedTuple):
    """The zones that input without an offset may be meant in."""

    given: str | None
    resource: str | None
    bound: frozenset[str]
    workspace: str

    @property
    def reading(self) -> str:
        """The zone that it is read in."""
        return zoned_times.resolve_timezone(self.given, self.resource, self.bound, self.workspace)

    @property
    def differ(self) -> bool:
        """Whether nothing says which of several zones is meant."""
        return not (self.given or self.resource) and len(self.bound) > 1


def zones(
    bound: Sequence[ResourceRow],
    resource_id: str | None,
    given: str | None,
    of_workspace: Callable[[], str],
) -> Zones:
    """Return the zones that times without an offset may be meant in; the workspace's if need be."""
    named = next((each.timezone for each in bound if each.id == resource_id), None)
    shared = frozenset(each.timezone for each in bound)
    workspace = "" if given or named or len(shared) == 1 else of_workspace()
    return Zones(given, named, shared, workspace)


def range_of(first: date | None, last: date | None, zone: str, length: timedelta) -> Span:
    """Return the moments from one to another, both inclusive, as times or dates of a zone.

    From now on if there is no first, and for so long if there is no last.
    """
    begin = clock.now() if first is None else clock.moment_of(first, zone)
    end = (
        begin + length - timedelta(milliseconds=1)
        if last is None
        else clock.moment_of(last, zone, end=True)
    )
    return Span(epoch_ms(begin), epoch_ms(end))


def _ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
