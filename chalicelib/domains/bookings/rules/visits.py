"""Decide when several services can be booked one after another for one client (ADR 139).

Each service takes its time as a booking of its own, and begins when the one before it ends. Only
the first begins on the grid of its service. A resource that does several of them keeps their
buffers free of other clients, but not between the services of the visit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.slots import (
    Availability,
    Calendar,
    NoSlotReason,
    Query,
    ResourceSlots,
    Slot,
    SlotPart,
)
from chalicelib.domains.services.rules.booking_rules import ServiceRules
from chalicelib.lib.spans import Span

_MINUTE = 60_000

# Free seats by the start of a part, and by resource.
_Free = dict[int, dict[str, int]]


class Part(NamedTuple):
    """One service of a visit, with the calendars of the resources that may do it, in order."""

    service_id: str
    rules: ServiceRules
    calendars: Sequence[Calendar]
    # Minutes from its end until the next part begins, where bookings between them are not moved.
    pause_min: int = 0

    def end(self, start: int, resource_id: str) -> int:
        """Return when a resource that begins at a start has done the service."""
        return start + self.rules.with_resource(resource_id).duration_min * _MINUTE

    def next_start(self, start: int, resource_id: str) -> int:
        return self.end(start, resource_id) + self.pause_min * _MINUTE


def union(parts: Sequence[Part], query: Query) -> Availability:
    """Return the starts of a visit, with the resources that may do each part.

    ``seats`` of a slot has the resources that can do the whole visit. It may be empty.
    """
    levels, reason = _search(
        parts, lambda part, calendar: slots.slots(part.rules, calendar, query), now=query.now
    )
    if reason is not None:
        return Availability([], reason)
    return Availability([_slot(parts, levels, start) for start in sorted(levels[0])])


class Choice(NamedTuple):
    """The resource and the start of each part, or the reason why there are none."""

    places: Sequence[tuple[str, int]]
    reason: NoSlotReason | None = None


def choose(
    parts: Sequence[Part],
    start: int,
    *,
    now: int,
    ignore_schedule: bool,
    rank: Callable[[str], Any],
) -> Choice:
    """Choose who does each part of a visit that begins at a start: as few people as possible.

    Of several ways, whoever can do most of the following parts is chosen, then the one of the least
    ``rank``. With ``ignore_schedule``, only other bookings count, as in ``slots.is_free``.
    """
    query = Query(start, start, now)

    def first(part: Part, calendar: Calendar) -> ResourceSlots:
        if ignore_schedule:
            return _without_schedule(part, calendar, [start], now)
        return slots.slots(part.rules, calendar, query)

    levels, reason = _search(parts, first, now=now, ignore_schedule=ignore_schedule)
    if reason is not None:
        return Choice([], reason)
    changes = _changes(parts, levels)
    places: list[tuple[str, int]] = []
    chosen = ""
    for number, part in enumerate(parts):
        least = changes[number][start]
        if chosen not in least or least[chosen] > min(least.values()) + 1:
            chosen = min(
                least,
                key=lambda each: (
                    least[each],
                    -_run(parts, levels, number, start, each),
                    rank(each),
                ),
            )
        places.append((chosen, start))
        start = part.next_start(start, chosen)
    return Choice(places)


def _changes(parts: Sequence[Part], levels: Sequence[_Free]) -> list[_Free]:
    # By start and by resource of each part: how often another person goes on after it, at least.
    # The next start depends on who does a part, so the longest run need not be the best.
    changes: list[_Free] = []
    following: _Free = {}
    for part, level in zip(reversed(parts), reversed(levels), strict=True):
        fewest: _Free = {}
        for start, seats in level.items():
            fewest[start] = {}
            for resource_id in seats:
                then = following.get(part.next_start(start, resource_id), {resource_id: 0})
                others = min(then.values()) + 1
                fewest[start][resource_id] = min(then.get(resource_id, others), others)
        changes.insert(0, fewest)
        following = fewest
    return changes


def _search(
    parts: Sequence[Part],
    first: Callable[[Part, Calendar], ResourceSlots],
    *,
    now: int,
    ignore_schedule: bool = False,
) -> tuple[list[_Free], NoSlotReason | None]:
    # The free seats of each part at each start from which the whole visit is possible. Or the
    # reason of the first part that no resource can do.
    levels: list[_Free] = []
    for number, part in enumerate(parts):
        if number == 0:
            found = [first(part, calendar) for calendar in part.calendars]
        else:
            before = parts[number - 1]
            starts = sorted(
                {
                    before.next_start(start, resource_id)
                    for start, seats in levels[-1].items()
                    for resource_id in seats
                }
            )
            find = _without_schedule if ignore_schedule else _with_schedule
            found = [find(part, calendar, starts, now) for calendar in part.calendars]
        free: _Free = {}
        for calendar, resource_slots in zip(part.calendars, found, strict=True):
            for start, count in resource_slots.seats.items():
                free.setdefault(start, {})[calendar.resource_id] = count
        if not free:
            reason = slots.furthest_reason(part.rules, part.calendars, found)
            return [], NoSlotReason.FULLY_BOOKED if ignore_schedule else reason
        levels.append(free)
    # What leads to no end is left out, from the last part to the first.
    for number in range(len(parts) - 2, -1, -1):
        following = levels[number + 1]
        levels[number] = {
            start: kept
            for start, seats in levels[number].items()
            if (
                kept := {
                    resource_id: count
                    for resource_id, count in seats.items()
                    if parts[number].next_start(start, resource_id) in following
                }
            )
        }
    return levels, None


def _with_schedule(
    part: Part, calendar: Calendar, starts: Sequence[int], now: int
) -> ResourceSlots:
    return slots.slots_at(part.rules, calendar, starts, now=now)


def _without_schedule(
    part: Part, calendar: Calendar, starts: Sequence[int], now: int
) -> ResourceSlots:
    free = [
        start
        for start in starts
        if slots.is_free(part.rules, calendar, start, now=now, ignore_schedule=True)
    ]
    return ResourceSlots(dict.fromkeys(free, 1))


def _run(
    parts: Sequence[Part], levels: Sequence[_Free], number: int, start: int, resource_id: str
) -> int:
    # How many parts one resource can do without a break, from a part on. Each start leads to one of
    # the next part.
    count = 0
    for part, level in zip(parts[number:], levels[number:], strict=True):
        if resource_id not in level[start]:
            return count
        start = part.next_start(start, resource_id)
        count += 1
    return count


def _slot(parts: Sequence[Part], levels: Sequence[_Free], start: int) -> Slot:
    slot_parts: list[SlotPart] = []
    starts = {start}
    for part, level in zip(parts, levels, strict=True):
        seats: dict[str, int] = {}
        following, ends = set[int](), set[int]()
        for each in starts:
            for resource_id, count in level[each].items():
                seats[resource_id] = max(count, seats.get(resource_id, count))
                following.add(part.next_start(each, resource_id))
                ends.add(part.end(each, resource_id))
        in_order = [calendar.resource_id for calendar in part.calendars]
        ordered = {
            resource_id: seats[resource_id] for resource_id in in_order if resource_id in seats
        }
        slot_parts.append(SlotPart(part.service_id, min(starts), min(ends), ordered))
        starts = following
    alone = {
        resource_id: count
        for resource_id, count in levels[0][start].items()
        if _run(parts, levels, 0, start, resource_id) == len(parts)
    }
    return Slot(start, slot_parts[-1].end, alone, slot_parts)


class Taken(NamedTuple):
    """The time that a part of a visit takes of a resource, without its buffers in minutes."""

    resource_id: str
    time: Span
    before_min: int
    after_min: int


def kept_buffers(taken: Sequence[Taken]) -> list[tuple[int, int]]:
    """Return the minutes before and after each part that its resource keeps free for a visit.

    For each resource, the times with these buffers do not overlap, and cover what the times with
    the services' own buffers cover. So a visit takes one seat of a resource at any moment.
    """
    kept: dict[int, tuple[int, int]] = {}
    for resource_id in dict.fromkeys(each.resource_id for each in taken):
        numbers = sorted(
            (number for number, each in enumerate(taken) if each.resource_id == resource_id),
            key=lambda number: taken[number].time,
        )
        free_from = None  # the end of the part before, with what is kept after it
        for place, number in enumerate(numbers):
            time = taken[number].time
            begin = min(
                taken[each].time.start - taken[each].before_min * _MINUTE
                for each in numbers[place:]
            )
            end = max(
                taken[each].time.end + taken[each].after_min * _MINUTE
                for each in numbers[: place + 1]
            )
            if free_from is not None:
                begin = max(begin, free_from)
            if place + 1 < len(numbers):
                end = min(end, taken[numbers[place + 1]].time.start)
            kept[number] = (time.start - begin) // _MINUTE, (end - time.end) // _MINUTE
            free_from = end
    return [kept[number] for number in range(len(taken))]


def seats_of(slot: Slot) -> int:
    """Return how many clients can have a slot at once."""
    if not slot.parts:
        return sum(slot.seats.values())
    return min(sum(part.seats.values()) for part in slot.parts)


def of_part(slot: Slot, offset: int) -> Slot:
    """Return the slot of a visit as that of its part which begins an ``offset`` after it."""
    part = next(part for part in slot.parts if part.start == slot.start + offset)
    return slot._replace(start=part.start, end=part.end, seats=part.seats)
