"""Return what a workspace has sold, earned and taken in a period."""

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.errors import StorageLimitError
from chalicelib.core.operations import operation
from chalicelib.core.principals import Role
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Timestamp, Wire
from chalicelib.domains.identity.store import workspace_metrics
from chalicelib.domains.reports.flows import period_figures
from chalicelib.domains.reports.flows.open_hours import OpenResource
from chalicelib.domains.reports.flows.period_figures import PeriodFigures, ReportQuery, Week
from chalicelib.domains.reports.rules import figures
from chalicelib.domains.reports.rules.figures import Figures, noted, status


class ReportTotals(Wire):
    """Totals of the period. Amounts are in minor units (kopecks)."""

    bookings: int = Field(description="Bookings that start in the period, without lapsed ones.")
    visits: int = Field(description="Those that are confirmed or completed.")
    completed: int = Field(description="Visits with the status completed.")
    pending: int = Field(description="Bookings that wait for their payment.")
    no_shows: int = Field(description="Clients who did not come.")
    cancelled: int = Field(description="Cancelled bookings.")
    lapsed: int = Field(description="Bookings that ended because they were not paid in time.")
    revenue: int = Field(description="Prices of the visits, by the day of their start.")
    sold_minutes: int = Field(description="Minutes of the visits.")
    open_minutes: int = Field(
        description="Minutes that the staff is open, times seats, by the hours as they are now."
    )
    new_clients: int = Field(description="Clients whose first visit is in the period.")
    returning_clients: int = Field(
        description="Clients with a visit in the period, and an earlier one before it."
    )
    dialogs: int = Field(description="Dialogs that visitors started with bots.")
    visitors: int = Field(description="Visitors of sites, counted once per site and day.")


class ReportWeek(Wire):
    """Totals of a week, or of its days in the period. Amounts are in minor units (kopecks)."""

    date: str = Field(description="First day of the week in the period, YYYY-MM-DD.")
    visits: int = Field(description="Visits that are confirmed or completed.")
    no_shows: int = Field(description="Clients who did not come.")
    cancelled: int = Field(description="Cancelled bookings.")
    revenue: int = Field(description="Prices of the visits.")
    sold_minutes: int = Field(description="Minutes of the visits.")
    open_minutes: int = Field(description="Minutes that the staff is open, times seats.")

    @classmethod
    def of(cls, week: Week) -> Self:
        totals = week.totals
        return cls(
            date=week.first,
            visits=totals[figures.VISITS],
            no_shows=totals[status("no_show")],
            cancelled=totals[status("cancelled")],
            revenue=totals[figures.REVENUE],
            sold_minutes=totals[figures.MINUTES],
            open_minutes=week.open_minutes,
        )


class ServiceFigures(Wire):
    """What a service has sold."""

    id: Id = Field(description="Service id.")
    name: str = Field(description="Name in its latest bookings.")
    visits: int = Field(description="Visits that are confirmed or completed.")
    revenue: int = Field(description="Prices of the visits, in minor units (kopecks).")
    sold_minutes: int = Field(description="Minutes of the visits.")


class StaffFigures(ServiceFigures):
    """What a member of the staff, or another resource, has sold."""

    id: Id = Field(description="Resource id.")
    open_minutes: int = Field(
        description="Open minutes, times seats, by the hours as they are now."
    )


class SourceFigures(Wire):
    """Where bookings came from."""

    source: str = Field(
        description="public: booking page, site or public API; chat: a bot; agent: a visitor's "
        "assistant; console: the desk; api: a program with a key."
    )
    bookings: int = Field(description="Bookings, cancelled ones included, without lapsed ones.")
    revenue: int = Field(description="Prices of their visits, in minor units (kopecks).")


class Report(Wire):
    """A report. Days are in the workspace's time zone. Names are untrusted text."""

    from_: str = Field(alias="from", description="First day, YYYY-MM-DD.")
    to: str = Field(description="Last day, YYYY-MM-DD.")
    timezone: str = Field(description="IANA name of the zone.")
    currency: str = Field(description="ISO 4217 code of all amounts.")
    as_of: Timestamp = Field(description="Changes until then are counted.")
    is_complete: bool = Field(
        description="False while the bookings are counted for the first time, or after a long time."
        " Ask again in a minute."
    )
    totals: ReportTotals = Field(description="Totals of the period.")
    weeks: list[ReportWeek] = Field(description="All weeks of the period, Monday first.")
    services: list[ServiceFigures] = Field(description="Services, the highest revenue first.")
    staff: list[StaffFigures] = Field(
        description="Staff and other resources, the highest revenue first."
    )
    sources: list[SourceFigures] = Field(description="Sources, most bookings first.")


class MoneyTotals(Wire):
    """What was paid in the period, in minor units (kopecks)."""

    payments: int = Field(description="Number of payments, by the day on which they were paid.")
    paid: int = Field(description="Amount of these payments.")
    refunded: int = Field(
        description="Refunds that have not failed. What was refunded at the provider itself counts "
        "on the day of its payment."
    )
    disputed: int = Field(description="What clients' banks have taken back of these payments.")
    noted_cash: int = Field(description="Noted as paid in cash, by the day of the note.")
    noted_terminal: int = Field(description="Noted as paid by card at the visit.")
    noted_withdrawn: int = Field(description="Notes that were withdrawn, below 0.")
    due: int = Field(
        description="What is left to pay of the visits, whose prices are neither paid nor noted."
    )


class MoneyWeek(Wire):
    """What was paid in a week, or in its days in the period, in minor units (kopecks)."""

    date: str = Field(description="First day of the week in the period, YYYY-MM-DD.")
    paid: int = Field(description="Payments.")
    refunded: int = Field(description="Refunds.")
    noted: int = Field(description="Noted payments at the visit.")

    @classmethod
    def of(cls, week: Week) -> Self:
        return cls(
            date=week.first,
            paid=week.totals[figures.PAID],
            refunded=week.totals[figures.REFUNDED],
            noted=sum(week.totals[noted(method)] for method in figures.METHODS),
        )


class MoneyReport(Wire):
    """A report with what was paid."""

    report: Report = Field(description="The report.")
    totals: MoneyTotals = Field(description="Totals of the period.")
    weeks: list[MoneyWeek] = Field(description="The weeks of the report.")


_EXAMPLE = {"from": "2027-01-01", "to": "2027-03-31"}


@operation(
    rest="GET /api/reports",
    scope=Scope.BOOKINGS_READ,
    title="Get a report of bookings",
    example=_EXAMPLE,
    errors=(StorageLimitError,),  # A report stores what it has counted.
)
def get_report(ctx: Context, args: ReportQuery) -> Report:
    """Return what was booked in up to two years, by week, service, staff and source.

    A change is in the next report.
    """
    return _report(period_figures.read(ctx.workspace_id, args))


@operation(role=Role.MANAGER, example=_EXAMPLE, errors=(StorageLimitError,))
def get_money_report(ctx: Context, args: ReportQuery) -> MoneyReport:
    """Return a report with payments, refunds, notes of payments, and what is due.

    It is an operation of its own, because keys have no access to finances.
    """
    read = period_figures.read(ctx.workspace_id, args)
    return MoneyReport(
        report=_report(read),
        totals=_money_totals(read.found.totals),
        weeks=list(map(MoneyWeek.of, read.weeks)),
    )


def _report(read: PeriodFigures) -> Report:
    found = read.found
    return Report.from_row(
        {},
        from_=read.first.isoformat(),
        to=read.last.isoformat(),
        timezone=read.workspace.timezone,
        currency=read.workspace.currency,
        as_of=read.counted.as_of,
        is_complete=read.counted.is_complete,
        totals=_totals(read),
        weeks=list(map(ReportWeek.of, read.weeks)),
        services=_services(found, read.names),
        staff=_staff(found, read.names, read.opened),
        sources=[
            SourceFigures(
                source=source,
                bookings=numbers[figures.BOOKINGS],
                revenue=numbers[figures.REVENUE],
            )
            for source, numbers in sorted(
                found.parts[figures.SOURCE].items(),
                key=lambda part: (-part[1][figures.BOOKINGS], part[0]),
            )
        ],
    )


def _totals(read: PeriodFigures) -> ReportTotals:
    totals = read.found.totals
    new_clients = len(read.new_clients)
    return ReportTotals(
        bookings=totals[figures.BOOKINGS],
        visits=totals[figures.VISITS],
        completed=totals[status("completed")],
        pending=totals[status("pending_payment")],
        no_shows=totals[status("no_show")],
        cancelled=totals[status("cancelled")],
        lapsed=totals[status(figures.LAPSED)],
        revenue=totals[figures.REVENUE],
        sold_minutes=totals[figures.MINUTES],
        open_minutes=sum(sum(each.minutes.values()) for each in read.opened.values()),
        new_clients=new_clients,
        returning_clients=len(read.found.clients) - new_clients,
        dialogs=read.traffic[workspace_metrics.DIALOGS],
        visitors=read.traffic[workspace_metrics.VISITORS],
    )


def _money_totals(totals: Mapping[str, int]) -> MoneyTotals:
    return MoneyTotals(
        payments=totals[figures.PAYMENTS],
        paid=totals[figures.PAID],
        refunded=totals[figures.REFUNDED],
        disputed=totals[figures.DISPUTED],
        noted_cash=totals[noted("cash")],
        noted_terminal=totals[noted("terminal")],
        noted_withdrawn=totals[noted("withdrawn")],
        due=totals[figures.DUE],
    )


def _services(found: Figures, names: Mapping[str, str]) -> list[ServiceFigures]:
    return sorted(
        (
            ServiceFigures(
                id=service_id,
                name=names.get(f"{figures.SERVICE}:{service_id}", ""),
                visits=numbers[figures.VISITS],
                revenue=numbers[figures.REVENUE],
                sold_minutes=numbers[figures.MINUTES],
            )
            for service_id, numbers in found.parts[figures.SERVICE].items()
        ),
        key=lambda each: (-each.revenue, -each.visits, each.name, each.id),
    )


def _staff(
    found: Figures, names: Mapping[str, str], opened: Mapping[str, OpenResource]
) -> list[StaffFigures]:
    parts = found.parts[figures.RESOURCE]
    # Who is open in the period is listed, also without a visit.
    listed = {
        *parts,
        *(each for each, resource in opened.items() if any(resource.minutes.values())),
    }
    return sorted(
        (
            StaffFigures(
                id=resource_id,
                name=opened[resource_id].name
                if resource_id in opened
                else names.get(f"{figures.RESOURCE}:{resource_id}", ""),
                visits=parts[resource_id][figures.VISITS],
                revenue=parts[resource_id][figures.REVENUE],
                sold_minutes=parts[resource_id][figures.MINUTES],
                open_minutes=sum(opened[resource_id].minutes.values())
                if resource_id in opened
                else 0,
            )
            for resource_id in listed
        ),
        key=lambda each: (-each.revenue, -each.visits, each.name, each.id),
    )
