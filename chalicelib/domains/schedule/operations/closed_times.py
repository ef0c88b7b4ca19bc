"""List the upcoming bookings at times when their resource is closed or has time off."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.bookings.flows import slot_search
from chalicelib.domains.bookings.flows.booking_out import BookingOut
from chalicelib.domains.bookings.store import booked_times
from chalicelib.domains.bookings.store.bookings import BOOKINGS, BookingRow
from chalicelib.domains.services.store import opening_hours, time_off
from chalicelib.domains.services.store.opening_hours import ScheduleRow
from chalicelib.domains.services.store.resources import ResourceRow
from chalicelib.domains.services.store.time_off import TimeOff
from chalicelib.lib.spans import Span

MAX_CHECKED = 500  # upcoming bookings, earliest first
MAX_LISTED = 20
CHECKED_PERIOD = timedelta(days=366)  # No service can be booked further ahead.


class ClosedTimesQuery(Wire):
    """Resource whose bookings to check."""

    resource_id: Id | None = optional("Resource id; default: all resources.")


class MisplacedBooking(BookingOut):
    """A booking at a time when its resource cannot be booked."""

    reason: Literal["closed", "time_off"] = Field(description="Why it cannot be booked.")


class MisplacedBookings(Wire):
    """Bookings at times when their resources cannot be booked."""

    bookings: list[MisplacedBooking] = Field(description="The first 20, by start.")
    total: int = Field(description="Number of them among the 500 next bookings.")


@operation(role=Role.MEMBER)
def list_bookings_at_closed_times(ctx: Context, args: ClosedTimesQuery) -> MisplacedBookings:
    """List the upcoming bookings outside opening hours or within time off.

    Such bookings stay when hours change. Deleted resources are left out.
    """
    now = clock.now()
    first, last = epoch_ms(now), epoch_ms(now + CHECKED_PERIOD)
    ids = [args.resource_id] if args.resource_id else None
    blocking = booked_times.blocking_between(
        ctx.workspace_id, ids, first, last_ms=last, limit=MAX_CHECKED
    )
    upcoming = BOOKINGS.fetch(ctx.workspace_id, blocking.ids)
    used = dict.fromkeys(booking.resource_id for booking in upcoming)
    with_hours = {
        resource.id: (resource, hours)
        for resource, hours in opening_hours.find_with_schedules(ctx.workspace_id, used)
    }
    off = time_off.overlapping(ctx.workspace_id, first, last_ms=last)
    misplaced = [
        MisplacedBooking.from_record(booking, reason=reason)
        for booking in upcoming
        if booking.resource_id in with_hours
        and (reason := _reason(booking, *with_hours[booking.resource_id], off))
    ]
    return MisplacedBookings(bookings=misplaced[:MAX_LISTED], total=len(misplaced))


def _reason(
    booking: BookingRow, resource: ResourceRow, hours: ScheduleRow | None, off: Sequence[TimeOff]
) -> str | None:
    spans = [absence.span(resource.timezone) for absence in off if absence.applies_to(resource.id)]
    if any(span.start < booking.busy.end and booking.busy.start < span.end for span in spans):
        return "time_off"
    schedule = opening_hours.schedule_of(hours)
    visit = Span(booking.busy.start, booking.busy.end)
    return None if slot_search.is_open_for(visit, schedule, resource.timezone) else "closed"
