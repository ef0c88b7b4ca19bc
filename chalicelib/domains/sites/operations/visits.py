"""Count the visits that pages of a site report, unless the owner has switched counting off."""

from datetime import date, timedelta

from pydantic import Field

from chalicelib.application.context import Context
from chalicelib.core import clock
from chalicelib.core.limits import Limit
from chalicelib.core.operations import PUBLIC, ServedAs, operation
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.core.wire.schema import Id, Wire, optional
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.store import site_visits
from chalicelib.domains.sites.store.pages import PAGES
from chalicelib.domains.sites.store.sites import SITES, SUSPENDED
from chalicelib.lib import sources

# For one visitor.
VIEW_LIMIT = Limit(
    "hits",
    "page views per minute of a site",
    60,
    timedelta(minutes=1),
    fails_open=True,
    within=lambda args: args.project_id,
)


class PageHit(Wire):
    """Report of a page view."""

    project_id: Id = Field(description="Site id.")
    page_id: Id = Field(description="Page id.")
    referrer: str | None = optional("URL of the previous page.")


class PageHitResult(Wire):
    """Result of a report."""

    counted: bool = Field(description="Whether the visit was counted; false if counting is off.")


def local_day(project_id: object) -> date | None:
    """Return today's date in the time zone of a site, or None if the site does not exist."""
    workspace_id = SITES.workspace_of(project_id) if isinstance(project_id, str) else None
    if workspace_id is None:
        return None
    return clock.local_day(clock.now(), workspaces.get(workspace_id).timezone)


@operation(
    rest="POST /api/public/hit",
    title="Count a visit",
    audience=PUBLIC,
    resolve=lambda args: PAGES.found_for_visitor(SITES.workspace_of(args.project_id)),
    limit=VIEW_LIMIT,
    served_as=ServedAs.PAGE_HIT,
    accepts_idempotency_key=False,
    audit=False,
    example={"projectId": "SITE_ID", "pageId": "PAGE_ID"},
)
def record_hit(ctx: Context, args: PageHit) -> PageHitResult:
    """Count a view of a page. A script in every published page makes this call."""
    site = SITES.find(ctx.workspace_id, record_id=args.project_id)
    page = PAGES.find(ctx.workspace_id, record_id=args.page_id)
    if site is None or page is None or page.project_id != site.id or site.status == SUSPENDED:
        raise PAGES.unavailable()
    visitor = ctx.principal
    is_counted = site.stats_enabled and site.status == "active"
    if not is_counted or not isinstance(visitor, VisitorPrincipal):
        return PageHitResult(counted=False)
    zone = workspaces.get(ctx.workspace_id).timezone
    ctx.unit.run_side_effect_once(
        "count",
        lambda: site_visits.count(
            ctx.workspace_id,
            site_id=site.id,
            day=clock.local_day(clock.now(), zone),
            page_id=page.id,
            referrer=sources.referring_host(site.url, referrer=args.referrer),
            visitor=visitor.visitor,
        ),
    )
    return PageHitResult(counted=True)
