"""List, create and delete periods when a resource or a workspace cannot be booked."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Annotated, NamedTuple, Self, cast

from pydantic import Field, StringConstraints
from pydantic_core import from_json

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.clock import epoch_ms, iso
from chalicelib.core.errors import NotFoundError, ValidationError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.lists import MAX_WHOLE, ListResult, WholePageQuery
from chalicelib.core.wire.schema import DeletedResult, Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import When
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.services.store import time_off
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.domains.services.store.time_off import TimeOff, TimeOffRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

MAX_AFFECTED = 100  # bookings within new time off in the response

Reason = Annotated[str, StringConstraints(max_length=500)]


class TimeOffOut(Wire):
    """Time off: a period when a resource, or the whole workspace, cannot be booked."""

    id: Id = Field(description="Time off id.")
    resource_id: Id | None = Field(description="Resource id, or null: the whole workspace.")
    start_at: str = Field(description="Start, or the first date if allDay.")
    end_at: str = Field(description="End, or the last date, inclusive, if allDay.")
    all_day: bool = Field(description="Whether it has whole dates, in each resource's own zone.")
    reason: str | None = Field(description="Reason, or null.")
    created_at: Timestamp = Field(description="When it was created.")

    @classmethod
    def from_record(cls, row: TimeOffRow) -> Self:
        absence = row.time_off
        start, end = _wire_times(absence)
        return cls.from_row(
            row.attribute_values,
            id=absence.id,
            resource_id=absence.resource_id,
            start_at=start,
            end_at=end,
            all_day=absence.all_day,
        )


class TimeOffQuery(WholePageQuery):
    """Filters of a list of time off."""

    resource_id: Id | None = optional("Only time off of this resource.")
    from_: When | None = Field(default=None, alias="from", description="Ends after this time.")
    to: When | None = optional("Starts by then; a date: its whole day.")


class TimeOffList(ListResult):
    """Time off, sorted by start."""

    time_off: list[TimeOffOut] = Field(description="Time off, by start.")


class TimeOffCreate(Wire):
    """New time off."""

    start_at: When = Field(description="Time, or first date (whole days).")
    end_at: When = Field(description="Time, or last date.")
    resource_id: Id | None = optional("Default: all resources.")
    reason: Reason | None = optional("Reason.")


class TimeOffCreated(Wire):
    """New time off, and the bookings that it overlaps."""

    time_off: TimeOffOut = Field(description="The time off.")
    affected_bookings: list[Id] = Field(description="Bookings within it, which stay; at most 100.")
    affected_total: int = Field(description="Number of all such bookings.")


class TimeOffDelete(Wire):
    """Id of time off to delete."""

    id: Id = Field(description="Time off id.")
    dry_run: bool = Field(default=False, description="Only report.")


class TimeOffPeriod(NamedTuple):
    """Period of time off: either moments or dates."""

    moments: Span | None
    days: tuple[date, date] | None

    def span(self, timezone: str) -> Span:
        if self.days is None:
            return cast("Span", self.moments)
        return zoned_times.span_of_days(self.days[0], last=self.days[1], timezone=timezone)


@operation(
    tool=True,
    rest="GET /api/resources/time-off",
    scope=Scope.SERVICES_READ,
    title="List time off",
    example={"from": "2027-01-01"},
    role=Role.MEMBER,
)
def list_time_off(ctx: Context, args: TimeOffQuery) -> TimeOffList:
    """List past and future time off. With resourceId null, it applies to all resources."""
    resource = (
        RESOURCES.find(ctx.workspace_id, record_id=args.resource_id) if args.resource_id else None
    )
    if args.resource_id and resource is None:
        return TimeOffList(time_off=[], **args.counted(0))
    timezone = resource.timezone if resource else periods.zone_of_workspace(ctx)
    first = epoch_ms(clock.moment_of(args.from_, timezone)) if args.from_ else 0
    last = epoch_ms(clock.moment_of(args.to, timezone, end=True)) if args.to else time_off.LATEST
    absences = [
        absence
        for absence in time_off.overlapping(ctx.workspace_id, first, last_ms=last)
        if (resource is None or absence.applies_to(resource.id))
        and absence.span(timezone).start <= last
        and absence.span(timezone).end > first
    ]
    absences.sort(key=lambda absence: (absence.span(timezone), absence.id))
    if args.page == 1 and args.size == MAX_WHOLE < len(absences):
        ctx.warn(
            f"Only the first {MAX_WHOLE:,} are listed. Narrow the list with from and to.",
            code=WarningCode.LIST_TRUNCATED,
            maximum=MAX_WHOLE,
        )
    rows = time_off.find_all(ctx.workspace_id, [absence.id for absence in absences[args.rows]])
    return TimeOffList(
        time_off=list(map(TimeOffOut.from_record, rows)), **args.counted(len(absences))
    )


@operation(
    tool=True,
    rest="POST /api/resources/create-time-off",
    scope=Scope.SERVICES_WRITE,
    title="Create time off",
    example={
        "resourceId": "RESOURCE_ID",
        "startAt": "2027-05-01",
        "endAt": "2027-05-09",
        "reason": "Holidays",
    },
    role=Role.MANAGER,
)
def create_time_off(ctx: Context, args: TimeOffCreate) -> TimeOffCreated:
    """Close a resource, or all resources. Bookings are kept: see affectedBookings."""

    def stage(unit: UnitOfWork) -> bytes:
        resource = None
        if args.resource_id is not None:
            resource = RESOURCES.require(unit.workspace_id, record_id=args.resource_id)
        timezone = resource.timezone if resource else periods.zone_of_workspace(ctx)
        period = read_period(args.start_at, args.end_at, timezone)
        row = time_off.new_row(
            unit.workspace_id,
            args.resource_id,
            moments=period.moments,
            days=period.days,
            reason=args.reason,
        )
        time_off.stage_creation(unit, row, resource)
        return TimeOffOut.from_record(row).model_dump_json(by_alias=True).encode()

    # Committed separately: a booking made at the same time either reads the time off or is found
    # below.
    response = TimeOffOut.model_validate(from_json(ctx.unit.commit_batch("time-off", stage)))
    rows, key = ctx.unit.rows, time_off.key(ctx.workspace_id, time_off_id=response.id)
    resource_keys = (
        [RESOURCES.key(ctx.workspace_id, record_id=args.resource_id)] if args.resource_id else []
    )
    rows.read([key, *resource_keys])
    row = rows.find(TimeOffRow, key)
    affected = _affected(ctx, row.time_off) if row else booked_times.Blocking([], 0)
    return TimeOffCreated(
        time_off=response, affected_bookings=affected.ids, affected_total=affected.total
    )


@operation(
    tool=True,
    rest="POST /api/resources/delete-time-off",
    scope=Scope.SERVICES_WRITE,
    title="Delete time off",
    example={"id": "TIME_OFF_ID"},
    role=Role.MANAGER,
)
def delete_time_off(ctx: Context, args: TimeOffDelete) -> DeletedResult:
    """Delete time off. Its period can be booked again."""
    row = time_off.find(ctx.workspace_id, time_off_id=args.id)
    if row is None:
        raise NotFoundError.of(
            "time off", plural="the time off", listed_by="svc_list_time_off", key="time_off"
        )
    resource = RESOURCES.find(ctx.workspace_id, record_id=row.f1) if row.f1 else None
    time_off.stage_deletion(ctx.unit, row, resource)
    return DeletedResult(id=args.id, deleted=not args.dry_run)


def read_period(start: date, end: date, timezone: str) -> TimeOffPeriod:
    """Return the period between two times or dates, both inclusive, or raise ValidationError."""
    if not isinstance(start, datetime) and not isinstance(end, datetime):
        if end < start:
            raise ValidationError.of(
                "endAt",
                message=f"expected {start} or a later date, received {end}",
                key="before_start",
            )
        return TimeOffPeriod(None, (start, end))
    first = epoch_ms(clock.moment_of(start, timezone))
    last = epoch_ms(clock.moment_of(end, timezone, end=True))
    last += not isinstance(end, datetime)  # A date ends after its last millisecond.
    if last <= first:
        raise ValidationError.of(
            "endAt", message="expected a time after startAt", key="before_start"
        )
    return TimeOffPeriod(Span(first, last), None)


def _affected(ctx: Context, absence: TimeOff) -> booked_times.Blocking:
    ids, total = list[str](), 0
    for timezone, resource_ids in _resources(ctx, absence):
        start, end = absence.span(timezone)
        some = booked_times.blocking_between(
            ctx.workspace_id, resource_ids, start, last_ms=end, limit=MAX_AFFECTED
        )
        ids += some.ids
        total += some.total
    return booked_times.Blocking(ids[:MAX_AFFECTED], total)


def _resources(ctx: Context, absence: TimeOff) -> Sequence[tuple[str, list[str] | None]]:
    # None means all resources.
    workspace_id = ctx.workspace_id
    if absence.moments is not None and absence.resource_id is None:
        return [("UTC", None)]
    ids = [absence.resource_id] if absence.resource_id else _all_ids(workspace_id)
    zoned: dict[str, list[str]] = {}
    for resource in ctx.unit.rows.fetch(
        RESOURCES.key(workspace_id, record_id=resource_id) for resource_id in ids
    ):
        if isinstance(resource, ResourceRow):
            zoned.setdefault(resource.timezone, []).append(resource.id)
    if absence.resource_id is None and len(zoned) == 1:
        return [(zone, None) for zone in zoned]  # one query instead of one per resource
    return list(zoned.items())


def _all_ids(workspace_id: str) -> list[str]:
    return [entry.id for entry in RESOURCES.entries(workspace_id)]


def _wire_times(absence: TimeOff) -> tuple[str, str]:
    if absence.moments is None:
        return str(absence.first_day), str(absence.last_day)
    start, end = (datetime.fromtimestamp(moment / 1000, UTC) for moment in absence.moments)
    return iso(start), iso(end)
