"""Read the figures of a period, of which each report shows a part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property, partial
from typing import NamedTuple

from pydantic import Field

from chalicelib.core import clock, deadline
from chalicelib.core.wire.schema import Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.identity.flows.periods import period
from chalicelib.domains.identity.store import workspace_metrics, workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.reports.flows import counting, open_hours
from chalicelib.domains.reports.flows.counting import UpToDate
from chalicelib.domains.reports.flows.open_hours import OpenResource
from chalicelib.domains.reports.rules import figures
from chalicelib.domains.reports.rules.figures import Figures
from chalicelib.domains.reports.store import sums
from chalicelib.engine import metrics

MAX_DAYS = 732  # two years, of which one may be a leap year


class ReportQuery(Wire):
    """Period of a report."""

    from_: Day | None = Field(
        default=None, alias="from", description="First day; by default 30 days are returned."
    )
    to: Day | None = optional("Last day, at most 732 days after the first; default: today.")


class Week(NamedTuple):
    """A week, or its days in the period."""

    first: str  # day, ISO 8601
    totals: Mapping[str, int]
    open_minutes: int


@dataclass
class PeriodFigures:
    """What is known of a period."""

    workspace: WorkspaceRow
    first: date
    last: date
    counted: UpToDate
    opened: Mapping[str, OpenResource]
    traffic: Mapping[str, int]

    @property
    def names(self) -> Mapping[str, str]:
        return self.counted.sums.names

    @cached_property
    def found(self) -> Figures:
        first, last = self.first.isoformat(), self.last.isoformat()
        days = self.counted.sums.days
        return Figures(numbers for day, numbers in days.items() if first <= day <= last)

    @property
    def new_clients(self) -> set[str]:
        return self.found.clients - figures.clients_before(self.counted.sums.days, self.first)

    @cached_property
    def weeks(self) -> list[Week]:
        """Each week of the period."""
        return list(self._weeks())

    def _weeks(self) -> Iterator[Week]:
        minutes_by_week: dict[date, int] = {}
        for resource in self.opened.values():
            for day, minutes in resource.minutes.items():
                monday = figures.week_of(day)
                minutes_by_week[monday] = minutes_by_week.get(monday, 0) + minutes
        monday = figures.week_of(self.first)
        while monday <= self.last:
            week = [monday + timedelta(days=number) for number in range(7)]
            days = [day.isoformat() for day in week if self.first <= day <= self.last]
            numbers = [self.counted.sums.days.get(day, {}) for day in days]
            yield Week(days[0], figures.totals_of(numbers), minutes_by_week.get(monday, 0))
            monday += timedelta(days=7)


def read(workspace_id: str, query: ReportQuery) -> PeriodFigures:
    """Read a period, after what has changed has been counted.

    Raises:
        ValidationError: the period ends before it begins, or is longer than MAX_DAYS.
    """
    workspace = workspaces.get(workspace_id)
    first, last = period(
        workspace.id,
        query.from_,
        last=query.to or clock.local_day(clock.now(), workspace.timezone),
        max_days=MAX_DAYS,
    )
    last_week = figures.week_of(last).isoformat()
    with deadline.side_by_side() as start:
        visits_task = start(
            partial(
                metrics.read,
                *(workspace.id,),
                subject=workspace_metrics.SUBJECT,
                first=first,
                last=last,
            )
        )
        counted = counting.read(workspace, partial(sums.read_all, workspace.id, last=last_week))
        resource_ids = counted.sums.state.resource_ids if counted.sums.state else []
        opened = open_hours.read(
            workspace.id, resource_ids or [], first, last=last, zone=workspace.timezone
        )
        traffic = metrics.total(visits_task.result().values()).totals
    return PeriodFigures(workspace, first, last, counted, opened, traffic)
