"""Return the calendar of the staff for a day or a week, with opening hours and free time."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal, Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.operations import operation
from chalicelib.core.own_part import OwnPart
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, PageNumber, Timestamp, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bookings.flows.booking_out import BookingOut
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.bookings.store.booked_times import BookingEntry
from chalicelib.domains.bookings.store.bookings import BookingRow
from chalicelib.domains.identity.flows import periods
from chalicelib.domains.schedule.flows import staff_days
from chalicelib.domains.schedule.flows.staff_days import StaffDayPlan, StaffPlan
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.domains.services.store.services import SERVICES
from chalicelib.engine.unit import split_batches
from chalicelib.lib import zoned_times
from chalicelib.lib.spans import Span

MAX_SHOWN = 60  # bookings in one response, at half a read unit each
WEEK = 7


class CalendarQuery(Wire):
    """Period and staff member of a calendar."""

    view: Literal["day", "week"] = Field(default="day", description="day or week.")
    date: Day | None = optional("Local date, or a date of the week. Default: today.")
    resource_id: Id | None = optional("Only this staff member.")
    page: PageNumber = Field(
        default=1, description="Page of the staff of a day. Bookings are on the first page."
    )


class Period(Wire):
    """A period of time."""

    start_at: Timestamp = Field(description="Start, in UTC.")
    end_at: Timestamp = Field(description="End, in UTC.")

    @classmethod
    def from_span(cls, span: Span) -> Self:
        return cls(start_at=clock.moment_at(span.start), end_at=clock.moment_at(span.end))


class ClosedPeriod(Period):
    """A period of time off."""

    reason: str | None = Field(description="Reason, or null.")


class FreePeriod(Period):
    """A period in which the number of free places does not change."""

    places: int = Field(description="Free places.")


class StaffDate(Period):
    """A date of a service, such as a class, for which the resource is there."""

    service_id: Id = Field(description="Service id.")
    service_name: str | None = Field(description="Name of the service, or null: deleted.")
    booked: int = Field(description="Places that are booked, of the resource's capacity.")


class StaffMember(Wire):
    """A person, room or thing that is booked."""

    OWNED_BY = "id"

    id: Id = Field(description="Resource id.")
    name: str = Field(description="Name of the resource.")
    status: str = Field(description="active or inactive.")
    timezone: str = Field(description="IANA zone of its opening hours.")


class StaffDay(Wire):
    """The day of one staff member.

    Hours, time off, busy times and free time are read for one day or one staff member only.
    """

    OWNED_BY = "resource_id"

    resource_id: Id = Field(description="Resource id.")
    resource_name: str = Field(description="Name of the resource.")
    timezone: str = Field(description="IANA zone of its opening hours.")
    capacity: int = Field(description="Maximum number of bookings at the same time.")
    opened: list[Period] = Field(description="Opening hours of the day.")
    time_off: list[ClosedPeriod] = Field(description="Time off on the day.")
    busy: list[Period] = Field(description="Busy times of the resource's own calendar.")
    dates: list[StaffDate] = Field(description="Dates of services with fixedStarts, by start.")
    conflicts: list[Id] = Field(description="Bookings that overlap a busy time.")
    free: list[FreePeriod] = Field(description="Free time from now on, of 15 minutes or more.")
    bookings: list[BookingOut] = Field(description="Bookings that are shown, by start.")


class CalendarDay(Wire):
    """A day of the calendar."""

    date: str = Field(description="Local date, YYYY-MM-DD.")
    total: int = Field(description="Number of bookings of the day.")
    staff: list[StaffDay] = Field(description="Days of staff members.")


class StaffCalendar(Wire):
    """A day or a week of bookings. Days are in the workspace's time zone."""

    timezone: str = Field(description="IANA name of the workspace's zone.")
    today: str = Field(description="Local date of now.")
    days: list[CalendarDay] = Field(description="The days, in order.")
    staff: list[StaffMember] = Field(description="All staff members, in their order.")
    staff_before: int = Field(description="Staff members of a day on earlier pages.")
    staff_total: int = Field(description="Staff members of a day over all pages; 0 for a week.")
    total: int = Field(description="Number of bookings in the period.")
    shown: int = Field(description="Number of bookings that the answer has.")


@operation(
    title="Get the calendar of the staff",
    role=Role.MEMBER,
    own=OwnPart(resource="resource_id", is_set=True),
    example={"view": "week", "date": "2027-01-18"},
)
def get_staff_calendar(ctx: Context, args: CalendarQuery) -> StaffCalendar:
    """Return the bookings of a day or a week by staff member.

    Cancelled bookings and no-shows are left out. A busy period has the first bookings of each day,
    and the number of all.
    """
    zone = periods.zone_of_workspace(ctx)
    today = clock.local_day(clock.now(), zone)
    days = _days(args, today)
    spans = [zoned_times.span_of_days(day, last=day, timezone=zone) for day in days]
    period = Span(spans[0].start, spans[-1].end)
    entries = booked_times.overlapping(ctx.workspace_id, period, args.resource_id)
    by_day = [
        [
            calendar_entry
            for calendar_entry in entries
            if span.start <= _begin(calendar_entry, period) < span.end
        ]
        for span in spans
    ]
    limits = _share([len(day_entries) for day_entries in by_day], MAX_SHOWN)
    listed_entries = [
        calendar_entry
        for some, limit in zip(by_day, limits, strict=True)
        for calendar_entry in some[:limit]
    ]
    rows = {row.id: row for row in booked_times.records_of(ctx.workspace_id, listed_entries)}
    lapsed = {booking.id for booking in rows.values() if _is_lapsed(booking)}
    staff = staff_days.all_staff(ctx.workspace_id)
    with_hours = args.view == "day" or args.resource_id is not None
    pages = _pages(staff, entries, args.resource_id) if with_hours else [[]]
    shown_staff = pages[args.page - 1] if args.page <= len(pages) else []
    plan = StaffPlan.read(
        ctx.workspace_id,
        shown_staff,
        period,
        [calendar_entry for calendar_entry in entries if calendar_entry.id not in lapsed],
    )
    day_rows = [
        [
            rows[calendar_entry.id]
            for calendar_entry in some
            if calendar_entry.id in rows and calendar_entry.id not in lapsed
        ]
        for some in (by_day if args.page == 1 else [[] for _ in days])
    ]
    names = _names_of_services(ctx, plan)
    return StaffCalendar(
        timezone=zone,
        today=today.isoformat(),
        days=[
            CalendarDay(
                date=day.isoformat(),
                total=sum(calendar_entry.id not in lapsed for calendar_entry in by_day[number]),
                staff=_staff_days(plan, spans[number], day_rows[number], names),
            )
            for number, day in enumerate(days)
        ],
        staff=[StaffMember.from_row(member.values) for member in staff],
        staff_before=sum(map(len, pages[: args.page - 1])),
        staff_total=sum(map(len, pages)),
        total=sum(calendar_entry.id not in lapsed for calendar_entry in entries),
        shown=sum(map(len, day_rows)),
    )


def _names_of_services(ctx: Context, plan: StaffPlan) -> dict[str, str]:
    # Of those with dates, so a workspace without dates reads nothing more.
    ids = {dated.service_id for days in plan.days.values() for dated in days.starts}
    return {row.id: row.name for row in SERVICES.fetch(ctx.workspace_id, sorted(ids))}


def _days(args: CalendarQuery, today: date) -> list[date]:
    day = args.date or today
    if args.view == "day":
        return [day]
    monday = day - timedelta(days=day.weekday())
    return [monday + timedelta(days=number) for number in range(WEEK)]


def _begin(entry: BookingEntry, period: Span) -> int:
    # A booking from the day before begins with the period.
    return max(entry.span.start, period.start)


def _share(counts: Sequence[int], limit: int) -> list[int]:
    # Days with many bookings are cut first.
    for max_shown in range(max(counts, default=0), 0, -1):
        limits = [min(count, max_shown) for count in counts]
        if sum(limits) <= limit:
            return limits
    return [0 for _ in counts]


def _is_lapsed(row: BookingRow) -> bool:
    # The hold of an unpaid booking has expired, so its time is free.
    return row.hold_expires_at is not None and row.hold_expires_at <= clock.now()


def _pages(
    staff: Sequence[ResourceRow], entries: Iterable[BookingEntry], resource_id: str | None
) -> list[list[ResourceRow]]:
    """Return the pages of the staff. The first one has the staff with bookings, and some others."""
    if resource_id is not None:
        return [[member for member in staff if member.id == resource_id]]
    booked = {entry.resource_id for entry in entries}
    idle = [member for member in staff if member.status == "active" and member.id not in booked]
    room = max(0, staff_days.MAX_STAFF - len(booked))
    first_ids = {*booked, *(member.id for member in idle[:room])}
    return [
        [member for member in staff if member.id in first_ids],
        *split_batches(idle[room:], staff_days.MAX_STAFF),
    ]


def _staff_days(
    plan: StaffPlan, span: Span, rows: Sequence[BookingRow], names: Mapping[str, str]
) -> list[StaffDay]:
    by_staff: dict[str, list[BookingRow]] = {}
    for row in rows:
        by_staff.setdefault(row.resource_id, []).append(row)
    planned = [
        _planned_day(day, by_staff.pop(day.resource.id, ()), names) for day in plan.plan_days(span)
    ]
    others = [_other_day(resource_id, some) for resource_id, some in by_staff.items()]
    return planned + others


def _overlaps(booking: BookingRow, spans: Iterable[Span]) -> bool:
    # Buffers may be busy, as they may be off.
    start, end = booking.busy.start, booking.busy.end
    return any(span.start < end and start < span.end for span in spans)


def _planned_day(
    day: StaffDayPlan, rows: Sequence[BookingRow], names: Mapping[str, str]
) -> StaffDay:
    return StaffDay(
        resource_id=day.resource.id,
        resource_name=day.resource.name,
        timezone=day.resource.timezone,
        capacity=int(day.resource.capacity),
        opened=list(map(Period.from_span, day.opened)),
        time_off=[
            ClosedPeriod(**Period.from_span(span).model_dump(), reason=reason)
            for span, reason in day.time_off
        ],
        busy=list(map(Period.from_span, day.busy)),
        dates=[
            StaffDate(
                **Period.from_span(Span(dated.start, dated.end)).model_dump(),
                service_id=dated.service_id,
                service_name=names.get(dated.service_id),
                booked=booked,
            )
            for dated, booked in day.dates
        ],
        conflicts=[row.id for row in rows if _overlaps(row, day.busy)],
        free=[
            FreePeriod(**Period.from_span(span).model_dump(), places=places)
            for span, places in day.free
        ],
        bookings=list(map(BookingOut.from_record, rows)),
    )


def _other_day(resource_id: str, rows: Sequence[BookingRow]) -> StaffDay:
    # For a resource whose hours were not read, such as a deleted one.
    return StaffDay(
        resource_id=resource_id,
        resource_name=rows[0].resource_name,
        timezone=rows[0].timezone,
        capacity=1,
        opened=[],
        time_off=[],
        busy=[],
        dates=[],
        conflicts=[],
        free=[],
        bookings=list(map(BookingOut.from_record, rows)),
    )
