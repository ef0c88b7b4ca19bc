"""Search for the times of a visit: several services, one after another (ADR 139)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from chalicelib.core.errors import ValidationError
from chalicelib.core.wire.schema import Id
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.slot_search import Candidates, Search, VisitPart
from chalicelib.domains.bookings.rules.slots import NoSlotReason
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import MAX_IN_VISIT, MAX_LENGTH, BookingRow
from chalicelib.domains.services.rules.booking_rules import Length, ServiceRules
from chalicelib.domains.services.rules.offers import Offer
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.reading import Rows

AndThen = Annotated[list[Id], Field(max_length=MAX_IN_VISIT - 1)]
"""Ids of the services that follow the first one in a visit."""


def services_of(
    workspace_id: str, service_id: str, and_then: Sequence[str], rows: Rows
) -> list[ServiceRow]:
    """Return the services of a visit in order, each as often as it is named.

    Raises NotFoundError for a service that does not exist.
    """
    keys = [SERVICES.key(workspace_id, record_id=each) for each in (service_id, *and_then)]
    rows.read(keys)
    return [SERVICES.found(rows.find(ServiceRow, key)) for key in keys]


def search(
    workspace_id: str,
    services: Sequence[ServiceRow],
    resource_id: str | None,
    rows: Rows | None = None,
) -> Search:
    """Return the search for one service, or for a visit of several."""
    if len(services) == 1:
        return Search.create(workspace_id, services[0], resource_id, rows=rows)
    return create(workspace_id, services, resource_id, rows)


def create(
    workspace_id: str,
    services: Sequence[ServiceRow],
    resource_id: str | None,
    rows: Rows | None = None,
) -> Search:
    """Return the search for a visit. A named resource does every service that it is bound to.

    Raises:
        NotFoundError: the resource does not exist.
        ValidationError: a service is offered on dates only, which nothing can follow at once.
    """
    for service in services:
        if service.fixed_starts:
            message = (
                f"expected services that can follow one another, but {service.name} has fixed "
                "dates. Book it alone"
            )
            raise ValidationError.of("andThen", message=message, key="fixed_starts")
    rows = rows or Rows()
    ids = {each for service in services for each in service.resource_ids}
    rows.read(opening_hours.keys_with_schedules(workspace_id, ids))
    is_bound = resource_id is not None and resource_id in ids
    parts = []
    for service in services:
        # A resource that does none of the services is refused, as for one service.
        is_named = not is_bound or resource_id in service.resource_ids
        named = resource_id if is_named else None
        candidates = Candidates.read(workspace_id, service, named, rows=rows)
        parts.append(VisitPart(service, candidates, service.rules))
    return _search(workspace_id, parts)


def create_for_move(
    workspace_id: str,
    group: Sequence[BookingRow],
    resource_ids: Sequence[str | None],
    *,
    named: BookingRow,
    rows: Rows | None = None,
) -> Search:
    """Return the search for another time of bookings of a visit, each with one resource.

    Their lengths and the pauses between them stay, but one that gets another resource takes the
    length with it. None is a booking's present resource, or any if that does not exist any more.
    The slots are those of the ``named`` booking.
    """
    rows = rows or Rows()
    keys = [SERVICES.key(workspace_id, record_id=booking.service_id) for booking in group]
    present = {booking.resource_id for booking in group}
    rows.read([*keys, *opening_hours.keys_with_schedules(workspace_id, present)])
    found = opening_hours.find_with_schedules(workspace_id, present, rows)
    existing = {resource.id for resource, _ in found}
    parts = []
    for booking, pause_min, requested in zip(group, pauses(group), resource_ids, strict=True):
        service = slot_search.service_of(workspace_id, booking, rows)
        kept = booking.resource_id if booking.resource_id in existing else None
        resource_id = requested or kept
        candidates = Candidates.read(
            workspace_id,
            service,
            resource_id,
            current_resource_id=booking.resource_id,
            rows=rows,
        )
        rules = slot_search.rules_of(service, booking)
        if requested in {None, booking.resource_id}:
            rules = rules.with_resource(booking.resource_id)
        parts.append(VisitPart(service, candidates, rules, pause_min))
    search = _search(workspace_id, parts)
    return search._replace(
        moving=named.id,
        moved_visit=frozenset(named.visit or ()),
        offset=minutes_between(group[0], named) * 60_000,
    )


def find_move(workspace_id: str, booking: BookingRow, resource_id: str | None) -> Search:
    """Return the search for other times of a booking with those of its visit that follow it.

    ``resource_id`` is another resource of this booking, or None for the present one.
    """
    visit = bookings.visit_of(workspace_id, booking)
    group = [each for each in visit if each.status == booking.status]
    ids = [resource_id if each is booking else None for each in group]
    return create_for_move(workspace_id, group, ids, named=booking)


def require_fit(services: Sequence[ServiceRow], resource_id: str | None) -> None:
    """Raise ValidationError for a visit that is longer than a day, or may be with some resource.

    A named resource does every service that it is bound to.
    """
    if len(services) == 1:
        return
    total = sum(
        service.rules.with_resource(resource_id).duration_min
        if resource_id in service.resource_ids and resource_id is not None
        else service.rules.longest_min
        for service in services
    )
    maximum = int(MAX_LENGTH.total_seconds() / 60)
    if total > maximum:
        message = f"expected services of at most {maximum} minutes in all, received {total}"
        raise ValidationError.of("andThen", message=message)


def offers_of(search: Search) -> list[list[Offer]]:
    """Return the offers of each service with the resources that a search knows as active."""
    parts = search.parts or [VisitPart(search.service, search.candidates, search.rules)]
    return [
        part.service.offers([candidate.resource.id for candidate in part.candidates.active])
        for part in parts
    ]


def pauses(group: Sequence[BookingRow]) -> list[int]:
    """Return the minutes from the end of each booking to the start of the next one."""
    between = [
        int((after.starts_at - booking.ends_at).total_seconds() // 60)
        for booking, after in pairwise(group)
    ]
    return [*between, 0]


def minutes_between(first: BookingRow, then: BookingRow) -> int:
    """Return the minutes from the start of a booking to that of another one."""
    return int((then.starts_at - first.starts_at).total_seconds() // 60)


def _search(workspace_id: str, parts: Sequence[VisitPart]) -> Search:
    active = {
        candidate.resource.id: candidate for part in parts for candidate in part.candidates.active
    }
    bound = {resource.id: resource for part in parts for resource in part.candidates.bound}
    reason = NoSlotReason.NO_RESOURCES if not active else None
    first = parts[0]
    return Search(
        workspace_id,
        first.service,
        Candidates(list(active.values()), list(bound.values()), reason),
        hull(parts),
        parts=tuple(parts),
    )


def hull(parts: Sequence[VisitPart]) -> ServiceRules:
    """Return the rules for reading calendars, and what lists of slots say of a whole visit."""
    rules = [part.rules for part in parts]
    pause_min = sum(part.pause_min for part in parts)
    own, longest = (
        sum(lengths) + pause_min
        for lengths in (
            [each.duration_min for each in rules],
            [each.longest_min for each in rules],
        )
    )
    ids = {candidate.resource.id for part in parts for candidate in part.candidates.active}
    return rules[0]._replace(
        duration_min=own,
        # Each calendar is read for the visit that takes the longest.
        lengths=dict.fromkeys(ids, Length(longest, rules[0].step_min)) if longest > own else {},
        buffer_before_min=max(each.buffer_before_min for each in rules),
        buffer_after_min=max(each.buffer_after_min for each in rules),
        min_notice_min=max(each.min_notice_min for each in rules),
        horizon_days=min(each.horizon_days for each in rules),
    )
