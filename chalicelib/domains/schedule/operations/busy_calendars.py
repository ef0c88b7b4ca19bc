"""Add, list, read and remove the calendars in which the staff is busy elsewhere (ADR 135)."""

import re
from datetime import timedelta
from typing import Annotated, Literal, Self, cast

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.errors import NotFoundError, ValidationError, call
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.settings import settings
from chalicelib.core.wire.schema import DeletedResult, Id, NoInput, Timestamp, Wire
from chalicelib.core.wire.times import Moment
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.schedule.flows import busy_links, busy_readings, calendar_feeds
from chalicelib.domains.schedule.operations.staff_calendar import Period
from chalicelib.domains.schedule.rules.job_kinds import CLEAR_BUSY_TIMES
from chalicelib.domains.schedule.store import busy_calendars
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.domains.services.store import resources
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine import jobs
from chalicelib.lib import public_urls
from chalicelib.lib.spans import Span

MAX_LINK = 2000  # characters; Outlook's have 300
AGAIN_AFTER = timedelta(minutes=1)  # since the last reading, if a member asks for one
MAX_PERIOD = 62 * 24 * 60 * 60_000  # milliseconds, which are 62 calendar days to read
_WEBCAL = re.compile(r"(?i)\A\s*webcals?://")
_OUR_FEED = calendar_feeds.PATH.partition("{")[0]

Status = Literal["waiting", "read", "failing"]
Problem = Literal[
    "not_fetched",
    "not_a_calendar",
    "too_many_events",
    "too_many_instances",
    "too_complex",
    "link_lost",
]


def _calendar_link(link: str) -> str:
    # Apple and Outlook publish webcal links, which programs read by HTTPS.
    url = _WEBCAL.sub("https://", link, count=1)
    try:
        parsed = public_urls.parse(url)
    except ValueError as error:
        raise PydanticCustomError("calendar_url", "{reason}", {"reason": str(error)}) from None
    if parsed.is_private_address:
        raise PydanticCustomError("calendar_url", "expected a URL on the public internet")
    if str(parsed).startswith(settings().public_url + _OUR_FEED):
        msg = "expected the link of a person's own calendar, received the feed of its bookings"
        raise PydanticCustomError("own_feed", msg)
    return str(parsed)


CalendarUrl = Annotated[str, StringConstraints(max_length=MAX_LINK), AfterValidator(_calendar_link)]


class BusyCalendar(Wire):
    """A person's own calendar, whose busy times are not offered. Its link is never returned."""

    id: Id = Field(description="Calendar id: that of its resource.")
    resource_id: Id = Field(description="Resource id.")
    name: str = Field(description="Name of the resource.")
    host: str = Field(description="Host of the link.")
    status: Status = Field(description="waiting: not read yet; failing: the last reading failed.")
    problem: Problem | None = Field(description="Why the last reading failed, or null.")
    reason: str | None = Field(description="What the server answered, or null.")
    failing_since: Timestamp | None = Field(description="First failure in a row, or null.")
    skipped_events: int = Field(
        description="Events that could not be read, or repeat every minute or second."
    )
    added_at: Timestamp = Field(description="When the link was entered.")
    read_at: Timestamp | None = Field(description="Last good reading, or null.")
    tried_at: Timestamp | None = Field(description="Last reading, good or not, or null.")
    next_at: Timestamp = Field(description="Next reading.")

    @classmethod
    def from_record(cls, row: BusyCalendarRow, name: str) -> Self:
        return cls(
            id=row.sk,
            resource_id=row.sk,
            name=name,
            host=row.host,
            status=cast("Status", row.status),
            problem=cast("Problem | None", row.problem),
            reason=row.reason,
            failing_since=row.failing_since,
            skipped_events=int(row.skipped or 0),
            added_at=row.added_at,
            read_at=row.succeeded_at,
            tried_at=row.read_at,
            next_at=row.next_at,
        )


class BusyCalendars(Wire):
    """Calendars of the staff."""

    busy_calendars: list[BusyCalendar] = Field(description="Calendars, by the resource's name.")


class BusyCalendarCreate(Wire):
    """The link of a person's own calendar."""

    resource_id: Id = Field(description="Resource id.")
    url: CalendarUrl = Field(
        description="Secret iCalendar link that Google, Outlook or Apple publish; https or webcal."
    )


class BusyCalendarRef(Wire):
    """Id of a calendar."""

    id: Id = Field(description="Calendar id.")


class BusyCalendarResult(Wire):
    """A calendar of the staff."""

    busy_calendar: BusyCalendar = Field(description="The calendar.")


class BusyTimesQuery(Wire):
    """A resource, and a period."""

    resource_id: Id = Field(description="Resource id.")
    from_: Moment = Field(alias="from", description="Start of the period.")
    to: Moment = Field(description="End of the period, at most 62 days later.")


class BusyTimes(Wire):
    """Busy times of a resource's own calendar."""

    busy_times: list[Period] = Field(description="Busy times that overlap the period, in order.")


@operation(
    rest="GET /api/busy-calendars/times",
    scope=Scope.SERVICES_READ,
    role=Role.MEMBER,
    own=OwnPart(resource="resource_id"),
    example={
        "resourceId": "RESOURCE_ID",
        "from": "2027-01-18T00:00:00Z",
        "to": "2027-01-25T00:00:00Z",
    },
)
def get_busy_times(ctx: Context, args: BusyTimesQuery) -> BusyTimes:
    """Return when a resource's own calendar was busy at its last reading. There are no titles."""
    period = Span(epoch_ms(args.from_), epoch_ms(args.to))
    if not period.start < period.end <= period.start + MAX_PERIOD:
        message = "expected a time after from, at most 62 days later"
        raise ValidationError.of("to", message=message, key="period")
    resource = RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    days = calendar_days.read(ctx.workspace_id, resource_id=resource.id, span=period)
    overlapping = (
        span for span in days.elsewhere if span.start < period.end and period.start < span.end
    )
    return BusyTimes(busy_times=list(map(Period.from_span, overlapping)))


@operation(
    rest="GET /api/busy-calendars",
    scope=Scope.SERVICES_READ,
    role=Role.MEMBER,
    example={},
)
def get_busy_calendars(ctx: Context, args: NoInput) -> BusyCalendars:
    """Return the own calendars of the staff, when they were read, and why one was not.

    A calendar is read every 15 minutes if its resource is open in the next 7 days, else hourly.
    """
    rows = BusyCalendarRow.all_of(ctx.workspace_id)
    names = {
        resource.id: resource.name
        for resource in RESOURCES.fetch(ctx.workspace_id, [row.sk for row in rows])
    }
    shown = [BusyCalendar.from_record(row, names[row.sk]) for row in rows if row.sk in names]
    return BusyCalendars(
        busy_calendars=sorted(shown, key=lambda calendar: (calendar.name, calendar.resource_id))
    )


@operation(
    rest="POST /api/busy-calendars/create",
    scope=Scope.SERVICES_WRITE,
    role=Role.MANAGER,
    example={
        "resourceId": "RESOURCE_ID",
        "url": "https://calendar.google.com/calendar/ical/anna/private-0123/basic.ics",
    },
)
def create_busy_calendar(ctx: Context, args: BusyCalendarCreate) -> BusyCalendarResult:
    """Take the link of a resource's own calendar. Its busy times are then not offered.

    Another link takes the place of the former one. Only times are stored, of 400 days. The first
    reading is within a minute or two.
    """
    resource = RESOURCES.require(ctx.workspace_id, record_id=args.resource_id)
    calendar = BusyCalendarRow.of(ctx.workspace_id, resource.id)
    if calendar is None:
        calendar = busy_calendars.new(ctx.workspace_id, resource.id)
    busy_links.set_link(calendar, args.url, public_urls.parse(args.url).host)
    # The resource may be deleted meanwhile, which removes its calendar.
    resources.require(ctx.unit, resource.id, on_conflict=RESOURCES.not_found())
    busy_readings.stage_reading(ctx.unit, calendar, timedelta(0))
    ctx.unit.mention(f"resource:{resource.id}")
    return BusyCalendarResult(busy_calendar=BusyCalendar.from_record(calendar, resource.name))


@operation(
    rest="POST /api/busy-calendars/read",
    scope=Scope.SERVICES_WRITE,
    role=Role.MANAGER,
    example={"id": "BUSY_CALENDAR_ID"},
)
def read_busy_calendar(ctx: Context, args: BusyCalendarRef) -> BusyCalendarResult:
    """Have a resource's own calendar read within a minute, unless it was read in the last one."""
    calendar = _require(ctx, args.id)
    resource = RESOURCES.require(ctx.workspace_id, record_id=args.id)
    now = clock.now()
    # Neither a second click nor a program in a loop makes the service read more often.
    earliest = max(now, calendar.read_at + AGAIN_AFTER) if calendar.read_at else now
    if calendar.next_at > earliest:
        busy_readings.stage_reading(ctx.unit, calendar, earliest - now)
    ctx.unit.mention(f"resource:{resource.id}")
    return BusyCalendarResult(busy_calendar=BusyCalendar.from_record(calendar, resource.name))


@operation(
    title="Remove a busy calendar",
    rest="POST /api/busy-calendars/delete",
    scope=Scope.SERVICES_WRITE,
    role=Role.MANAGER,
    example={"id": "BUSY_CALENDAR_ID"},
)
def delete_busy_calendar(ctx: Context, args: BusyCalendarRef) -> DeletedResult:
    """Forget the link of a resource's own calendar, and its busy times, which can be booked."""
    calendar = _require(ctx, args.id)
    ctx.unit.delete(calendar)
    payload = {"resourceId": calendar.sk}
    ctx.unit.create_job(jobs.row(CLEAR_BUSY_TIMES, ctx.workspace_id, payload))
    ctx.unit.mention(f"resource:{calendar.sk}")
    return DeletedResult(id=calendar.sk, deleted=True)


def _require(ctx: Context, resource_id: str) -> BusyCalendarRow:
    calendar = BusyCalendarRow.of(ctx.workspace_id, resource_id)
    if calendar is None:
        msg = (
            "No own calendar of a resource has this id. "
            f"{call('get_busy_calendars')} returns all calendars."
        )
        raise NotFoundError(msg, key="busy_calendar")
    return calendar
