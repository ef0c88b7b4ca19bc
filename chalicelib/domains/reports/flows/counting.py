"""Bring the sums of a workspace up to date when they are read (ADR 143).

The audit log names the bookings that have changed since the last time. A transaction subtracts what
each of them had added, adds what it adds now, and says how far the log is counted. A booking itself
writes nothing for its sums.

The first reading passes over all bookings. What takes longer than a request is continued by the
next one and by a job, which also counts the changes of each day at night.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from chalicelib.core import clock
from chalicelib.core.deadline import Deadline
from chalicelib.core.errors import NotFoundError
from chalicelib.core.ids import first_id_at, moment_of
from chalicelib.core.jobs import Job, Postponed, job_handler
from chalicelib.domains.bookings.store.bookings import BOOKINGS
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.reports.flows import booked_facts
from chalicelib.domains.reports.rules import figures
from chalicelib.domains.reports.rules.figures import Counts
from chalicelib.domains.reports.rules.job_kinds import COUNT_REPORTS
from chalicelib.domains.reports.store import sums
from chalicelib.domains.reports.store.sums import CountedRow, StateRow, Sums, Week
from chalicelib.domains.services.store.resources import RESOURCES
from chalicelib.engine import audit, jobs
from chalicelib.engine.transactions import TransactionTooLargeError
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches

# A change is written at most this long after the moment in its id: a request ends after 29 seconds,
# and the clocks of two processes differ by less than a second.
OVERLAP = timedelta(minutes=5)
# Older changes may be gone from the log, which keeps them for 90 days.
MAX_AGE = audit.RETENTION - timedelta(days=5)
PAGE = 500  # changes of one query
# Bookings of one transaction. Each has a row of its own and may touch the weeks before and after
# its move, of its payments, refunds and notes.
BATCH = 12
MAX_SEEN = 300
STORED_EACH = timedelta(hours=1)  # how often the place in the log is stored without any change
NIGHT = 2  # o'clock in UTC, when the first jobs run
NIGHT_MINUTES = 180  # over which the jobs of all workspaces are spread
UNREAD_FOR = timedelta(days=30)  # after which the job ends
JOB_SECONDS = 120.0
CONTINUE_AFTER = timedelta(minutes=1)


class UpToDate(NamedTuple):
    """The sums, and whether all bookings and changes are in them."""

    sums: Sums
    as_of: datetime
    is_complete: bool


def read(workspace: WorkspaceRow, read_sums: Callable[[], Sums], seconds: float = 8.0) -> UpToDate:
    """Count what has changed, for some seconds at most, and return the sums."""
    limit, started = Deadline(seconds), clock.now()
    found = read_sums()
    catching_up = _CatchingUp(workspace, found.state, limit)
    catching_up.run()
    catching_up.note_reading()
    if catching_up.has_changed:
        found = read_sums()
    state = found.state or catching_up.required_state
    if not catching_up.is_current:
        return UpToDate(found, _moment(state.cursor), is_complete=False)
    return UpToDate(found, started, is_complete=state.walked_to is None)


class _CatchingUp:
    def __init__(self, workspace: WorkspaceRow, state: StateRow | None, limit: Deadline) -> None:
        self.workspace, self.limit = workspace, limit
        self.state = state
        self.has_changed = False  # The sums are no longer those that were read.
        self.is_current = False  # All changes are counted.
        self._walked_at_once = BATCH

    def run(self) -> None:
        """Count the changes, then go on with the first count, until the time has passed."""
        now = clock.now()
        state = self.state
        if state is None or not _is_usable(state, self.workspace, now):
            self._write(self._begin)
            self.has_changed = True
        self._count_changes(now)
        while not self.is_done and self.is_current and not self.limit.passed:
            self.has_changed = True
            try:
                self._write(self._walk)
            except TransactionTooLargeError:
                if self._walked_at_once == 1:
                    raise
                self._walked_at_once //= 2

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to count."""
        return self.is_current and self.required_state.walked_to is None

    def note_reading(self) -> None:
        """Store that the sums were read, once a day, and stage the job that keeps them."""
        state = self.required_state
        if not state.has_job or state.read_at < clock.now() - timedelta(days=1):
            self._write(self._note_reading)

    @property
    def required_state(self) -> StateRow:
        """The state, which exists once something was counted."""
        assert self.state is not None  # noqa: S101  ``run`` begins with it
        return self.state

    def _write(self, stage: Callable[[UnitOfWork], StateRow]) -> None:
        # Not in the audit log: a sum is no change of the workspace. If an answer is lost, the next
        # reading finds by the rows what was counted.
        self.state = run_unit(self.workspace.id, None, stage)

    def _begin(self, unit: UnitOfWork) -> StateRow:
        now, workspace = clock.now(), self.workspace
        state = sums.find_state(workspace.id)
        if state is not None and _is_usable(state, workspace, now):
            return state  # Another reader was first.
        state = state or StateRow(sums.partition(workspace.id), sums.STATE)
        state.timezone, state.cursor, state.walked_to = (
            *(workspace.timezone, first_id_at(now - OVERLAP), ""),
        )
        state.seen, state.read_at = [], now
        known = {entry.id for entry in RESOURCES.entries(workspace.id)}
        state.resource_ids = sorted(known.union(state.resource_ids or ()))
        unit.save(state)
        return state

    def _count_changes(self, now: datetime) -> None:
        state = self.required_state
        position, seen = state.cursor, {*(state.seen or ())}
        counted: list[str] = []  # ids of the log
        resource_ids: set[str] = set()
        while True:
            page = audit.after(self.workspace.id, position, PAGE)
            new = [change for change in page if change.id not in seen]
            resource_ids |= {*_ids("resource:", new)} - {*(state.resource_ids or ())}
            for batch in split_batches(dict.fromkeys(_ids("booking:", new)), BATCH):
                if self.limit.passed and self.has_changed:
                    return  # The next reading continues with this page.
                self._count(batch)
            counted += [change.id for change in new if _ids("booking:", [change])]
            if page:
                position = page[-1].id
            if len(page) < PAGE:
                break
            self._write(
                partial(
                    self._advance,
                    now=now,
                    position=position,
                    counted=counted,
                    resource_ids=resource_ids,
                )
            )
        self.is_current = True
        # Most readings find nothing new, and write nothing.
        is_old = _moment(state.cursor) < now - OVERLAP - STORED_EACH
        if is_old or resource_ids or counted:
            self._write(
                partial(
                    self._advance,
                    now=now,
                    position="~",
                    counted=counted,
                    resource_ids=resource_ids,
                )
            )

    def _count(self, booking_ids: Sequence[str]) -> None:
        former = self.required_state.version

        def stage(unit: UnitOfWork) -> StateRow:
            state = self._fresh_state()
            if _stage_counts(unit, self.workspace, state, booking_ids):
                unit.save(state)
                return state
            # Another reader may have counted them after the state was read. Its version says so.
            return self._fresh_state()

        try:
            self._write(stage)
        except TransactionTooLargeError:
            if len(booking_ids) == 1:
                raise
            for batch in split_batches(booking_ids, len(booking_ids) // 2):
                self._count(batch)
        # The version is another one, too, if another reader has counted meanwhile.
        self.has_changed |= former != self.required_state.version

    def _advance(
        self,
        unit: UnitOfWork,
        now: datetime,
        position: str,
        counted: Iterable[str],
        resource_ids: Iterable[str],
    ) -> StateRow:
        state = self._fresh_state()
        # A change with an earlier id may still be on its way.
        state.cursor = max(state.cursor, min(position, first_id_at(now - OVERLAP)))
        seen = sorted({*(state.seen or ()), *counted})
        state.seen = [change_id for change_id in seen if change_id > state.cursor][-MAX_SEEN:]
        state.resource_ids = sorted({*(state.resource_ids or ()), *resource_ids})
        unit.save(state)
        return state

    def _walk(self, unit: UnitOfWork) -> StateRow:
        state = self._fresh_state()
        if state.walked_to is None:
            return state
        size = self._walked_at_once
        rows = BOOKINGS.read_after(self.workspace.id, record_id=state.walked_to, limit=size)
        _stage_counts(unit, self.workspace, state, [row.id for row in rows])
        state.walked_to = rows[-1].id if len(rows) == size else None
        unit.save(state)
        return state

    def _note_reading(self, unit: UnitOfWork) -> StateRow:
        state = self._fresh_state()
        state.read_at = clock.now()
        if not state.has_job:
            state.has_job = True
            due = _next_night(self.workspace.id) if self.is_done else clock.now() + CONTINUE_AFTER
            job = jobs.row(COUNT_REPORTS, self.workspace.id, {}, due)
            unit.create_job(job, at_once=False)
        unit.save(state)
        return state

    def _fresh_state(self) -> StateRow:
        state = sums.find_state(self.workspace.id)
        # The workspace may be emptied meanwhile. What is counted then is begun again.
        return state or self.required_state


def _stage_counts(
    unit: UnitOfWork,
    workspace: WorkspaceRow,
    state: StateRow,
    booking_ids: Sequence[str],
) -> bool:
    """Stage what bookings add now instead of what they had added. Returns whether that differs."""
    booked = {
        each.row.id: each for each in booked_facts.read(workspace, state.timezone, booking_ids)
    }
    counted = sums.fetch_counted(workspace.id, {*booking_ids, *booked})
    change, names = Counts(), dict[str, str]()
    for booking_id in {*booking_ids, *booked}:
        each, row = booked.get(booking_id), counted.get(booking_id)
        new = figures.counts_of(each.facts) if each else {}
        former = row.counts if row else {}
        if each:
            names |= _names(each)
        if new != former:
            change = figures.add(change, figures.difference(former, new))
            unit.save(CountedRow(sums.counted_partition(workspace.id), booking_id, counts=new))
    if not change:
        return False
    weeks = figures.by_week(change)
    for monday, week_row in sums.fetch_weeks(workspace.id, weeks).items():
        week = Week.from_record(week_row)
        week_row.packed = Week(figures.add(week.days, weeks[monday]), week.names | names).pack()
        unit.save(week_row)
    return True


def _names(booked: booked_facts.Booked) -> dict[str, str]:
    row = booked.row
    return {
        f"{figures.SERVICE}:{row.service_id}": row.service_name,
        f"{figures.RESOURCE}:{row.resource_id}": row.resource_name,
    }


def _ids(prefix: str, changes: Iterable[audit.Touched]) -> list[str]:
    return [
        resource.removeprefix(prefix)
        for change in changes
        for resource in change.resources
        if resource.startswith(prefix)
    ]


def _is_usable(state: StateRow, workspace: WorkspaceRow, now: datetime) -> bool:
    return state.timezone == workspace.timezone and _moment(state.cursor) > now - MAX_AGE


def _moment(change_id: str) -> datetime:
    return moment_of(change_id)


def _next_night(workspace_id: str) -> datetime:
    # Jobs that are all due at one moment would run late.
    minute = zlib.crc32(workspace_id.encode()) % NIGHT_MINUTES
    now = clock.now().astimezone(UTC)
    night = now.replace(hour=NIGHT, minute=0, second=0, microsecond=0) + timedelta(minutes=minute)
    return night if night > now else night + timedelta(days=1)


@job_handler(COUNT_REPORTS)
def count_reports(job: Job) -> None:
    """Count what has changed since the last time. Nobody has asked for a month: end."""
    try:
        workspace = workspaces.get(job.workspace_id)
    except NotFoundError:
        return
    state = sums.find_state(workspace.id)
    if state is None or run_unit(workspace.id, None, _stage_end):
        return
    catching_up = _CatchingUp(workspace, state, Deadline(JOB_SECONDS))
    catching_up.run()
    raise Postponed(
        _next_night(workspace.id) if catching_up.is_done else clock.now() + CONTINUE_AFTER
    )


def _stage_end(unit: UnitOfWork) -> bool:
    state = sums.find_state(unit.workspace_id)
    if state is None or state.read_at > clock.now() - UNREAD_FOR:
        return False
    # The next reading writes another job.
    state.has_job = False
    unit.save(state)
    return True
