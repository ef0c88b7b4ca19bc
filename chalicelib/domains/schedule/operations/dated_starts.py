"""Add, list and remove the dates of services that are offered on dates only (ADR 141)."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Self

from pydantic import Field

from chalicelib.application.batches import OK, BatchSummary
from chalicelib.application.context import Context
from chalicelib.core import clock, retry
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import (
    AppError,
    ConflictError,
    InsufficientScopeError,
    NotFoundError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.operations import operation
from chalicelib.core.principals import ApiKeyPrincipal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import ListResult, WholePageQuery
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking_changes, placement, slot_search
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.placement import SlotRequest
from chalicelib.domains.bookings.rules.slots import NoSlotReason
from chalicelib.domains.bookings.store import booked_times, bookings, start_days
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.bookings.store.calendar_days import CalendarDays
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.schedule.flows import start_planning
from chalicelib.domains.schedule.flows.start_planning import DateState
from chalicelib.domains.schedule.operations.absences import AbsenceOutcome
from chalicelib.domains.schedule.operations.time_off import Reason
from chalicelib.domains.services.store import dated_starts, opening_hours, resources, time_off
from chalicelib.domains.services.store.dated_starts import DatedStartRow
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

# Of one call. Each date writes up to four rows of one transaction, which has 100 at most.
MAX_WEEKS = 20
MAX_CANCELLED = 50  # bookings of one call
MAX_IDS = 1000  # bookings of a resource at one time; no capacity is larger

Weeks = Annotated[int, Field(ge=1, le=MAX_WEEKS)]


class StartUnavailableError(ConflictError):
    """No date can be added: ``reason`` of the first one, at ``startAt``.

    The reason is closed, time_off, other_date or booked.
    """

    code = "start_unavailable"


class StartHasBookingsError(ConflictError):
    """The dates have bookings and cannot be removed: ``bookings`` is their number."""

    code = "start_has_bookings"


class StartsQuery(WholePageQuery):
    """Service and period of a list of dates."""

    service_id: Id = Field(description="Service id.")
    from_: When | None = Field(
        default=None, alias="from", description="ISO 8601 or a date, inclusive; default: now."
    )
    to: When | None = optional("Inclusive. Default: no end.")


class StartOut(Wire):
    """A date of a service, and how many of its places are sold."""

    service_id: Id = Field(description="Service id.")
    resource_id: Id = Field(description="Resource id, whose capacity is the number of places.")
    resource_name: str | None = Field(description="Name of the resource, or null: deleted.")
    start_at: Timestamp = Field(description="Start, in UTC.")
    end_at: Timestamp = Field(description="End, in UTC.")
    start_local: str = Field(description="Start with the offset of the resource's zone.")
    weekday: str = Field(description="mon to sun, in that zone.")
    places: int = Field(description="Places in all: the capacity of the resource.")
    booked: int = Field(description="Places that are booked, unpaid holds included.")
    problem: NoSlotReason | None = Field(
        description="Why visitors are not offered it, or null, also if it is full or has begun. "
        "does_not_fit: the service is longer now; add the date again."
    )

    @classmethod
    def from_state(cls, state: DateState, zone: str) -> Self:
        resource = state.candidate.resource if state.candidate else None
        dated = state.row.dated
        local = zoned_times.local_time(
            clock.moment_at(dated.start), resource.timezone if resource else zone
        )
        return cls(
            service_id=dated.service_id,
            resource_id=state.row.resource_id,
            resource_name=resource.name if resource else None,
            start_at=clock.moment_at(dated.start),
            end_at=clock.moment_at(dated.end),
            start_local=local.text,
            weekday=local.weekday,
            places=int(resource.capacity) if resource else 0,
            booked=state.booked,
            problem=state.problem,
        )


class StartList(ListResult):
    """Dates of a service, by start."""

    starts: list[StartOut] = Field(description="The dates of this page, by start.")


class WeeklyStarts(Wire):
    """A date of a service, or the same weekday and local time for some weeks."""

    service_id: Id = Field(description="Id of a service with fixedStarts.")
    resource_id: Id | None = optional("One of the service's resources. Default: its only one.")
    start_at: When = Field(description="Start of the first date.")
    weeks: Weeks = Field(default=1, description="Number of dates, one a week.")


class RefusedStart(Wire):
    """A date that was not added."""

    start_at: Timestamp = Field(description="Start, in UTC.")
    reason: Literal["closed", "time_off", "other_date", "booked"] = Field(
        description="closed: outside the opening hours; time_off: time off, or busy in the own "
        "calendar; other_date: the resource is there for another date; booked: it has bookings."
    )


class StartsAdded(Wire):
    """The dates that a service has now, and those that it could not get."""

    starts: list[StartOut] = Field(description="The dates, new or there before.")
    refused: list[RefusedStart] = Field(description="Dates that were not added.")


class StartsRemoval(WeeklyStarts):
    """Dates to remove."""

    cancel_bookings: bool = Field(
        default=False, description="Cancel their bookings, each separately; needs bookings:write."
    )
    reason: Reason | None = optional("Kept in the histories of the bookings.")
    dry_run: bool = Field(default=False, description="Only report.")


class StartBooking(Wire):
    """A booking of a date that was removed."""

    id: Id = Field(description="Booking id.")
    outcome: AbsenceOutcome | None = Field(description="What was done; null for dryRun.")


class StartsRemoved(Wire):
    """The dates that a service has no more, and what happened to their bookings."""

    removed: list[Timestamp] = Field(description="Starts of the dates, in UTC.")
    bookings: list[StartBooking] = Field(
        description=f"Upcoming bookings of the dates, at most {MAX_CANCELLED}."
    )
    total: int = Field(description="Upcoming bookings of the dates that are left.")
    summary: BatchSummary = Field(description="Counts of the outcomes.")


@operation(
    rest="GET /api/services/starts",
    scope=Scope.SERVICES_READ,
    title="List the dates of a service",
    example={"serviceId": "CLASS_ID", "from": "2027-01-01"},
    role=Role.MEMBER,
)
def list_starts(ctx: Context, args: StartsQuery) -> StartList:
    """List the dates on which a service with fixedStarts is offered, with the places sold."""
    service = SERVICES.require(ctx.workspace_id, record_id=args.service_id)
    zone = periods.zone_of_workspace(ctx)
    rows = dated_starts.between(
        ctx.workspace_id,
        service_id=service.id,
        first_ms=epoch_ms(clock.moment_of(args.from_, zone) if args.from_ else clock.now()),
        last_ms=epoch_ms(clock.moment_of(args.to, zone, end=True))
        if args.to
        else dated_starts.LATEST,
    )
    states = start_planning.read_states(ctx.workspace_id, service, rows[args.rows])
    return StartList(
        starts=[StartOut.from_state(state, zone) for state in states], **args.counted(len(rows))
    )


@operation(
    rest="POST /api/services/starts",
    scope=Scope.SERVICES_WRITE,
    title="Add dates to a service",
    idempotent=True,
    example={"serviceId": "CLASS_ID", "startAt": "2027-03-15T12:00", "weeks": 4},
    errors=(StartUnavailableError,),
    role=Role.MANAGER,
)
def add_starts(ctx: Context, args: WeeklyStarts) -> StartsAdded:
    """Offer a service with fixedStarts on a date, or weekly. Its resource is then there for it.

    The capacity of the resource is the number of places. A date lies in its opening hours, outside
    time off, and apart from its other dates and bookings. Dates that do not are refused.
    """
    unit = ctx.unit
    # All bookings of a day write the same calendar row, so conflicts are expected.
    unit.retry_policy = retry.high_contention()
    service, resource, hours = _read_place(unit, args)
    if not service.fixed_starts:
        message = "expected a service that is offered on dates only; set fixedStarts first"
        raise ValidationError.of("serviceId", message=message, key="no_fixed_starts")
    moments = _moments(args, resource)
    wanted = start_planning.starts_of(service, resource.id, moments)
    spans = [(resource.id, dated.buffered) for dated in wanted]
    off = time_off.read_checked(unit, Span(wanted[0].start, wanted[-1].end))
    days = CalendarDays(unit.workspace_id, spans, unit.rows)
    candidate = slot_search.Candidate(resource, hours)
    calendar = candidate.calendar(days.of(resource.id), off.periods)
    plan = start_planning.plan(calendar, wanted, epoch_ms(clock.now()), unit.workspace_id)
    if not plan.added:
        _refuse(plan.refused[0])
    start_days.stage(unit, days, [(resource.id, dated) for dated in plan.added])
    dated_starts.note_addition(unit)
    # The service must not be deleted, unbound or made longer in the meantime.
    unit.require(service, ServiceRow.version == service.version)
    resources.require_unchanged(unit, resource)
    off.require_unchanged(unit)
    opening_hours.require_hours_unchanged(unit, resource.id, hours)
    now = epoch_ms(clock.now())
    states = [
        DateState(
            DatedStartRow.of(unit.workspace_id, resource.id, dated),
            candidate,
            start_planning.count_booked(calendar, dated, now),
            start_planning.problem_of(
                service, candidate, calendar._replace(starts=plan.added), dated, now
            ),
        )
        for dated in plan.added
    ]
    return StartsAdded(
        starts=[StartOut.from_state(state, resource.timezone) for state in states],
        refused=[
            RefusedStart.model_validate(
                {"startAt": clock.moment_at(each.start), "reason": each.reason}
            )
            for each in plan.refused
        ],
    )


@operation(
    rest="POST /api/services/remove-starts",
    scope=Scope.SERVICES_WRITE,
    title="Remove dates of a service",
    idempotent=True,
    accepts_idempotency_key=True,
    destructive=True,
    example={"serviceId": "CLASS_ID", "startAt": "2027-03-16T12:00"},
    errors=(StartHasBookingsError, InsufficientScopeError),
    role=Role.MANAGER,
)
def remove_starts(ctx: Context, args: StartsRemoval) -> StartsRemoved:
    """Remove dates of a service, so that they cannot be booked and their resource is free again.

    Dates with bookings need cancelBookings (else 409 start_has_bookings): first the dates go, then
    each booking is cancelled as if alone, and everyone is told. A repeated call continues.
    """
    if args.cancel_bookings:
        _require_scope_of_bookings(ctx)
    service, resource, _ = _read_place(ctx.unit, args, is_removal=True)
    moments = _moments(args, resource)
    at = _Dates(service, resource, moments)
    if args.dry_run:
        found = _fetch_rows(ctx.unit, at)
        ids = _upcoming(ctx, at)
        return _removed([row.starts_at for row in found], ids, [], len(ids))

    def stage(unit: UnitOfWork) -> bytes:
        unit.retry_policy = retry.high_contention()
        found = _fetch_rows(unit, at)
        spans = [(row.resource_id, row.dated.buffered) for row in found]
        days = CalendarDays(unit.workspace_id, spans, unit.rows)
        if not args.cancel_bookings:
            _require_no_bookings(days, resource, found)
        start_days.stage_removal(unit, days, found)
        return " ".join(str(row.dated.start) for row in found).encode()

    if args.cancel_bookings:
        # First of all and in a transaction of its own, so that nobody books a place meanwhile.
        removed = ctx.unit.commit_batch("dates", stage).decode().split()
        ids = _upcoming(ctx, at)
    else:
        removed, ids = stage(ctx.unit).decode().split(), []
    if not removed and not ids:
        raise _not_found()
    outcomes = [_cancel(ctx, booking_id, args.reason) for booking_id in ids[:MAX_CANCELLED]]
    left = _upcoming(ctx, at) if ids else []
    starts = [clock.moment_at(int(start)) for start in removed]
    return _removed(starts, ids, outcomes, len(left))


class _Dates(NamedTuple):
    service: ServiceRow
    resource: ResourceRow
    moments: Sequence[int]


def _read_place(
    unit: UnitOfWork, args: WeeklyStarts, *, is_removal: bool = False
) -> tuple[ServiceRow, ResourceRow, Any]:
    """Return the service, the resource and its opening hours."""
    key = SERVICES.key(unit.workspace_id, record_id=args.service_id)
    service = SERVICES.found(unit.rows.find(ServiceRow, key))
    resource_id = args.resource_id or (
        service.resource_ids[0] if len(service.resource_ids) == 1 else None
    )
    if resource_id is None:
        message = "is required, because the service is not bound to exactly one resource"
        raise ValidationError.of("resourceId", message=message, key="required")
    found = opening_hours.find_with_schedules(unit.workspace_id, [resource_id], unit.rows)
    if not found:
        raise RESOURCES.not_found()
    # The dates of a resource that was unbound can still be removed.
    if resource_id not in service.resource_ids and not is_removal:
        message = f"expected one of the service's resources, received {resource_id}. Bind it first"
        raise ValidationError.of("resourceId", message=message, key="not_bound")
    return service, *found[0]


def _moments(args: WeeklyStarts, resource: ResourceRow) -> list[int]:
    zone = resource.timezone
    zones = slot_search.Zones(None, zone, frozenset({zone}), zone)
    start = placement.moment_of(SlotRequest(args.start_at, resource.id), zones)
    if start <= epoch_ms(clock.now()):
        message = f"expected a time in the future, received {args.start_at}"
        raise ValidationError.of("startAt", message=message, key="past")
    return start_planning.weekly(start, args.weeks, zone)


_REFUSALS = {
    "closed": "it is outside the resource's opening hours. Change them, or choose another time",
    "time_off": "the resource has time off, or is busy in its own calendar. Choose another time",
    "other_date": "the resource is there for another date then. Choose another time or resource",
    "booked": "the resource has bookings then. Move them, or choose another time",
}


def _refuse(refusal: start_planning.Refusal) -> NoReturn:
    start = clock.iso(clock.moment_at(refusal.start))
    msg = f"No date was added. {start} is not possible: {_REFUSALS[refusal.reason]}."
    raise StartUnavailableError(msg, details={"reason": refusal.reason, "startAt": start})


def _fetch_rows(unit: UnitOfWork, at: _Dates) -> list[DatedStartRow]:
    keys = (
        dated_starts.key(
            unit.workspace_id, service_id=at.service.id, start=start, resource_id=at.resource.id
        )
        for start in at.moments
    )
    return [row for row in unit.rows.fetch(keys) if isinstance(row, DatedStartRow)]


def _require_no_bookings(
    days: CalendarDays, resource: ResourceRow, rows: Iterable[DatedStartRow]
) -> None:
    calendar = slot_search.Candidate(resource).calendar(days.of(resource.id), ())
    now = epoch_ms(clock.now())
    count = sum(start_planning.count_booked(calendar, row.dated, now) for row in rows)
    if count:
        msg = (
            f"The dates have {count} booking(s). Move or cancel them, or send cancelBookings: true "
            "to remove the dates and cancel these bookings. The clients are told."
        )
        raise StartHasBookingsError(msg, details={"bookings": count})


def _upcoming(ctx: Context, at: _Dates) -> list[str]:
    # Bookings of the service at the dates, also if the dates were removed before.
    ids: list[str] = []
    for start in at.moments:
        found = booked_times.blocking_between(
            ctx.workspace_id, [at.resource.id], start, last_ms=start + 1, limit=MAX_IDS
        )
        rows = BOOKINGS.fetch(ctx.workspace_id, found.ids)
        ids += [row.id for row in rows if _is_at(row, at.service, start)]
    return ids


def _is_at(row: BookingRow, service: ServiceRow, start: int) -> bool:
    return (
        row.service_id == service.id
        and epoch_ms(row.starts_at) == start
        and bookings.is_upcoming(row)
    )


def _cancel(ctx: Context, booking_id: str, reason: str | None) -> AbsenceOutcome:
    """Cancel one booking in a transaction of its own, and return what happened."""

    def stage(unit: UnitOfWork) -> bytes:
        booking = BOOKINGS.require(unit.workspace_id, record_id=booking_id)
        if not bookings.is_upcoming(booking):
            return b"unchanged"
        change = BookingChange(
            actor=ctx.principal.audit_actor, status="cancelled", reason=reason or None
        )
        booking_changes.change(unit, booking, change)
        return b"cancelled"

    try:
        code = ctx.unit.commit_batch(f"booking {booking_id}", stage).decode()
    except OutcomeUnknownError:
        raise
    except AppError as error:
        # With an idempotency key, the call is repeated and continues here.
        if isinstance(error, UnavailableError) and ctx.unit.is_repeatable:
            raise
        message = ctx.naming(error.message)
        return AbsenceOutcome(
            status=error.status, code=error.code, message=message, key=error.first_key
        )
    return AbsenceOutcome(status=OK, code=code, message=code)


def _removed(
    starts: Sequence[Any], ids: Sequence[str], outcomes: Sequence[AbsenceOutcome], left: int
) -> StartsRemoved:
    shown = [
        StartBooking(id=booking_id, outcome=outcomes[number] if number < len(outcomes) else None)
        for number, booking_id in enumerate(ids[:MAX_CANCELLED])
    ]
    return StartsRemoved(
        removed=list(starts),
        bookings=shown,
        total=left,
        summary=BatchSummary.from_outcomes(outcomes),
    )


def _require_scope_of_bookings(ctx: Context) -> None:
    principal, scope = ctx.principal, Scope.BOOKINGS_WRITE
    if isinstance(principal, ApiKeyPrincipal) and scope not in principal.scopes:
        msg = (
            f"Cancelling bookings needs the scope {scope}, which this key does not have. Use "
            "another key, or leave out cancelBookings."
        )
        raise InsufficientScopeError(msg, details={"scope": scope})


def _not_found() -> NotFoundError:
    return NotFoundError.of("date", plural="the dates", listed_by="list_starts", key="start")
