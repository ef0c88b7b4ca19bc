"""Parse the opening hours of a resource, and compute the windows in which it is open.

``parse`` turns rules into a ``Schedule``, and ``windows`` converts a ``Schedule`` to UTC. Both use
local wall time as minutes after a date's midnight. 1440 is the next midnight, and higher values are
on the next day.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from chalicelib.core import clock
from chalicelib.lib.spans import Span, merge
from chalicelib.lib.zoned_times import WEEKDAYS

MAX_INTERVALS = 24  # of one date

_NAMES = (*WEEKDAYS, "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = 24 * 60
_TIME = re.compile(r"(\d{1,2}):([0-5]\d)", re.ASCII)
_A_DAY = timedelta(days=1)
_Date = date  # Alias for use where a field is named date.


class ScheduleError(ValueError):
    """The invalid ``field`` of the rule at ``index``, and the problem."""

    def __init__(self, index: int, field: str, *, message: str) -> None:
        super().__init__(f"rules.{index}.{field}: {message}")
        self.index = index
        self.field = field
        self.message = message


class Interval(NamedTuple):
    """Opening hours as ``HH:MM``. ``24:00`` is midnight."""

    start: str
    end: str  # on the next day if at or before the start


class Rule(NamedTuple):
    """Opening hours of one weekday, of several, or of one date."""

    weekday: int | str | None = None  # ``mon`` to ``sun``, or 0 to 7, where 0 and 7 are Sunday
    weekdays: Sequence[int | str] | None = None
    date: _Date | None = None
    intervals: Sequence[Interval] | None = None  # empty: closed
    start: str | None = None  # with ``end``: the short form of a single interval
    end: str | None = None


class Schedule(NamedTuple):
    """Opening hours, in minutes after midnight, sorted and without overlaps."""

    weekly: tuple[tuple[Span, ...], ...] = ((),) * 7  # Monday first
    # A date's hours replace the hours of its weekday.
    dates: Mapping[date, tuple[Span, ...]] = MappingProxyType({})

    @property
    def has_hours(self) -> bool:
        return any(self.weekly) or any(self.dates.values())

    def get_hours(self, day: date) -> tuple[Span, ...]:
        # The hours that start on the date.
        return self.dates.get(day, self.weekly[day.weekday()])


def parse(rules: Sequence[Rule]) -> Schedule:
    """Return the schedule that the rules describe, or raise ScheduleError.

    Several rules of one weekday are combined. A date has only one rule. Overlapping intervals of a
    day are merged. Adjacent intervals are not merged, because each interval's start begins its own
    grid of slots.
    """
    weekly: list[tuple[Span, ...]] = [()] * 7
    dates: dict[date, tuple[Span, ...]] = {}
    rule_of: dict[date, int] = {}
    for index, rule in enumerate(rules):
        hours = _hours(index, rule)
        for weekday in _weekdays(index, rule):
            both = tuple(merge([*weekly[weekday], *hours], touching=False))
            if len(both) > MAX_INTERVALS:
                _raise_too_many(index, number=len(both))
            weekly[weekday] = both
        if rule.date is not None:
            if rule.date in dates:
                message = (
                    f"expected one rule per date with all its intervals, but "
                    f"rules.{rule_of[rule.date]} is also for {rule.date}; merge the two rules"
                )
                raise ScheduleError(index, "date", message=message)
            rule_of[rule.date] = index
            dates[rule.date] = tuple(merge(hours, touching=False))
    return Schedule(tuple(weekly), dates)


def merge_weeks(schedules: Sequence[Schedule]) -> list[tuple[Span, ...]]:
    """Return the hours of each weekday in which at least one of the schedules is open."""
    return [
        tuple(merge((span for hours in schedules for span in hours.weekly[day]), touching=True))
        for day in range(len(WEEKDAYS))
    ]


def canonical(schedule: Schedule) -> list[Rule]:
    """Return the rules that ``parse`` converts back: one per weekday, then one per date."""
    return [
        *(
            Rule(weekday=name, intervals=intervals(hours))
            for name, hours in zip(WEEKDAYS, schedule.weekly, strict=True)
            if hours
        ),
        *(
            Rule(date=day, intervals=intervals(hours))
            for day, hours in sorted(schedule.dates.items())
        ),
    ]


def windows(schedule: Schedule, timezone: str, first: date, *, last: date) -> list[Span]:
    """Return the opening hours that start on the local dates ``first`` to ``last``, sorted.

    Spans are in milliseconds since 1970 UTC. They may overlap, such as yesterday's overnight hours
    and today's early ones. If a clock change skips an hour, a skipped time uses the offset before
    the change. If a clock change repeats an hour, a repeated time means its first occurrence (RFC
    5545, 3.3.5). Hours that are skipped entirely are left out.
    """
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(timezone)
    spans: list[Span] = []
    for ahead in range((last - first).days + 1):
        day = first + ahead * _A_DAY
        midnight = datetime.combine(day, time(), zone)
        for hours in schedule.get_hours(day):
            # Arithmetic within one zone uses wall time, and the result has fold 0.
            start, end = (clock.epoch_ms(midnight + timedelta(minutes=minute)) for minute in hours)
            if start < end:
                spans.append(Span(start, end))
    return sorted(spans)


def fits(schedule: Schedule, minutes: int) -> bool:
    """Return whether any day's opening hours are long enough. Clock changes are ignored."""
    # The time must begin with an interval of opening hours. It may continue into adjacent ones.
    monday = date(2001, 1, 1)
    weekly = windows(Schedule(schedule.weekly), "UTC", monday, last=monday + 9 * _A_DAY)
    if _has_room(weekly, minutes):
        return True
    return any(
        _has_room(windows(schedule, "UTC", day - 2 * _A_DAY, last=day + 2 * _A_DAY), minutes)
        for day, hours in schedule.dates.items()
        if hours
    )


def _has_room(spans: Sequence[Span], minutes: int) -> bool:
    # A merged block is longest from its own start, which is the start of a span.
    return any(block.end - block.start >= minutes * 60_000 for block in merge(spans, touching=True))


def _weekdays(index: int, rule: Rule) -> set[int]:
    # Monday is 0. A rule for a date has none.
    kinds = [rule.weekday is not None, rule.weekdays is not None, rule.date is not None]
    if sum(kinds) != 1:
        raise ScheduleError(
            index, "weekday", message="expected exactly one of weekday, weekdays and date"
        )
    if rule.weekdays is not None:
        if not rule.weekdays:
            raise ScheduleError(index, "weekdays", message="expected at least one weekday")
        return {
            _weekday(index, f"weekdays.{place}", weekday)
            for place, weekday in enumerate(rule.weekdays)
        }
    return set() if rule.weekday is None else {_weekday(index, "weekday", rule.weekday)}


def _weekday(index: int, field: str, value: int | str) -> int:
    # AI clients send numbers as strings, because a tool's argument has one type.
    name = str(value).strip().lower()
    if name in _NAMES:
        return _NAMES.index(name) % 7
    if re.fullmatch("[0-7]", name):
        return (int(name) - 1) % 7
    raise ScheduleError(
        index, field, message="expected mon to sun, or 0 to 7, where 0 and 7 are Sunday"
    )


def _hours(index: int, rule: Rule) -> list[Span]:
    # In the order received.
    if rule.start is not None or rule.end is not None:
        if rule.intervals is not None:
            raise ScheduleError(
                index, "intervals", message="expected either intervals or start and end"
            )
        if rule.start is None or rule.end is None:
            missing = "start" if rule.start is None else "end"
            raise ScheduleError(
                index, missing, message="expected start and end, received only one of them"
            )
        return [_span(index, "", Interval(rule.start, rule.end))]
    if rule.intervals is None:
        message = "expected intervals, such as [{start: 09:00, end: 18:00}]; [] means closed"
        raise ScheduleError(index, "intervals", message=message)
    if len(rule.intervals) > MAX_INTERVALS:
        _raise_too_many(index, number=len(rule.intervals))
    return [
        _span(index, f"intervals.{place}.", interval)
        for place, interval in enumerate(rule.intervals)
    ]


def _raise_too_many(index: int, *, number: int) -> NoReturn:
    message = f"expected at most {MAX_INTERVALS} intervals for a day, received {number}"
    raise ScheduleError(index, "intervals", message=message)


def _span(index: int, prefix: str, interval: Interval) -> Span:
    start = _minutes(interval.start)
    if start is None or start == _DAY:
        raise ScheduleError(index, f"{prefix}start", message="expected a time from 00:00 to 23:59")
    end = _minutes(interval.end)
    if end is None:
        raise ScheduleError(index, f"{prefix}end", message="expected a time from 00:00 to 24:00")
    if start == end:
        message = (
            "expected an end that differs from the start; for a whole day, send 00:00 to 24:00"
        )
        raise ScheduleError(index, f"{prefix}end", message=message)
    return Span(start, end if end > start else end + _DAY)


def _minutes(text: str) -> int | None:
    match = _TIME.fullmatch(text.strip())
    minutes = int(match[1]) * 60 + int(match[2]) if match else None
    return minutes if minutes is not None and minutes <= _DAY else None


def intervals(hours: Sequence[Span]) -> tuple[Interval, ...]:
    """Return a day's opening hours as wall times."""
    return tuple(
        Interval(_format_time(span.start), _format_time(span.end))
        for merged in hours
        for span in _expressible(merged)
    )


def _expressible(span: Span) -> Iterator[Span]:
    # Merged intervals can be longer than a day, such as 00:00-23:59 with 23:58-23:00.
    if span.end - span.start < _DAY or span == (0, _DAY):
        yield span
    else:
        yield Span(span.start, _DAY)
        yield Span(_DAY - 1, span.end)


def _format_time(minutes: int) -> str:
    of_day = minutes if minutes <= _DAY else minutes - _DAY
    return f"{of_day // 60:02}:{of_day % 60:02}"
