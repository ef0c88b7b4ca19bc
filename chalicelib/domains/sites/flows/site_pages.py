"""Pages of a site for visitors, found by the site's slug and the page's slug."""

from typing import Literal, NamedTuple

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.settings import settings
from chalicelib.domains.sites.rules import page_html
from chalicelib.domains.sites.store import pages
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SITES, SLUG_CLAIM, SUSPENDED, SiteRow
from chalicelib.engine.claims import ClaimRow
from chalicelib.gateways.object_store import object_store

HIT_PATH = "/api/public/hit"
State = Literal["shown", "empty", "no site", "inactive", "suspended", "no page"]


class RenderedPage(NamedTuple):
    """Answer to a visitor: the HTML if the page is shown, else the reason why it is not."""

    state: State
    html: str = ""
    home_url: str = ""
    """URL of the site's home page, if visitors may see the site."""


def render(site_slug: str, page_slug: str) -> RenderedPage:
    """Return a page of a site by its slug. The slug "" is the home page."""
    return retry_on_conflict(lambda: _render(site_slug, page_slug))


def _render(site_slug: str, page_slug: str) -> RenderedPage:
    claim = ClaimRow.find_claim(SLUG_CLAIM, site_slug)
    site = SITES.find(claim.workspace_id, claim.target) if claim and claim.workspace_id else None
    if site is None or claim is None:
        return RenderedPage("no site")
    if site.status != "active":
        return RenderedPage("suspended" if site.status == SUSPENDED else "inactive")
    workspace_id: str = claim.workspace_id
    page_id = pages.find_id(workspace_id, site, page_slug)
    page = PAGES.find(workspace_id, page_id) if page_id else None
    if page is None:
        return RenderedPage("no page" if page_slug else "empty", home_url=site.url)
    html = _read_html(page)
    if not html.strip():
        return RenderedPage("empty", home_url=site.url)
    return RenderedPage("shown", _complete_html(site, page, html), site.url)


def _read_html(page: PageRow) -> str:
    """Return a page's HTML.

    Raises:
        ConcurrentUpdateError: other HTML was saved after the record was read.
    """
    if page.html_key is None:
        return ""
    body = object_store().get(page.html_key)
    if body is None:
        raise ConcurrentUpdateError
    return body.decode()


def _complete_html(site: SiteRow, page: PageRow, html: str) -> str:
    html = page_html.complete(html, title=page.title, description=page.description)
    if not site.stats_enabled:
        return html
    return page_html.with_beacon(html, settings().public_url + HIT_PATH, site.id, page.id)
