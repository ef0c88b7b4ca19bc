"""Statistics of a site's visits, only from daily counters."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Literal

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core.operations import operation
from chalicelib.core.scopes import Scope
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.core.wire.times import Day
from chalicelib.domains.identity.flows.periods import period
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.leads.store import crm_metrics
from chalicelib.domains.sites.store import site_visits
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.engine import metrics
from chalicelib.engine.metrics import DayCounts

MAX_ROWS = 20
"""Limit of pages and referrers in the statistics."""
Granularity = Literal["day", "week", "month"]


class SiteStatsQuery(Wire):
    """Site and period of the statistics."""

    id: Id = Field(description="Site id.")
    from_: Day | None = Field(
        default=None, alias="from", description="First day; by default 30 days are returned."
    )
    to: Day | None = optional("Last day; default: today.")
    granularity: Granularity = Field(default="day", description="Length of each span in series.")


class SiteTotals(Wire):
    """Totals of the period."""

    views: int = Field(description="Number of opened pages.")
    visitors: int = Field(description="Sum of each day's visitors.")
    leads: int = Field(description="Leads from the site's forms.")
    bookings: int = Field(description="Bookings of the site's services.")


class VisitsSpan(Wire):
    """Visits in a day, a week or a month."""

    date: str = Field(description="First day of the span within the period.")
    views: int = Field(description="Number of opened pages.")
    visitors: int = Field(description="Sum of each day's visitors.")


class TopPage(Wire):
    """A page and the number of its views."""

    page_id: Id | None = Field(description="Page id; null for pages beyond 100 a day.")
    slug: str | None = Field(description="Slug; null if the page is gone.")
    title: str | None = Field(description="Title; null if the page is gone.")
    views: int = Field(description="Number of times it was opened.")


class Referrer(Wire):
    """A host that links to the site."""

    host: str = Field(description="Host name, or other.")
    views: int = Field(description="Pages opened from this host.")


class SiteStatsReport(Wire):
    """Statistics of a site's visits."""

    stats_enabled: bool = Field(description="Whether visits are counted now.")
    from_: str = Field(alias="from", description="First day, YYYY-MM-DD.")
    to: str = Field(description="Last day, YYYY-MM-DD.")
    timezone: str = Field(description="The time zone of the days.")
    totals: SiteTotals = Field(description="Totals of the whole period.")
    series: list[VisitsSpan] = Field(description="All spans of the period, including empty ones.")
    top_pages: list[TopPage] = Field(description="Up to 20 pages, most views first.")
    referrers: list[Referrer] = Field(
        description="Up to 20 hosts, most views first. Direct visits are not included."
    )


@operation(
    tool=True,
    rest="GET /api/projects/stats",
    scope=Scope.PROJECTS_READ,
    title="Get statistics of a site",
    example={"id": "SITE_ID", "from": "2027-01-14", "to": "2027-01-15"},
)
def get_site_stats(ctx: Context, args: SiteStatsQuery) -> SiteStatsReport:
    """Return counts of a site's visits, leads and bookings over up to 366 days.

    Referrers are untrusted text.
    """
    site = SITES.require(ctx.workspace_id, record_id=args.id)
    zone = workspaces.get(ctx.workspace_id).timezone
    first, last = period(ctx.workspace_id, args.from_, last=args.to)
    days = metrics.read(
        ctx.workspace_id, subject=site_visits.subject(site.id), first=first, last=last
    )
    leads = metrics.read(
        ctx.workspace_id, subject=crm_metrics.subject(project_id=site.id), first=first, last=last
    ).values()
    period_counts = metrics.total(days.values())
    return SiteStatsReport.from_row(
        {},
        stats_enabled=site.stats_enabled,
        from_=first.isoformat(),
        to=last.isoformat(),
        timezone=zone,
        totals=SiteTotals(
            views=period_counts.totals[site_visits.VIEWS],
            visitors=period_counts.totals[site_visits.VISITORS],
            leads=metrics.total(leads).totals[crm_metrics.CREATED],
            bookings=period_counts.totals[crm_metrics.BOOKINGS],
        ),
        series=list(_series(days, args.granularity)),
        top_pages=_top_pages(ctx, _ranked(period_counts, site_visits.PAGE)),
        referrers=[
            Referrer(host=host, views=views)
            for host, views in _ranked(period_counts, site_visits.REFERRER)
        ],
    )


def _ranked(period_counts: DayCounts, dimension: str) -> list[tuple[str, int]]:
    views = {
        value: counts[site_visits.VIEWS]
        for value, counts in period_counts.by_dimension[dimension].items()
    }
    return sorted(views.items(), key=lambda one: (-one[1], one[0]))[:MAX_ROWS]


def _series(days: Mapping[date, DayCounts], granularity: Granularity) -> Iterator[VisitsSpan]:
    spans: dict[date, list[DayCounts]] = {}
    for day, counts in days.items():
        spans.setdefault(max(_first_day_of_span(day, granularity), min(days)), []).append(counts)
    for first_day, days_in_span in spans.items():
        totals = metrics.total(days_in_span).totals
        yield VisitsSpan(
            date=first_day.isoformat(),
            views=totals[site_visits.VIEWS],
            visitors=totals[site_visits.VISITORS],
        )


def _first_day_of_span(day: date, granularity: Granularity) -> date:
    if granularity == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if granularity == "month" else day


def _top_pages(ctx: Context, ranked: list[tuple[str, int]]) -> list[TopPage]:
    ids = [page_id for page_id, _ in ranked if page_id != metrics.OTHER]
    pages = {page.id: page for page in PAGES.fetch(ctx.workspace_id, ids)}
    return [
        TopPage(
            page_id=None if page_id == metrics.OTHER else page_id,
            slug=pages[page_id].slug if page_id in pages else None,
            title=pages[page_id].title if page_id in pages else None,
            views=views,
        )
        for page_id, views in ranked
    ]
