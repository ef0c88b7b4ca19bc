"""The free times of one month, for a calendar in which a visitor chooses a day and a time."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated

from pydantic import Field

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.wire.schema import Pattern, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.bookings.flows.slot_out import SlotOut, SlotResource
from chalicelib.domains.bookings.flows.slot_search import PERMANENT_REASONS, Search
from chalicelib.domains.bookings.rules.slots import Availability, NoSlotReason, Query, Slot

MAX_DATES = 40  # of a service with fixed starts, on one page

Month = Annotated[str, Pattern("[0-9]{4}-(0[1-9]|1[0-2])", "a month such as 2030-01")]


class MonthQuery(Wire):
    """The month and the day that a visitor looks at."""

    month: Month | None = optional("Default: that of the day, or the first with free times.")
    day: Day | None = optional("Default: the first with free times.")


class FreeDay(Wire):
    """A day with free times."""

    date: str = Field(description="Local date, YYYY-MM-DD.")
    free: int = Field(description="Number of starts.")


class MonthOfSlots(Wire):
    """The days of a month with free times, and the free times of one day."""

    timezone: str = Field(description="Zone of the dates and of startLocal.")
    month: str = Field(description="The month, such as 2030-01.")
    today: str = Field(description="The current local date.")
    previous_month: str | None = Field(description="The month before, unless it has passed.")
    next_month: str | None = Field(description="The next month that can be booked, or null.")
    days: list[FreeDay] = Field(description="The days with free times.")
    days_after: list[FreeDay] = Field(
        description="The days with free times of the next month that are in this month's last week."
    )
    day: str | None = Field(description="The day of the slots, or null.")
    slots: list[SlotOut] = Field(
        description="The free times of the day; with fixedStarts, of all days from the day on."
    )
    next_available: SlotOut | None = Field(
        description="If the day or the month has no free times: the next one, or null."
    )
    reason: NoSlotReason | None = Field(description="Why the month has no free times, or null.")
    resources: list[SlotResource] = Field(description="The resources that slots can name.")
    fixed_starts: bool = Field(
        description="Whether the service is offered on dates, which are listed and not by month."
    )


def find(search: Search, zone: str, args: MonthQuery) -> MonthOfSlots:
    """Return the free times of the requested month, or of the first month that has any."""
    if search.rules.fixed_starts and not search.parts:
        return _dates(search, zone, args.day)
    now = clock.now()
    today = clock.local_day(now, zone)
    last_day = today + timedelta(days=search.rules.horizon_days)
    requested_month = _first_of(args.day) if args.day else _parse(args.month)
    month = min(max(requested_month or today, _first_of(today)), _first_of(last_day))
    query = _query(month, zone, epoch_ms(now))
    availability, after = _slots_of_weeks(search, month, zone, query)
    upcoming = None
    if not availability.slots and availability.reason not in PERMANENT_REASONS:
        upcoming = search.next(query)
        if upcoming is not None and requested_month is None:
            month = _first_of(_day(upcoming, zone))
            query = _query(month, zone, epoch_ms(now))
            availability, after = _slots_of_weeks(search, month, zone, query)
            upcoming = None
    day = args.day or min((_day(slot, zone) for slot in availability.slots), default=None)
    slots = [slot for slot in availability.slots if _day(slot, zone) == day]
    if day is not None and not slots and upcoming is None:
        upcoming = _find_after([*availability.slots, *after], day, zone) or search.next(query)
    return MonthOfSlots(
        timezone=zone,
        month=_text(month),
        today=today.isoformat(),
        previous_month=_text(month - timedelta(days=1)) if month > today else None,
        next_month=_text(_next(month)) if _next(month) <= last_day else None,
        days=_free_days(availability.slots, zone),
        days_after=_free_days(after, zone),
        day=day.isoformat() if day else None,
        slots=[SlotOut.from_slot(slot, zone) for slot in slots],
        next_available=SlotOut.from_slot(upcoming, zone) if upcoming else None,
        reason=availability.reason,
        resources=SlotResource.several(search.shown_resources, search),
        fixed_starts=False,
    )


def _dates(search: Search, zone: str, day: date | None) -> MonthOfSlots:
    # A class has few dates, so those of all months are listed.
    now = clock.now()
    today = clock.local_day(now, zone)
    first = day if day is not None and day > today else None
    begin = epoch_ms(clock.moment_of(first, zone) if first else now)
    last = today + timedelta(days=search.rules.horizon_days)
    end = epoch_ms(clock.moment_of(last, zone, end=True))
    availability = search.slots(Query(begin, max(begin, end), epoch_ms(now)))
    shown, more = availability.slots[:MAX_DATES], availability.slots[MAX_DATES:]
    return MonthOfSlots(
        timezone=zone,
        month=_text(first or today),
        today=today.isoformat(),
        previous_month=None,
        next_month=None,
        days=[],
        days_after=[],
        day=first.isoformat() if first else None,
        slots=[SlotOut.from_slot(slot, zone) for slot in shown],
        next_available=SlotOut.from_slot(more[0], zone) if more else None,
        reason=availability.reason,
        resources=SlotResource.several(search.shown_resources, search),
        fixed_starts=True,
    )


def _slots_of_weeks(
    search: Search, month: date, zone: str, query: Query
) -> tuple[Availability, list[Slot]]:
    # The slots of a month, and those of the days that complete its last week.
    following = _next(month)
    end = epoch_ms(clock.moment_of(following + timedelta(days=-following.weekday() % 7), zone))
    weeks = search.slots(query._replace(last=max(query.last, end - 1)))
    after = [slot for slot in weeks.slots if slot.start > query.last]
    slots = [slot for slot in weeks.slots if slot.start <= query.last]
    if after and not slots:
        return search.slots(query), after  # Only a search without slots has a reason.
    return weeks._replace(slots=slots), after


def _free_days(slots: Sequence[Slot], zone: str) -> list[FreeDay]:
    free = Counter(_day(slot, zone) for slot in slots)
    return [FreeDay(date=day.isoformat(), free=free[day]) for day in sorted(free)]


def _find_after(free_slots: Sequence[Slot], day: date, zone: str) -> Slot | None:
    return next((slot for slot in free_slots if _day(slot, zone) > day), None)


def _query(month: date, zone: str, now: int) -> Query:
    # The query is never empty, even if the month has passed.
    first = max(epoch_ms(clock.moment_of(month, zone)), now)
    last = epoch_ms(clock.moment_of(_next(month), zone)) - 1
    return Query(first, max(first, last), now)


def _day(slot: Slot, zone: str) -> date:
    return clock.local_day(clock.moment_at(slot.start), zone)


def _parse(month: str | None) -> date | None:
    # None for the year 0000.
    try:
        return date.fromisoformat(f"{month}-01") if month else None
    except ValueError:
        return None


def _first_of(day: date) -> date:
    return day.replace(day=1)


def _next(month: date) -> date:
    return _first_of(_first_of(month) + timedelta(days=31))


def _text(day: date) -> str:
    return f"{day:%Y-%m}"
