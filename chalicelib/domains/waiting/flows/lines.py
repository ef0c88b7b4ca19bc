"""Change waiting lines: somebody joins or leaves, a free time is offered, an offer ends (ADR 142).

Every change is one transaction that writes the line over the version that was read. What the line
needs next is a job in the same transaction, so a process that dies in between loses nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import partial

from chalicelib.core import clock
from chalicelib.core.clock import epoch_ms, iso
from chalicelib.core.jobs import Job, job_handler
from chalicelib.domains.bookings.rules.job_kinds import DAYS_CHANGED
from chalicelib.domains.bookings.store import booked_times, calendar_days
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.services.store.services import SERVICES, ServiceRow
from chalicelib.domains.waiting.flows.day_search import DaySearch
from chalicelib.domains.waiting.rules import line_steps
from chalicelib.domains.waiting.rules.job_kinds import ATTEND_LINE, TELL_WAITING
from chalicelib.domains.waiting.rules.line_steps import FreeTimes, Line, Waiting
from chalicelib.domains.waiting.store import waiting_lines
from chalicelib.domains.waiting.store.waiting_lines import (
    LinePlace,
    WaitingLineRow,
    WaitingRow,
)
from chalicelib.engine import jobs
from chalicelib.engine.reading import Rows
from chalicelib.engine.unit import UnitOfWork, run_unit, split_batches
from chalicelib.lib.spans import Span

JOINED, OFFERED = "joined", "offered"  # what ``TELL_WAITING`` is about
DAYS_OF_UNIT = 25  # calendar days that one transaction marks
# A booking may reach into a line's day from so many UTC days away: zones, its length, buffers.
_DAYS_AROUND = timedelta(days=3)
_MINUTE = 60_000


def stage_joining(unit: UnitOfWork, line_row: WaitingLineRow, row: WaitingRow) -> None:
    """Stage one who waits, at the end of a line that was read, and the jobs that follow.

    The caller has checked that the line has room, and that the person is not in it.
    """
    line = line_row.line
    joined = line._replace(waiting=(*line.waiting, Waiting(row.sk, row.resource_id)))
    line_row.set_line(joined)
    # At once: the job marks the days of the line, and finds a time that has become free meanwhile.
    _stage_check(unit, line_row, clock.now())
    unit.save(line_row)
    unit.create(row)
    _stage_message(unit, row.sk, JOINED)


def stage_leaving(unit: UnitOfWork, rows: Iterable[WaitingRow]) -> None:
    """Stage that some leave their lines. If one of them has an offer, the next one gets it."""
    by_place: dict[LinePlace, list[WaitingRow]] = {}
    for row in rows:
        by_place.setdefault(row.place, []).append(row)
    for place, leaving in by_place.items():
        ids = {row.sk for row in leaving}
        line_row = WaitingLineRow.of(unit.workspace_id, place)
        if line_row is not None:
            line = line_row.line
            remaining = tuple(each for each in line.waiting if each.id not in ids)
            offer = line.offer if line.offer and line.offer.waiting_id not in ids else None
            line_row.set_line(Line(remaining, offer))
            if offer != line.offer:
                _stage_check(unit, line_row, clock.now())
            unit.save(line_row)
        for row in leaving:
            unit.delete(row)


@job_handler(DAYS_CHANGED)
def look_at_days(job: Job) -> None:
    """Attend to the lines that a change of some resources' UTC days may concern."""
    days = [date.fromisoformat(day) for day in job.payload["days"]]
    changed = set(job.payload["resourceIds"])
    found = waiting_lines.lines_between(
        job.workspace_id, min(days) - _DAYS_AROUND, last=max(days) + _DAYS_AROUND
    )
    services = SERVICES.fetch(job.workspace_id, sorted({row.place.service_id for row in found}))
    touched = {each.id for each in services if changed.intersection(each.resource_ids)}
    for row in found:
        if row.place.service_id in touched:
            attend(job.workspace_id, row.place)


@job_handler(ATTEND_LINE)
def attend_line(job: Job) -> None:
    """Attend to a line, unless another job was made for it since."""
    place = LinePlace(date.fromisoformat(job.payload["day"]), job.payload["serviceId"])
    row = WaitingLineRow.of(job.workspace_id, place)
    if row is not None and row.check_at and iso(row.check_at) == job.payload["at"]:
        attend(job.workspace_id, place)


def attend(workspace_id: str, place: LinePlace) -> None:
    """Offer a free time to the first of a line, if no offer stands, and end what has ended."""
    # A change from now on makes a job, and the search below sees every earlier one.
    _mark_days(workspace_id, place)
    # If the answer to the transaction is lost, the next run sees in the line what has happened.
    run_unit(workspace_id, None, partial(_attend, place=place))


def _mark_days(workspace_id: str, place: LinePlace) -> None:
    def mark(unit: UnitOfWork, spans: Sequence[tuple[str, Span]]) -> None:
        calendar_days.mark_awaited(unit, spans)

    search = _search(workspace_id, place, Rows())
    for batch in split_batches(search.resource_spans if search else (), DAYS_OF_UNIT // 4):
        run_unit(workspace_id, None, partial(mark, spans=batch))


def _search(workspace_id: str, place: LinePlace, rows: Rows) -> DaySearch | None:
    service = rows.find(ServiceRow, SERVICES.key(workspace_id, record_id=place.service_id))
    return DaySearch.create(workspace_id, service, place, rows) if service else None


def _attend(unit: UnitOfWork, place: LinePlace) -> None:
    workspace_id, now = unit.workspace_id, epoch_ms(clock.now())
    row = WaitingLineRow.of(workspace_id, place)
    if row is None or not row.waiting:
        return
    rows = waiting_lines.fetch(workspace_id, (each.id for each in row.line.waiting))
    search = _search(workspace_id, place, unit.rows)
    # A deleted service has no times any more.
    ends = search.period.end if search else now
    step = line_steps.attend(
        row.line,
        _free_times(workspace_id, search) if search else {},
        booked=_booked(workspace_id, place, search, rows) if search else (),
        now=now,
        ends=ends,
        notice=search.search.rules.min_notice_min * _MINUTE if search else 0,
    )
    _stage_step(unit, row, step, rows)


def _free_times(workspace_id: str, search: DaySearch) -> FreeTimes:
    # A suspended or closed workspace offers no times. It may be opened again.
    if workspaces.get(workspace_id).halt:
        return {}
    return {slot.start: frozenset(slot.seats) for slot in search.find().slots}


def _booked(
    workspace_id: str, place: LinePlace, search: DaySearch, rows: Sequence[WaitingRow]
) -> set[str]:
    # A client who had a booking before waits for another time of the day.
    booked = booked_times.of_service(workspace_id, place.service_id, search.period)
    return {
        row.sk
        for row in rows
        for booking in booked
        if booking.created_at >= row.created_at
        and row.is_of(booking.client_id, (booking.client_email, booking.client_phone))
    }


def _stage_step(
    unit: UnitOfWork, row: WaitingLineRow, step: line_steps.Step, rows: Sequence[WaitingRow]
) -> None:
    if step.line == row.line and row.check_at is not None and row.check_at > clock.now():
        return
    staying = {each.id for each in step.line.waiting}
    for waiting in rows:
        if waiting.sk not in staying:
            unit.delete(waiting)
    row.set_line(step.line)
    if step.check_at is not None:
        _stage_check(unit, row, clock.moment_at(step.check_at))
    unit.save(row)
    if step.is_new_offer and step.line.offer is not None:
        _stage_message(unit, step.line.offer.waiting_id, OFFERED, step.line.offer.until)


def _stage_check(unit: UnitOfWork, row: WaitingLineRow, at: datetime) -> None:
    # Two jobs of one time are one job.
    if row.check_at == at:
        return
    row.check_at = at
    place = row.place
    payload = {"day": place.day.isoformat(), "serviceId": place.service_id, "at": iso(at)}
    job_id = f"{unit.workspace_id}-{place.sk}-{epoch_ms(at)}"
    unit.save(jobs.row(ATTEND_LINE, unit.workspace_id, payload, at, job_id=job_id))


def _stage_message(unit: UnitOfWork, waiting_id: str, about: str, until: int | None = None) -> None:
    payload = {"waitingId": waiting_id, "about": about, "until": until}
    job_id = f"{waiting_id}-{until or about}"
    unit.save(jobs.row(TELL_WAITING, unit.workspace_id, payload, job_id=job_id))
