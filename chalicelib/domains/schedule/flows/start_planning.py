"""Decide which dates a service gets with a resource, and what is wrong with those it has."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.slot_search import ACTIVE, Candidate
from chalicelib.domains.bookings.rules import slots
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, NoSlotReason, Query
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.bookings.store.calendar_days import BookedDays
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.dated_starts import DatedStartRow
from chalicelib.domains.services.store.services import ServiceRow
from chalicelib.engine.reading import fetch
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

_WEEK_DAYS = 7
# What hides a date from visitors for now only. Nothing is wrong with it.
_NOT_YET = {NoSlotReason.FULLY_BOOKED, NoSlotReason.TOO_LITTLE_NOTICE}


def weekly(start: int, weeks: int, timezone: str) -> list[int]:
    """Return a moment and the same local time of the following weeks, in ms since 1970 UTC."""
    first = clock.moment_at(start)
    later = range(_WEEK_DAYS, _WEEK_DAYS * weeks, _WEEK_DAYS)
    return [
        start,
        *(epoch_ms(zoned_times.moment_days_later(first, days, timezone)) for days in later),
    ]


def starts_of(service: ServiceRow, resource_id: str, moments: Iterable[int]) -> list[DatedStart]:
    """Return starts at some moments, with the length and the buffers of the service now."""
    rules = service.rules.with_resource(resource_id)
    length = rules.duration_min * 60_000
    buffers = rules.buffer_before_min, rules.buffer_after_min
    return [DatedStart(service.id, start, start + length, *buffers) for start in moments]


class Refusal(NamedTuple):
    start: int
    reason: str  # closed, time_off, other_date or booked


class Plan(NamedTuple):
    """The dates that can be added, with those that stay, and the others."""

    added: list[DatedStart]
    refused: list[Refusal]


def plan(calendar: Calendar, wanted: Iterable[DatedStart], now: int, workspace_id: str) -> Plan:
    """Return which starts can be added to a calendar.

    A date that the service already has stays, and gets the service's length if that is longer. So
    do bookings of the service at exactly this time, such as those from before it had dates.
    """
    blocking = [entry for entry in calendar.busy if entry.blocks(now)]
    own_ids = _own_ids(workspace_id, wanted := list(wanted), blocking)
    added, refused = list[DatedStart](), list[Refusal]()
    for dated in wanted:
        others = [
            each
            for each in calendar.starts
            if (each.service_id, each.start) != (dated.service_id, dated.start)
        ]
        same = [each for each in calendar.starts if each not in others]
        own = [
            entry
            for entry in blocking
            if entry.start == dated.start and entry.booking_id in own_ids
        ]
        hull = _hull(dated, [*same, *own])
        if reason := _reason_against(
            calendar, hull, others, [entry for entry in blocking if entry not in own]
        ):
            refused.append(Refusal(dated.start, reason))
        else:
            added.append(hull)
    return Plan(added, refused)


def _own_ids(
    workspace_id: str, wanted: Sequence[DatedStart], entries: Sequence[BusyEntry]
) -> set[str]:
    # The calendar does not say of which service a booking is.
    service_ids, starts = {each.service_id for each in wanted}, {each.start for each in wanted}
    ids = [entry.booking_id for entry in entries if entry.start in starts]
    found = BOOKINGS.fetch(workspace_id, ids) if ids else []
    return {row.id for row in found if row.service_id in service_ids}


def _hull(dated: DatedStart, within: Iterable[DatedStart | BusyEntry]) -> DatedStart:
    for each in within:
        dated = dated._replace(
            end=max(dated.end, each.end),
            buffer_before_min=max(dated.buffer_before_min, each.buffer_before_min),
            buffer_after_min=max(dated.buffer_after_min, each.buffer_after_min),
        )
    return dated


def _reason_against(
    calendar: Calendar,
    dated: DatedStart,
    others: Iterable[DatedStart],
    entries: Iterable[BusyEntry],
) -> str | None:
    time = Span(dated.start, dated.end)
    if not slot_search.is_open_for(time, calendar.schedule, calendar.timezone):
        return "closed"
    if _meets(time, calendar.time_off):
        return "time_off"
    if _meets(dated.buffered, (each.buffered for each in others)):
        return "other_date"
    return "booked" if _meets(dated.buffered, (entry.buffered for entry in entries)) else None


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(other.start < span.end and span.start < other.end for other in others)


class DateState(NamedTuple):
    """A date with its resource, the places that are sold, and why visitors are not offered it."""

    row: DatedStartRow
    candidate: Candidate | None  # None: the resource was deleted
    booked: int
    problem: NoSlotReason | None


def read_states(
    workspace_id: str, service: ServiceRow, rows: Sequence[DatedStartRow]
) -> list[DateState]:
    """Return what is sold at dates of a service, by one request and the time off."""
    if not rows:
        return []
    ids = list(dict.fromkeys(row.resource_id for row in rows))
    spans = [(row.resource_id, row.dated.buffered) for row in rows]
    keys = [
        *opening_hours.keys_with_schedules(workspace_id, ids),
        *calendar_days.keys_of(workspace_id, spans).values(),
    ]
    found = fetch(keys)
    candidates = {
        resource.id: Candidate(resource, hours) for resource, hours in opening_hours.pairs(found)
    }
    off = time_off.overlapping(
        workspace_id,
        min(span.start for _, span in spans),
        last_ms=max(span.end for _, span in spans),
    )
    days = calendar_days.days_among(found)
    calendars = {
        resource_id: candidate.calendar(days.get(resource_id, BookedDays([], [])), off)
        for resource_id, candidate in candidates.items()
    }
    now = epoch_ms(clock.now())
    return [
        DateState(
            row,
            candidates.get(row.resource_id),
            count_booked(calendars.get(row.resource_id), row.dated, now),
            problem_of(
                service,
                candidates.get(row.resource_id),
                calendars.get(row.resource_id),
                row.dated,
                now,
            ),
        )
        for row in rows
    ]


def count_booked(calendar: Calendar | None, dated: DatedStart, now: int) -> int:
    """Return the number of places that are sold at a date."""
    return sum(
        entry.blocks(now) and _meets(dated.buffered, [entry.buffered])
        for entry in (calendar.busy if calendar else ())
    )


def problem_of(
    service: ServiceRow,
    candidate: Candidate | None,
    calendar: Calendar | None,
    dated: DatedStart,
    now: int,
) -> NoSlotReason | None:
    """Return why visitors are not offered a date, or None."""
    if dated.start <= now:
        return None
    if service.status != ACTIVE:
        return NoSlotReason.SERVICE_INACTIVE
    if candidate is None or calendar is None or candidate.resource.status != ACTIVE:
        return NoSlotReason.NO_RESOURCES
    if candidate.resource.id not in service.resource_ids:
        return NoSlotReason.NOT_BOUND
    rules = service.rules._replace(fixed_starts=True)
    query = Query(dated.start, dated.start, now)
    reason = slots.slots(rules, calendar, query).reason
    if reason in _NOT_YET:
        return None
    # The date exists, so the service has become longer.
    return NoSlotReason.DOES_NOT_FIT if reason is NoSlotReason.NO_STARTS else reason
