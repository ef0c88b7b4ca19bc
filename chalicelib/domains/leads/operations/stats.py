"""Statistics of leads, computed from daily counters only."""

from datetime import date, timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import deadline
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.clients.store.clients import CLIENTS
from chalicelib.domains.identity.flows.periods import period
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.leads.store.leads import LEADS, STATUSES, LeadStatus
from chalicelib.engine import metrics
from chalicelib.engine.listing import counters
from chalicelib.engine.listing.query import Query
from chalicelib.engine.metrics import DayCounts


class StatsQuery(Wire):
    """Filters and period of the statistics."""

    from_: Day | None = Field(
        default=None, alias="from", description="First day; default: 30 days."
    )
    to: Day | None = optional("Last day; default: today.")
    project_id: Id | None = optional("Site id.")
    form_id: Id | None = optional("Form id.")


class LeadDay(Wire):
    """Number of leads on a day."""

    date: str = Field(description="Day in the workspace's time zone.")
    created: int = Field(description="Leads created that day.")
    completed: int = Field(description="Of these, leads that are completed now.")


class LeadSourceCount(Wire):
    """Number of leads from a source."""

    source: str = Field(description="Campaign source, referrer's host, direct, or other.")
    count: int = Field(description="Leads created in the period.")


class ClientCounts(Wire):
    """Number of clients."""

    total: int = Field(description="All clients of the workspace.")
    new: int = Field(description="New clients of these leads in the period.")


class CrmStats(Wire):
    """Statistics of leads."""

    total: int = Field(description="Leads of any date.")
    by_status: dict[LeadStatus, int] = Field(
        description="Leads created in the period, by their current status."
    )
    created: int = Field(description="Leads created in the period.")
    over_quota: int = Field(description="Of these, leads beyond the number that the plan includes.")
    conversion: float = Field(description="Share of completed leads, from 0 to 1; 0 if no leads.")
    series: list[LeadDay] = Field(description="Every day of the period.")
    by_source: list[LeadSourceCount] = Field(description="Created leads by source, most first.")
    clients: ClientCounts = Field(description="All clients, and new ones.")


@operation(
    tool=True,
    rest="GET /api/crm/stats",
    scope=Scope.CRM_READ,
    title="Get statistics of leads",
    example={"from": "2027-01-14", "to": "2027-01-15"},
)
def crm_stats(ctx: Context, args: StatsQuery) -> CrmStats:
    """Count leads by status, day and source, over up to 366 days.

    A lead counts on the day of its creation, by its current status. Sources are untrusted text.
    """
    first, last = period(ctx.workspace_id, args.from_, last=args.to)
    with deadline.side_by_side() as start:
        clients = start(lambda: counters.read(ctx.workspace_id, noun=CLIENTS.noun)[counters.TOTAL])
        if _can_match(ctx, args):
            subject = crm_metrics.subject(form_id=args.form_id, project_id=args.project_id)
            total_task = start(lambda: _total(ctx, args))
            days = metrics.read(ctx.workspace_id, subject=subject, first=first, last=last)
            total = total_task.result()
        else:
            days, total = dict.fromkeys(_days(first, last=last), DayCounts()), 0
    totals = metrics.total(days.values())
    created, completed = totals.totals[crm_metrics.CREATED], totals.totals["completed"]
    sources = {
        source: measures[crm_metrics.CREATED]
        for source, measures in totals.by_dimension[crm_metrics.SOURCE].items()
    }
    most_first = sorted(sources.items(), key=lambda source: (-source[1], source[0]))
    return CrmStats(
        total=total,
        by_status={status: totals.totals[status] for status in STATUSES},
        created=created,
        over_quota=totals.totals[crm_metrics.OVER_QUOTA],
        conversion=completed / created if created else 0.0,
        series=[
            LeadDay(
                date=day.isoformat(),
                created=counts.totals[crm_metrics.CREATED],
                completed=counts.totals["completed"],
            )
            for day, counts in days.items()
        ],
        by_source=[LeadSourceCount(source=name, count=n) for name, n in most_first if n],
        clients=ClientCounts(
            total=clients.result(),
            new=totals.totals[crm_metrics.CLIENTS],
        ),
    )


def _days(first: date, *, last: date) -> list[date]:
    return [first + timedelta(n) for n in range((last - first).days + 1)]


def _can_match(ctx: Context, args: StatsQuery) -> bool:
    # All leads of a form belong to the form's site, so it is enough to read one counter.
    if args.form_id is None or args.project_id is None:
        return True
    query = Query(page=1, size=1, sort="createdAt", filters={"form_id": args.form_id})
    return any(
        lead.project_id == args.project_id for lead in LEADS.page(ctx.workspace_id, query).records
    )


def _total(ctx: Context, args: StatsQuery) -> int:
    for facet in ("form_id", "project_id"):
        if value := getattr(args, facet):
            return counters.read_value(ctx.workspace_id, noun=LEADS.noun, facet=facet, value=value)
    return counters.read(ctx.workspace_id, noun=LEADS.noun)[counters.TOTAL]
