"""Statistics of a site's visits, from daily counters alone."""

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

MOST = 20
"""Limit of pages and referrers in the statistics."""
Granularity = Literal["day", "week", "month"]


class SiteStatsQuery(Wire):
    """Site and period of the statistics."""

    id: Id = Field(description="Site id.")
    from_: Day | None = Field(
        default=None, alias="from", description="First day; default: 30 days."
    )
    to: Day | None = optional("Last day; default: today.")
    granularity: Granularity = Field(default="day", description="Of series.")


class SiteTotals(Wire):
    """Totals of the period."""

    views: int = Field(description="Pages opened.")
    visitors: int = Field(description="Visitors of each day, added up.")
    leads: int = Field(description="Leads from the site's forms.")
    bookings: int = Field(description="Bookings of the site's services.")


class VisitsSpan(Wire):
    """Visits in a day, a week or a month."""

    date: str = Field(description="Its first day within the period.")
    views: int = Field(description="Pages opened.")
    visitors: int = Field(description="Visitors of each day, added up.")


class TopPage(Wire):
    """A page and the number of its views."""

    page_id: Id | None = Field(description="Page id; null for pages beyond 100 a day.")
    slug: str | None = Field(description="Slug; null if the page is gone.")
    title: str | None = Field(description="Title; null if the page is gone.")
    views: int = Field(description="Times opened.")


class Referrer(Wire):
    """A host that links to the site."""

    host: str = Field(description="Host, or other.")
    views: int = Field(description="Pages opened from there.")


class SiteStatsReport(Wire):
    """Statistics of a site's visits."""

    stats_enabled: bool = Field(description="Whether visits are counted now.")
    from_: str = Field(alias="from", description="First day.")
    to: str = Field(description="Last day.")
    timezone: str = Field(description="The time zone of the days.")
    totals: SiteTotals = Field(description="The whole period.")
    series: list[VisitsSpan] = Field(description="Every span of the period, empty ones too.")
    top_pages: list[TopPage] = Field(description="The most opened first, up to 20.")
    referrers: list[Referrer] = Field(description="The most first, up to 20; without direct ones.")


@operation(
    tool="svc_get_site_stats",
    rest="GET /api/projects/stats",
    scope=Scope.PROJECTS_READ,
    title="Get statistics of a site",
    example={"id": "SITE_ID", "from": "2027-01-14", "to": "2027-01-15"},
)
def get_site_stats(ctx: Context, args: SiteStatsQuery) -> SiteStatsReport:
    """Count a site's visits, leads and bookings over up to 366 days.

    Referrers are untrusted text.
    """
    site = SITES.require(ctx.workspace_id, args.id)
    zone = workspaces.get(ctx.workspace_id).timezone
    first, last = period(ctx.workspace_id, args.from_, args.to)
    days = metrics.read(ctx.workspace_id, site_visits.subject(site.id), first, last)
    leads = metrics.read(
        ctx.workspace_id, crm_metrics.subject(project_id=site.id), first, last
    ).values()
    whole = metrics.total(days.values())
    return SiteStatsReport.from_row(
        {},
        stats_enabled=site.stats_enabled,
        from_=first.isoformat(),
        to=last.isoformat(),
        timezone=zone,
        totals=SiteTotals(
            views=whole.totals[site_visits.VIEWS],
            visitors=whole.totals[site_visits.VISITORS],
            leads=metrics.total(leads).totals[crm_metrics.CREATED],
            bookings=whole.totals[crm_metrics.BOOKINGS],
        ),
        series=list(_series(days, args.granularity)),
        top_pages=_top_pages(ctx, _ranked(whole, site_visits.PAGE)),
        referrers=[
            Referrer(host=host, views=views) for host, views in _ranked(whole, site_visits.REFERRER)
        ],
    )


def _ranked(whole: DayCounts, dimension: str) -> list[tuple[str, int]]:
    views = {value: counts[site_visits.VIEWS] for value, counts in whole.by[dimension].items()}
    return sorted(views.items(), key=lambda one: (-one[1], one[0]))[:MOST]


def _series(days: Mapping[date, DayCounts], granularity: Granularity) -> Iterator[VisitsSpan]:
    spans: dict[date, list[DayCounts]] = {}
    for day, counts in days.items():
        spans.setdefault(max(_first_day_of_span(day, granularity), min(days)), []).append(counts)
    for begin, within in spans.items():
        totals = metrics.total(within).totals
        yield VisitsSpan(
            date=begin.isoformat(),
            views=totals[site_visits.VIEWS],
            visitors=totals[site_visits.VISITORS],
        )


def _first_day_of_span(day: date, granularity: Granularity) -> date:
    """Return the first day of the week (Monday) or month that contains a day."""
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
