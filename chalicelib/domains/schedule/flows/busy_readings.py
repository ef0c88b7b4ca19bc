"""Read the calendars in which the staff is busy elsewhere, in jobs (ADR 135).

A reading writes the busy times into the days that slots read, and the job of the next reading. Only
times are stored. A failed reading leaves what the last good one has found.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from datetime import UTC, timedelta
from functools import partial
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.bookings.store import calendar_days
from chalicelib.domains.bookings.store.calendar_days import KeptDays
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.schedule.flows import busy_links
from chalicelib.domains.schedule.rules import reading_times
from chalicelib.domains.schedule.rules.job_kinds import CLEAR_BUSY_TIMES, READ_BUSY_TIMES
from chalicelib.domains.schedule.store import busy_calendars
from chalicelib.domains.schedule.store.busy_calendars import BusyCalendarRow
from chalicelib.domains.services.rules import open_windows
from chalicelib.domains.services.store import opening_hours
from chalicelib.domains.services.store.resources import RESOURCES, ResourceRow
from chalicelib.engine import jobs
from chalicelib.engine.events.outbox import Event
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches
from chalicelib.gateways import fetch, isolation
from chalicelib.gateways.fetch import Validators
from chalicelib.gateways.public_http import FetchError
from chalicelib.gateways.sealing import UnsealError
from chalicelib.lib.spans import Span

MAX_BYTES = 10 * 2**20  # Google sends ten years of events with their notes
MEMORY_BYTES = 512 * 2**20  # of the process that reads a calendar
DAYS_OF_UNIT = 25  # calendar days that one transaction writes
_READER = "chalicelib.domains.schedule.rules.busy_spans:read"
_MINUTE = 60_000
_DAY = timedelta(days=1)
_ALL_DAYS = ("0", "9")

log = logging.getLogger(__name__)


class _Outcome(NamedTuple):
    """What a reading has found: busy times, a problem, or that nothing has changed."""

    first_day: str  # UTC day from which the times are
    spans: Sequence[Span] | None = None  # in milliseconds since 1970 UTC
    skipped: int = 0
    validators: Validators | None = None
    problem: str = ""
    reason: str | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.first_day, self.spans]).encode()).hexdigest()


def stage_reading(unit: UnitOfWork, calendar: BusyCalendarRow, after: timedelta) -> None:
    """Stage the next reading of a calendar, which takes the place of one that waits."""
    calendar.turn = int(calendar.turn) + 1
    calendar.next_at = clock.now() + after
    payload = {"resourceId": calendar.sk, "turn": calendar.turn}
    job_id = f"{calendar.sk}-{calendar.turn}"
    row = jobs.row(READ_BUSY_TIMES, unit.workspace_id, payload, calendar.next_at, job_id=job_id)
    # Not in the process of the request: it may take half a minute.
    unit.create_job(row, at_once=False)
    unit.save(calendar)


@job_handler(READ_BUSY_TIMES)
def read_busy_times(job: Job) -> None:
    """Read a calendar, unless another job has read it since or will read it."""
    calendar = _awaiting(job)
    resource_id = job.payload["resourceId"]
    # A user may have removed or replaced the calendar, or deleted the resource.
    if calendar is None:
        return
    resource = RESOURCES.find(job.workspace_id, record_id=resource_id)
    if resource is None:
        return
    # A suspended or closed workspace offers no times. It may be opened again.
    if workspaces.get(job.workspace_id).halt:
        raise Postponed(clock.now() + reading_times.SELDOM)
    outcome = _read(job.workspace_id, calendar, resource)
    if outcome.spans is not None and outcome.digest != calendar.digest:
        _write_days(job, calendar, outcome)
    failures = int(calendar.failures) + 1 if outcome.problem else 0
    after = _pause(job.workspace_id, resource, failures)
    # Not in the audit log, which a line for each reading would fill. If the answer to the
    # transaction is lost, the next run of the job sees by the turn what has happened.
    run_unit(
        job.workspace_id,
        None,
        partial(_record, job=job, outcome=outcome, zone=resource.timezone, after=after),
    )


@job_handler(CLEAR_BUSY_TIMES)
def clear_busy_times(job: Job) -> None:
    """Remove the busy times of a calendar that was removed."""
    clear_days(job.workspace_id, job.payload["resourceId"])


def clear_days(workspace_id: str, resource_id: str) -> None:
    """Remove the busy times of a resource, unless it has a calendar again."""
    kept = calendar_days.read_kept(workspace_id, resource_id=resource_id)
    clear_read_days(workspace_id, resource_id, kept)


def clear_read_days(workspace_id: str, resource_id: str, kept: KeptDays) -> None:
    """Remove the busy times of a resource, whose days were read, as ``clear_days`` does."""

    def clear(unit: UnitOfWork, batch: Sequence[str]) -> None:
        # A calendar that was added since replaces all days at its first reading.
        if BusyCalendarRow.of(workspace_id, resource_id) is None:
            key = BusyCalendarRow(busy_calendars.partition(workspace_id), resource_id)
            unit.require(key, BusyCalendarRow.pk.does_not_exist())
            calendar_days.stage_elsewhere(unit, resource_id, dict.fromkeys(batch, ""))

    for batch in split_batches(kept.elsewhere, DAYS_OF_UNIT):
        run_unit(workspace_id, None, partial(clear, batch=batch))


def _awaiting(job: Job) -> BusyCalendarRow | None:
    calendar = BusyCalendarRow.of(job.workspace_id, job.payload["resourceId"])
    return calendar if calendar and calendar.turn == job.payload["turn"] else None


def _read(workspace_id: str, calendar: BusyCalendarRow, resource: ResourceRow) -> _Outcome:
    # Booking reaches into yesterday in some zones, and a slot of today may have begun.
    first_day = (clock.now().astimezone(UTC).date() - _DAY).isoformat()
    try:
        link, validators = busy_links.link_of(calendar), busy_links.validators_of(calendar)
    except UnsealError:
        # Another master key is a fault of the stage, which an operator must see.
        log.exception("the link of a calendar cannot be read")
        return _Outcome(first_day, problem="link_lost")
    # Once a day, and in another zone, the whole calendar is read, because days have passed.
    if (calendar.first_day, calendar.zone) != (first_day, resource.timezone):
        validators = None
    try:
        fetched = fetch.fetch(
            link, max_bytes=MAX_BYTES, accept="text/calendar, */*", validators=validators
        )
    except FetchError as error:
        return _Outcome(first_day, problem="not_fetched", reason=error.reason)
    if fetched.unchanged:
        return _Outcome(first_day)
    # Events of our own feed (``booking_links.calendar_event``) come back in some calendars.
    ours = f"@{workspace_id}"
    try:
        text = isolation.call(
            *(_READER, fetched.body, resource.timezone, first_day, ours),
            memory_bytes=MEMORY_BYTES,
        )
    except isolation.RaisedError as error:
        return _Outcome(first_day, problem=str(error.args[0]))
    except isolation.IsolationError:
        log.warning("a calendar was not read", exc_info=True)
        return _Outcome(first_day, problem="too_complex")
    spans, skipped = json.loads(text)
    found = [Span(start * _MINUTE, end * _MINUTE) for start, end in spans]
    return _Outcome(first_day, found, skipped, fetched.validators)


def _write_days(job: Job, calendar: BusyCalendarRow, outcome: _Outcome) -> None:
    resource_id = calendar.sk
    wanted = calendar_days.elsewhere_by_day(outcome.spans or ())
    first, last = (calendar.first_day or _ALL_DAYS[0]), _ALL_DAYS[1]
    stored = calendar_days.read_elsewhere(
        job.workspace_id, resource_id=resource_id, first_day=first, last_day=last
    )
    changes = {
        day: wanted.get(day, "")
        for day in sorted({*stored, *wanted})
        if stored.get(day, "") != wanted.get(day, "")
    }

    def write(unit: UnitOfWork, batch: Sequence[str]) -> None:
        # After a removal nothing may be written, because nobody would remove it.
        if (current := _awaiting(job)) is not None:
            unit.require(current, BusyCalendarRow.turn == current.turn)
            days = {day: changes[day] for day in batch}
            calendar_days.stage_elsewhere(unit, resource_id, days)

    for batch in split_batches(changes, DAYS_OF_UNIT):
        run_unit(job.workspace_id, None, partial(write, batch=batch))


def _record(unit: UnitOfWork, job: Job, outcome: _Outcome, zone: str, after: timedelta) -> None:
    calendar = _awaiting(job)
    if calendar is None:
        return
    now = clock.now()
    calendar.read_at = now
    if outcome.problem:
        _fail(unit, calendar, outcome)
    else:
        calendar.succeeded_at, calendar.failing_since = now, None
        calendar.failures, calendar.told = 0, False
        calendar.problem = calendar.reason = None
    if outcome.spans is not None:
        calendar.digest, calendar.skipped = outcome.digest, outcome.skipped
        calendar.first_day, calendar.zone = outcome.first_day, zone
        busy_links.set_validators(calendar, outcome.validators)
    stage_reading(unit, calendar, after)


def _fail(unit: UnitOfWork, calendar: BusyCalendarRow, outcome: _Outcome) -> None:
    now = clock.now()
    calendar.failures = int(calendar.failures) + 1
    calendar.failing_since = calendar.failing_since or now
    calendar.problem, calendar.reason = outcome.problem, outcome.reason
    if not calendar.told and now - calendar.failing_since >= busy_calendars.TOLD_AFTER:
        calendar.told = True
        unit.outbox.emit(Event("calendar.unreadable", calendar.sk))


def _pause(workspace_id: str, resource: ResourceRow, failures: int) -> timedelta:
    hours = opening_hours.find_schedule(workspace_id, resource_id=resource.id)
    now = clock.now()
    today = clock.local_day(now, resource.timezone)
    opened = open_windows.windows(
        opening_hours.schedule_of(hours),
        resource.timezone,
        today - _DAY,
        last=today + reading_times.NEAR,
    )
    is_open_soon = resource.status == "active" and any(span.end > epoch_ms(now) for span in opened)
    return reading_times.pause(is_open_soon=is_open_soon, failures=failures)
