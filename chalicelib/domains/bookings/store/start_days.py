"""Change dated starts together with the calendar days that have them (ADR 141)."""

from collections.abc import Iterable, Sequence

from chalicelib.domains.bookings.store.calendar_days import CalendarDays
from chalicelib.domains.services.rules.starts import DatedStart
from chalicelib.domains.services.store.dated_starts import DatedStartRow
from chalicelib.engine.unit import UnitOfWork

BATCH_SIZE = 20  # dates that one transaction of a job removes, each with up to three days


def stage(unit: UnitOfWork, days: CalendarDays, changed: Iterable[tuple[str, DatedStart]]) -> None:
    """Stage starts, given with their resource ids, which replace those at their times."""
    for resource_id, dated in changed:
        days.set_start(resource_id, dated)
        unit.save(DatedStartRow.of(unit.workspace_id, resource_id, dated))
    days.stage(unit)


def stage_removal(unit: UnitOfWork, days: CalendarDays, rows: Iterable[DatedStartRow]) -> None:
    """Stage the removal of starts. Bookings at them stay."""
    for row in rows:
        days.set_start(row.resource_id, row.dated, removed=True)
        unit.delete(row)
    days.stage(unit)


def remove_all(unit: UnitOfWork, rows: Sequence[DatedStartRow]) -> None:
    """Stage the removal of starts whose service or resource is deleted. Bookings stay."""
    days = CalendarDays(
        unit.workspace_id, [(row.resource_id, row.dated.buffered) for row in rows], unit.rows
    )
    stage_removal(unit, days, rows)
