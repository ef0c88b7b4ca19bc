"""Jobs of 100,000 workspaces, simulated: how late each kind runs.

The simulation has the threads of the runners on AWS, which take the kind with the fewest running
jobs, then the one that has taken the least time, as ``engine.jobs`` does. How long a job takes is
assumed from its waves of requests to the database, and from what it waits for outside.
"""

import heapq
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from chalicelib.domains.reports.flows.counting import NIGHT, NIGHT_MINUTES
from chalicelib.domains.schedule.rules import reading_times
from chalicelib.transports.scheduled_functions import (
    EVENT_RUNNERS,
    EVENT_THREADS,
    PERIOD_SECONDS,
    THREADS,
)
from infra.deploy.stage_config import EVENT_RUNS, JOB_RUNS

WORKSPACES = 100_000
CALENDARS = 30_000
"""Own calendars of the staff, in 30 % of the workspaces."""
BOOKINGS = 10
"""Of a workspace and day, in the 12 hours from ``OPENS``, each with two reminders."""
OPENS, HOURS = 8, 12
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


class _Kind(NamedTuple):
    name: str
    seconds: float
    dues: Iterable[float]
    """Seconds of the day at which the jobs are due."""


def section() -> str:
    """Simulate a day and return this section of the page."""
    rows = [
        *_rows("jobs", JOB_RUNS * THREADS, _kinds_of_main()),
        *_rows("events", EVENT_RUNS * EVENT_RUNNERS * EVENT_THREADS, _kinds_of_events()),
    ]
    return "\n".join(
        [
            f"## Jobs of {WORKSPACES:,} workspaces, simulated",
            "",
            "How late jobs run in a day, by a simulation of the runners, one of which begins each",
            "minute. Assumed are 5 ms for a wave of requests, 15 ms for a transaction, 0.2 s for a",
            f"calendar of another server and 0.1 s for an e-mail; {CALENDARS:,} own calendars;",
            f"{BOOKINGS} bookings a day in each workspace, from {OPENS} to {OPENS + HOURS} o'clock",
            "at full and half hours, each with two reminders by e-mail, whose rate is not limited.",
            "",
            "| queue, threads | job | takes | a day | within its minute | latest |",
            "|---|---|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )


def _kinds_of_main() -> list[_Kind]:
    drawn = random.Random(1)  # noqa: S311  no secret
    nights = (NIGHT * _HOUR + drawn.randrange(NIGHT_MINUTES) * _MINUTE for _ in range(WORKSPACES))
    pause = reading_times.SOON.total_seconds()
    readings = (
        first + number * pause
        for first in (drawn.uniform(0, pause) for _ in range(CALENDARS))
        for number in range(int(_DAY // pause))
    )
    return [
        # Lease and deletion, 13 waves after a day with bookings, two transactions.
        _Kind("count of reports", 2 * 0.005 + 13 * 0.005 + 2 * 0.015, nights),
        # Lease and deletion, four waves, the other server, a transaction.
        _Kind("reading of a calendar", 2 * 0.005 + 4 * 0.005 + 0.2 + 0.015, readings),
    ]


def _kinds_of_events() -> list[_Kind]:
    drawn = random.Random(2)  # noqa: S311  no secret
    halves = HOURS * 2
    reminders = (
        (OPENS * _HOUR + drawn.randrange(halves) * _HOUR / 2)
        for _ in range(2 * WORKSPACES * BOOKINGS)
    )
    # Lease and deletion, six waves, the mail, two transactions.
    return [_Kind("reminder", 2 * 0.005 + 6 * 0.005 + 0.1 + 2 * 0.015, reminders)]


def _rows(queue: str, threads: int, kinds: list[_Kind]) -> Iterable[str]:
    lateness = _simulate(threads, kinds)
    for kind in kinds:
        late = lateness[kind.name]
        in_minute = sum(seconds <= PERIOD_SECONDS for seconds in late) / len(late)
        yield (
            f"| {queue}, {threads} | {kind.name} | {kind.seconds * 1000:.0f} ms | {len(late):,} "
            f"| {in_minute:.1%} | {max(late):,.0f} s |"
        )


def _simulate(threads: int, kinds: list[_Kind]) -> dict[str, list[float]]:
    """Return by how many seconds after the next start of a runner each job begins."""
    seconds = {kind.name: kind.seconds for kind in kinds}
    # A runner sees what is due when it begins.
    coming = sorted(
        (-(-due // PERIOD_SECONDS) * PERIOD_SECONDS, kind.name)
        for kind in kinds
        for due in kind.dues
    )
    waiting: defaultdict[str, deque[float]] = defaultdict(deque)
    lateness: defaultdict[str, list[float]] = defaultdict(list)
    running, spent = Counter[str](), defaultdict[str, float](float)
    ends: list[tuple[float, str]] = []
    now, next_due = 0.0, 0
    while next_due < len(coming) or any(waiting.values()):
        while next_due < len(coming) and coming[next_due][0] <= now:
            due, name = coming[next_due]
            waiting[name].append(due)
            next_due += 1
        names = [name for name, jobs in waiting.items() if jobs]
        if names and len(ends) < threads:
            name = min(names, key=lambda name: (running[name], spent[name]))
            lateness[name].append(now - waiting[name].popleft())
            running[name] += 1
            heapq.heappush(ends, (now + seconds[name], name))
            continue
        if ends and (names or next_due >= len(coming) or ends[0][0] <= coming[next_due][0]):
            now, name = heapq.heappop(ends)
            running[name] -= 1
            spent[name] += seconds[name]
        else:
            now = coming[next_due][0]
    return lateness
