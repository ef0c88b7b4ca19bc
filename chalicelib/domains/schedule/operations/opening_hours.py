"""List and set the opening hours of a resource."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError, from_json

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.call_warnings import WarningCode
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import ValidationError, VersionConflictError, call
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.flows.periods import Timezone
from chalicelib.domains.services.flows.zones import warn_of_zone
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.rules.open_windows import (
    MAX_INTERVALS,
    Interval,
    Rule,
    Schedule,
    ScheduleError,
)
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.engine.unit import UnitOfWork
from chalicelib.lib.spans import Span

MAX_RULES = 400
MAX_LISTED = 20  # bookings outside the opening hours in a warning
MAX_CHECKED = 1000  # upcoming bookings for the warning, earliest first
CHECKED_PERIOD = timedelta(days=366)  # for the warning; no service can be booked further ahead


def _weekday(value: object) -> int | str:
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    message = "expected mon to sun, or 0 to 7, where 0 and 7 are Sunday"
    raise PydanticCustomError("weekday", message)


# A name or number. ``domains.services.rules.open_windows`` validates it.
Weekday = Annotated[
    int | str, PlainValidator(_weekday), WithJsonSchema({"type": ["string", "integer"]})
]
TimeOfDay = Annotated[str, StringConstraints(max_length=8)]


class OpeningIntervalIn(Wire):
    """Opening hours of a day."""

    start: TimeOfDay = Field(description="HH:MM.")
    end: TimeOfDay = Field(description="HH:MM or 24:00.")


class OpeningRuleIn(Wire):
    """Opening hours of a weekday, of several, or of a date."""

    weekday: Weekday = optional("mon-sun, or 0-7 (0, 7: Sunday).")
    weekdays: Annotated[list[Weekday], Field(max_length=8)] = optional("Or several.")
    date: Day = optional("Or a date; overrides its weekday.")
    intervals: Annotated[list[OpeningIntervalIn], Field(max_length=MAX_INTERVALS)] = optional(
        "[]: closed. end <= start: ends the next day."
    )
    start: TimeOfDay = optional("Start of a single interval.")
    end: TimeOfDay = optional("End of a single interval.")

    @property
    def rule(self) -> Rule:
        # In the form that ``open_windows.parse`` accepts.
        intervals: list[Interval] | None = None
        if self.intervals is not None:
            intervals = [Interval(interval.start, interval.end) for interval in self.intervals]
        return Rule(self.weekday, self.weekdays, self.date, intervals, self.start, self.end)


class OpeningIntervalOut(Wire):
    """Opening hours of a day."""

    start: str = Field(description="Start, HH:MM.")
    end: str = Field(description="End, HH:MM or 24:00. An end before the start is on the next day.")


class OpeningRuleOut(Wire):
    """Opening hours of a weekday, or of a date."""

    weekday: str | None = Field(description="mon to sun, or null.")
    date: str | None = Field(description="Date, or null. It replaces the hours of its weekday.")
    intervals: list[OpeningIntervalOut] = Field(description="Opening hours; empty: closed.")


class AvailabilityQuery(Wire):
    """Resource whose opening hours to list."""

    resource_id: Id = Field(description="Resource id.")


class Availability(Wire):
    """The opening hours of a resource."""

    resource_id: Id = Field(description="Resource id.")
    timezone: str = Field(description="IANA zone of the hours.")
    rules: list[OpeningRuleOut] = Field(description="Weekdays, Monday first, then dates.")
    updated_at: Timestamp | None = Field(description="When they were last set, or null.")
    version: int = Field(description="Changes with the hours; 0 if never set. Send as ifVersion.")

    @classmethod
    def from_record(cls, resource: ResourceRow, row: opening_hours.ScheduleRow | None) -> Self:
        # ``row`` is None if the hours were never set.
        rules = open_windows.canonical(row.schedule) if row else []
        return cls(
            resource_id=resource.id,
            timezone=resource.timezone,
            rules=[_rule_out(rule) for rule in rules],
            updated_at=row.updated_at if row else None,
            version=opening_hours.hours_version(row),
        )


class AvailabilityInput(Wire):
    """New opening hours of a resource."""

    resource_id: Id = Field(description="Resource id.")
    rules: Annotated[list[OpeningRuleIn], Field(max_length=MAX_RULES)] = Field(
        description="Replaces all hours; [] removes them."
    )
    timezone: Timezone | None = optional("IANA zone; default: unchanged.")
    if_version: Annotated[int, Field(ge=0)] | None = optional("409 if the version differs.")


def _rule_out(rule: Rule) -> OpeningRuleOut:
    return OpeningRuleOut(
        weekday=rule.weekday,  # type: ignore[arg-type]  # a name, in canonical rules
        date=rule.date.isoformat() if rule.date else None,
        intervals=[
            OpeningIntervalOut(start=interval.start, end=interval.end)
            for interval in rule.intervals or ()
        ],
    )


@operation(
    tool=True,
    rest="GET /api/resources/availability",
    scope=Scope.SERVICES_READ,
    title="List opening hours",
    example={"resourceId": "RESOURCE_ID"},
    role=Role.MEMBER,
)
def list_availability(ctx: Context, args: AvailabilityQuery) -> Availability:
    """Return a resource's opening hours. Without rules it cannot be booked."""
    return Availability.from_record(
        *opening_hours.require_with_schedule(ctx.workspace_id, resource_id=args.resource_id)
    )


@operation(
    tool=True,
    rest="POST /api/resources/set-availability",
    scope=Scope.SERVICES_WRITE,
    title="Set opening hours",
    destructive=True,
    idempotent=True,
    example={
        "resourceId": "RESOURCE_ID",
        "rules": [
            {"weekdays": ["mon", "tue"], "start": "09:00", "end": "18:00"},
            {"weekday": 0, "intervals": [{"start": "10:00", "end": "14:00"}]},
            {"date": "2027-03-08", "intervals": []},
        ],
    },
    errors=(VersionConflictError,),
    role=Role.MANAGER,
)
def set_availability(ctx: Context, args: AvailabilityInput) -> Availability:
    """Replace all opening hours of a resource. A warning lists bookings outside the new hours.

    Rules such as {weekdays: [mon, 5], start: "09:00", end: "18:00"}, {date: "2030-01-01",
    intervals: []}.
    """
    hours = _parsed(args)
    resource = RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    timezone = args.timezone or resource.timezone
    warn_of_zone(ctx, resource, timezone)
    unused = [resource]  # The first attempt writes what was read before, or conflicts.

    def stage(unit: UnitOfWork) -> bytes:
        resource = (
            unused.pop()
            if unused
            else RESOURCES.require(unit.workspace_id, record_id=args.resource_id)
        )
        _check_version(unit, args)
        resource.timezone = timezone
        row = opening_hours.save_schedule(unit, resource, hours)
        return Availability.from_record(resource, row).model_dump_json(by_alias=True).encode()

    # Committed separately: a booking made at the same time either reads the new hours or is found
    # below.
    summary = ctx.unit.commit_batch("availability", stage)
    _warn_of_bookings_outside(ctx, args.resource_id, hours, timezone)
    return Availability.model_validate(from_json(summary))


def _check_version(unit: UnitOfWork, args: AvailabilityInput) -> None:
    # The resource was read before, and the commit requires it unchanged. Each change of the hours
    # changes it too, so the hours that are read here are the hours that the commit replaces.
    if args.if_version is None:
        return
    current = opening_hours.hours_version(
        opening_hours.find_schedule(unit.workspace_id, resource_id=args.resource_id)
    )
    if current != args.if_version:
        msg = (
            f"ifVersion: expected {current}, the current version of the hours, received "
            f"{args.if_version}. Read the hours, and apply your change to them."
        )
        raise VersionConflictError(msg, version=current)


def _parsed(args: AvailabilityInput) -> Schedule:
    try:
        return open_windows.parse([rule.rule for rule in args.rules])
    except ScheduleError as error:
        field = f"rules.{error.index}.{error.field}"
        raise ValidationError.of(field, message=error.message) from None


def _warn_of_bookings_outside(
    ctx: Context, resource_id: str, hours: Schedule, timezone: str
) -> None:
    now = clock.now()
    first, last = epoch_ms(now), epoch_ms(now + CHECKED_PERIOD)
    blocking = booked_times.blocking_between(
        ctx.workspace_id, [resource_id], first, last_ms=last, limit=MAX_CHECKED
    )
    upcoming = BOOKINGS.fetch(ctx.workspace_id, blocking.ids)
    outside = [
        booking.id
        for booking in upcoming
        if not slot_search.is_open_for(Span(booking.busy.start, booking.busy.end), hours, timezone)
    ]
    if outside:
        more = ", …" if len(outside) > MAX_LISTED or blocking.total > MAX_CHECKED else ""
        ctx.warn(
            f"{len(outside)} upcoming booking(s) are now outside the opening hours, and are not "
            f"changed: {', '.join(outside[:MAX_LISTED])}{more}. To move or cancel them, call "
            f"{call('svc_set_booking_status')}.",
            code=WarningCode.BOOKINGS_OUTSIDE_HOURS,
            count=len(outside),
            ids=outside[:MAX_LISTED],
        )
