"""Benchmark of the slot search. It measures only CPU time, because the rules read no database."""

import json
from datetime import UTC, datetime

from chalicelib.domains.bookings.rules.schedule import Interval, Rule, parse
from chalicelib.domains.bookings.rules.slots import BusyEntry, Calendar, Query, ServiceRules, union
from chalicelib.lib.zoned_times import WEEKDAYS
from infra.bench.timing import cpu_ms

DAYS = 31
BOOKINGS = 500
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
MONDAY = int(datetime(2027, 3, 1, tzinfo=UTC).timestamp()) * 1000
SERVICE = ServiceRules(60, 15, buffer_before_min=5, buffer_after_min=10)
HOURS = [Interval("09:00", "13:00"), Interval("14:00", "21:00")]


def section() -> str:
    """Measure the slot search, and return the section for docs/benchmarks.md."""
    query = Query(MONDAY, MONDAY + DAYS * DAY - 1, MONDAY - DAY)
    calendars = [_calendar(str(number)) for number in range(10)]
    rows = []
    json_ms = cpu_ms(lambda: json.loads(json.dumps(calendars[0].busy)))
    for count in (1, 10):
        searched = calendars[:count]
        milliseconds = cpu_ms(lambda searched=searched: union(SERVICE, searched, query))  # type: ignore[misc]
        found = len(union(SERVICE, searched, query).slots)
        rows.append(f"| {count} | {found} | {milliseconds:.1f} ms | {milliseconds / json_ms:.1f} |")
    return f"""\
## Slots

CPU time of the slot rules for {DAYS} days, with {BOOKINGS} bookings for each resource,
{SERVICE.step_min}-minute steps, buffers and a clock change. For comparison, the bookings of one
resource are written and read as JSON. The last column is the ratio of the two times.

| resources | slots | time | ratio to JSON |
|---|---|---|---|
{chr(10).join(rows)}
"""


def _calendar(name: str) -> Calendar:
    """Return the calendar of a resource whose days are half full. Bookings differ by resource."""
    busy = []
    for number in range(BOOKINGS):
        day, position = divmod(number, 16)
        start = MONDAY + day * DAY + (6 * 60 + position * 45 + int(name) * 5) * MINUTE
        busy.append(BusyEntry(f"{name}-{number}", start, start + 30 * MINUTE, 0, 5))
    rules = [Rule(weekdays=WEEKDAYS, intervals=HOURS)]
    return Calendar(name, "Europe/Berlin", parse(rules), capacity=2, busy=busy)
