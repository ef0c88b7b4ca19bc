"""Arrange the absence of a member of the staff: time off, and what happens to the bookings."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.application.batches import OK, BatchSummary
from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.errors import (
    AppError,
    ConflictError,
    InsufficientScopeError,
    UnavailableError,
    ValidationError,
)
from chalicelib.core.operations import operation
from chalicelib.core.principals import ApiKeyPrincipal, Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, IfVersion, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.flows import booking_changes
from chalicelib.domains.bookings.flows.booking_changes import BookingChange
from chalicelib.domains.bookings.flows.booking_out import BookingOut
from chalicelib.domains.bookings.store import bookings
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.schedule.flows import absence_plan
from chalicelib.domains.schedule.flows.absence_plan import MAX_BOOKINGS, AbsencePlan, Proposal
from chalicelib.domains.schedule.operations.time_off import (
    Reason,
    TimeOffOut,
    TimeOffPeriod,
    read_period,
)
from chalicelib.domains.services.store import time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.engine.transactions import OutcomeUnknownError
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

MAX_DAYS = 14  # local dates of an absence
REASSIGN, MOVE, CANCEL, LEAVE = "reassign", "move", "cancel", "leave"
# Codes of outcomes with the status 200.
_DONE = {REASSIGN: "reassigned", MOVE: "moved", CANCEL: "cancelled", LEAVE: "left"}
UNCHANGED = "unchanged"  # The booking already is as the caller wants it.


class BookingNotAffectedError(ConflictError):
    """The booking has begun, or it is not one of this resource in this period any more."""

    code = "booking_not_affected"


class AbsenceChoice(Wire):
    """What to do with one booking."""

    id: Id = Field(description="Booking id.")
    action: Literal["reassign", "move", "cancel", "leave"] = Field(
        description="reassign: same time, other resource; move: other time; cancel; or leave. Of "
        "a visit (visitId), move and cancel are for all its services."
    )
    if_version: IfVersion = Field(description="Version of the preview; else it is left.")
    resource_id: Id | None = optional("For reassign, and if you like for move.")
    start_at: When | None = optional("For move: the new start.")

    @model_validator(mode="after")
    def _require_place(self) -> Self:
        if self.action == REASSIGN and self.resource_id is None:
            raise PydanticCustomError("no_resource", "expected resourceId for the action reassign")
        if self.action == MOVE and self.start_at is None:
            raise PydanticCustomError("no_start", "expected startAt for the action move")
        return self


class AbsenceArrangement(Wire):
    """Who is away and when, and what to do with the bookings."""

    resource_id: Id = Field(description="Resource id.")
    start_at: When | None = optional("Time, or first date (whole days). Default: now.")
    end_at: When | None = optional(
        f"Time, or last date. Default: the end of the first day; at most {MAX_DAYS} days."
    )
    bookings: Annotated[list[AbsenceChoice], Field(max_length=MAX_BOOKINGS)] | None = optional(
        "What to do with bookings of the preview. Others stay as they are."
    )
    time_off: bool = Field(
        default=True, description="Create time off first, so that nobody books the period."
    )
    reason: Reason | None = optional("Kept in the time off and the histories.")
    dry_run: bool = Field(default=False, description="Only report, with proposals.")


class AbsenceColleague(Wire):
    """A resource that can take a booking."""

    id: Id = Field(description="Resource id.")
    name: str = Field(description="Name of the resource.")


class AbsenceOtherTime(Wire):
    """The next time at which a booking could take place."""

    start_at: Timestamp = Field(description="Start, in UTC.")
    start_local: str = Field(description="Start with the offset of the resource's zone.")
    resource_id: Id = Field(description="Resource id.")
    resource_name: str = Field(description="Name of the resource.")


class AbsenceOutcome(Wire):
    """What happened to a booking."""

    status: int = Field(description="200, or the HTTP status of the failure.")
    code: str = Field(
        description="reassigned, moved, cancelled, left, unchanged or an error code. Stable."
    )
    message: str = Field(description="The code, or why the booking was left.")
    key: str | None = Field(default=None, description="Key of the error, or null. Stable.")
    reason: str | None = Field(
        default=None, description="For slot_unavailable: why the time cannot be booked, or null."
    )


class AbsenceBooking(Wire):
    """A booking of the absent resource."""

    id: Id = Field(description="Booking id.")
    booking: BookingOut | None = Field(description="The booking now, or null if there is none.")
    same_time: list[AbsenceColleague] = Field(
        description=f"dryRun: up to {absence_plan.MAX_COLLEAGUES} who are free at its time, the "
        "least busy first."
    )
    other_time: AbsenceOtherTime | None = Field(
        description=f"dryRun: if nobody is, the next free time within {absence_plan.SEARCHED_DAYS} "
        "days after the period, or null."
    )
    proposal: Literal["reassign", "move", "cancel"] | None = Field(
        description="dryRun: what can be done; null otherwise."
    )
    outcome: AbsenceOutcome | None = Field(description="What was done; null for dryRun.")


class AbsenceArranged(Wire):
    """The time off, and the bookings of the period."""

    start_at: Timestamp = Field(description="Start of the period, in UTC.")
    end_at: Timestamp = Field(description="End of the period, in UTC.")
    timezone: str = Field(description="IANA zone of the resource.")
    time_off: TimeOffOut | None = Field(
        description="Time off that covers the period, made now or before, or null."
    )
    bookings: list[AbsenceBooking] = Field(
        description=f"dryRun: the first {MAX_BOOKINGS} bookings that have not begun, by start; "
        "else one per choice, in its order."
    )
    total: int = Field(description="Bookings of the period that have not begun, at the end.")
    summary: BatchSummary = Field(description="Counts of the outcomes.")


class _Absence(NamedTuple):
    """Who is away and when, and the time off for it."""

    resource: ResourceRow
    span: Span
    time_off: TimeOff | None

    def arranged(self, ctx: Context, shown: list[AbsenceBooking], total: int) -> AbsenceArranged:
        row = (
            time_off.find(ctx.workspace_id, time_off_id=self.time_off.id) if self.time_off else None
        )
        return AbsenceArranged(
            start_at=clock.moment_at(self.span.start),
            end_at=clock.moment_at(self.span.end),
            timezone=self.resource.timezone,
            time_off=TimeOffOut.from_record(row) if row else None,
            bookings=shown,
            total=total,
            summary=BatchSummary.from_outcomes([each.outcome for each in shown if each.outcome]),
        )


@operation(
    rest="POST /api/resources/arrange-absence",
    scope=Scope.BOOKINGS_WRITE,
    title="Arrange an absence",
    idempotent=True,
    accepts_idempotency_key=True,
    destructive=True,
    example={
        "resourceId": "RESOURCE_ID",
        "startAt": "2027-01-20",
        "endAt": "2027-01-21",
        "reason": "Sick",
    },
    errors=(InsufficientScopeError,),
    role=Role.MANAGER,
)
def arrange_absence(ctx: Context, args: AbsenceArrangement) -> AbsenceArranged:
    """Give a resource time off, and hand over, move or cancel its bookings, each separately.

    Try dryRun first: it lists the bookings with proposals. Time off needs services:write, too.
    Bookings without a choice stay. A repeated call continues where the first one stopped.
    """
    if args.time_off:
        _require_scope_of_time_off(ctx)
    choices = args.bookings or []
    if len({choice.id for choice in choices}) < len(choices):
        raise ValidationError.of("bookings", message="expected every booking once", key="duplicate")
    absent = RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    period = _read_period(args, absent.timezone)
    span = period.span(absent.timezone)
    if args.dry_run:
        covering = _covering(
            absent, span, time_off.overlapping(ctx.workspace_id, span.start, last_ms=span.end)
        )
        return _preview(ctx, _Absence(absent, span, covering))
    # First of all, so that nobody books the period while its bookings are changed.
    covering = _create_time_off(ctx, args, period) if args.time_off else None
    own = Counter[str]()
    outcomes = [_carry_out(ctx, args, choice, span, own) for choice in choices]
    return _result(ctx, _Absence(absent, span, covering), choices, outcomes)


def _require_scope_of_time_off(ctx: Context) -> None:
    principal, scope = ctx.principal, Scope.SERVICES_WRITE
    if isinstance(principal, ApiKeyPrincipal) and scope not in principal.scopes:
        msg = (
            f"Time off needs the scope {scope}, which this key does not have. Use another key, or "
            "send timeOff: false."
        )
        raise InsufficientScopeError(msg, details={"scope": scope})


def _read_period(args: AbsenceArrangement, timezone: str) -> TimeOffPeriod:
    now = clock.now()
    start: date = args.start_at or now.replace(second=0, microsecond=0)
    end: date = args.end_at or clock.local_day(clock.moment_of(start, timezone), timezone)
    period = read_period(start, end, timezone)
    first, last = map(clock.moment_at, period.span(timezone))
    if last <= now:
        raise ValidationError.of("endAt", message="expected a time in the future", key="past")
    days = zoned_times.count_of_days(
        first, last=last - timedelta(milliseconds=1), timezone=timezone
    )
    if days > MAX_DAYS:
        message = f"expected at most {MAX_DAYS} days between startAt and endAt, received {days}"
        raise ValidationError.of("endAt", message=message, key="too_long")
    return period


def _covering(absent: ResourceRow, span: Span, absences: Sequence[TimeOff]) -> TimeOff | None:
    # What has passed of the period needs no time off.
    start = max(span.start, clock.epoch_ms(clock.now()))
    for absence in absences:
        away = absence.span(absent.timezone)
        if absence.applies_to(absent.id) and away.start <= start and away.end >= span.end:
            return absence
    return None


def _create_time_off(
    ctx: Context, args: AbsenceArrangement, period: TimeOffPeriod
) -> TimeOff | None:
    """Create time off, unless there is some that covers the period, and return either."""

    def stage(unit: UnitOfWork) -> bytes:
        # The creation of other time off changes the resource, which is read before the time off and
        # saved. So two calls at the same time create one.
        resource = RESOURCES.require(unit.workspace_id, record_id=args.resource_id)
        span = period.span(resource.timezone)
        existing = _covering(
            resource, span, time_off.overlapping(unit.workspace_id, span.start, last_ms=span.end)
        )
        if existing is not None:
            return existing.id.encode()
        row = time_off.new_row(
            unit.workspace_id,
            resource.id,
            moments=period.moments,
            days=period.days,
            reason=args.reason,
        )
        time_off.stage_creation(unit, row, resource)
        return str(row.id).encode()

    # Committed separately: a booking made at the same time either reads the time off or is found
    # below.
    created_id = ctx.unit.commit_batch("time-off", stage).decode()
    row = time_off.find(ctx.workspace_id, time_off_id=created_id)
    return row.time_off if row else None


def _carry_out(
    ctx: Context,
    args: AbsenceArrangement,
    choice: AbsenceChoice,
    span: Span,
    own: Counter[str],
) -> AbsenceOutcome:
    """Change one booking in a transaction of its own, and return what happened.

    ``own`` counts by visit what this call has changed before: each change raises the versions of
    all its bookings.
    """
    if choice.action == LEAVE:
        return _done(LEAVE)

    def stage(unit: UnitOfWork) -> bytes:
        booking = BOOKINGS.require(unit.workspace_id, record_id=choice.id)
        if _is_done(booking, choice):
            return UNCHANGED.encode()
        _require_affected(booking, args.resource_id, span)
        booking.require_version(choice.if_version + own[booking.visit_id or ""])
        if choice.action == REASSIGN and choice.resource_id:
            absence_plan.require_at_work(unit, booking, choice.resource_id)
        booking_changes.change(unit, booking, _change(ctx, args, choice))
        return f"{choice.action} {booking.visit_id or ''}".encode()

    try:
        action, *visit_ids = ctx.unit.commit_batch(f"booking {choice.id}", stage).decode().split()
    except OutcomeUnknownError:
        raise
    except AppError as error:
        # With an idempotency key, the call is repeated and continues here.
        if isinstance(error, UnavailableError) and ctx.unit.is_repeatable:
            raise
        return AbsenceOutcome(
            status=error.status,
            code=error.code,
            message=ctx.naming(error.message),
            key=error.first_key,
            reason=error.details.get("reason") if error.details else None,
        )
    own.update(visit_ids)
    return _done(action)


def _done(action: str) -> AbsenceOutcome:
    code = _DONE.get(action, UNCHANGED)
    return AbsenceOutcome(status=OK, code=code, message=code)


def _is_done(booking: BookingRow, choice: AbsenceChoice) -> bool:
    # A repeated call finds what the first one has changed.
    if choice.action == CANCEL:
        return bool(booking.status == "cancelled")
    if booking.status not in bookings.UPCOMING:
        return False
    if choice.action == REASSIGN:
        return bool(booking.resource_id == choice.resource_id)
    start = clock.moment_of(choice.start_at, booking.timezone) if choice.start_at else None
    return start == booking.starts_at and choice.resource_id in {None, booking.resource_id}


def _require_affected(booking: BookingRow, resource_id: str, span: Span) -> None:
    busy = booking.busy
    is_in_period = busy.start < span.end and busy.end > span.start
    if booking.resource_id != resource_id or not is_in_period or not bookings.is_upcoming(booking):
        msg = (
            "expected a booking of this resource in this period that has not begun; it was changed "
            "or has begun since the preview. Preview the absence again."
        )
        raise BookingNotAffectedError(msg)


def _change(ctx: Context, args: AbsenceArrangement, choice: AbsenceChoice) -> BookingChange:
    change = BookingChange(actor=ctx.principal.audit_actor, reason=args.reason or None)
    match choice.action:
        case "reassign":
            # The client has the time already, so the rules of new bookings do not apply. Hours and
            # time off of the colleague were checked.
            return change._replace(resource_id=choice.resource_id, ignores_schedule=True)
        case "move":
            return change._replace(start=choice.start_at, resource_id=choice.resource_id)
        case _:
            return change._replace(status="cancelled")


def _preview(ctx: Context, absence: _Absence) -> AbsenceArranged:
    absent, span = absence.resource, absence.span
    rows, total = absence_plan.affected(ctx.workspace_id, absent.id, span, MAX_BOOKINGS)
    plan = AbsencePlan.read(ctx.workspace_id, absent, span, rows)
    return absence.arranged(ctx, [_proposed(proposal) for proposal in plan.propose(rows)], total)


def _proposed(proposal: Proposal) -> AbsenceBooking:
    other, other_time = proposal.other_time, None
    if other is not None:
        start = clock.moment_at(other.start)
        other_time = AbsenceOtherTime(
            start_at=start,
            start_local=zoned_times.local_time(start, other.resource.timezone).text,
            resource_id=other.resource.id,
            resource_name=other.resource.name,
        )
    return AbsenceBooking(
        id=proposal.booking.id,
        booking=BookingOut.from_record(proposal.booking),
        same_time=[
            AbsenceColleague(id=resource.id, name=resource.name) for resource in proposal.colleagues
        ],
        other_time=other_time,
        proposal="reassign" if proposal.colleagues else "move" if other_time else "cancel",
        outcome=None,
    )


def _result(
    ctx: Context,
    absence: _Absence,
    choices: Sequence[AbsenceChoice],
    outcomes: Sequence[AbsenceOutcome],
) -> AbsenceArranged:
    rows = {row.id: row for row in BOOKINGS.fetch(ctx.workspace_id, [each.id for each in choices])}
    shown = [
        AbsenceBooking(
            id=choice.id,
            booking=BookingOut.from_record(rows[choice.id]) if choice.id in rows else None,
            same_time=[],
            other_time=None,
            proposal=None,
            outcome=outcome,
        )
        for choice, outcome in zip(choices, outcomes, strict=True)
    ]
    _, total = absence_plan.affected(
        ctx.workspace_id, absence.resource.id, absence.span, MAX_BOOKINGS
    )
    return absence.arranged(ctx, shown, total)
