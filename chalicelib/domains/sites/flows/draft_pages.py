"""The draft of a page as its visitors would see it."""

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.sites.flows import draft_links, site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage
from chalicelib.domains.sites.store import page_drafts
from chalicelib.domains.sites.store.sites import FoundSite
from chalicelib.gateways.object_store import object_store


def render(name: str, page_slug: str, token: str) -> RenderedPage:
    """Return the draft of a page for the reader of a signed link, also of a site that is off.

    A page whose draft is published or discarded is in the state ``no draft``.
    """
    # A draft that is saved between the read of its row and of its object is read again.
    return retry_on_conflict(lambda: _render(name, page_slug, token))


def _render(name: str, page_slug: str, token: str) -> RenderedPage:
    found_site = site_pages.find_site(name, also_inactive=True)
    if not isinstance(found_site, FoundSite):
        return found_site
    workspace_id, site = found_site.workspace_id, found_site.row
    page = site_pages.find_page(found_site, page_slug)
    if page is None or not draft_links.is_valid(token, workspace_id, page.id):
        return RenderedPage("no preview")
    page.site = site
    draft = page_drafts.find(workspace_id, page_id=page.id)
    if draft is None:
        return RenderedPage("no draft", site=site, slug="" if page.is_home else page.slug)
    body = object_store().get(draft.html_key)
    if body is None:
        raise ConcurrentUpdateError
    html = body.decode()
    if not html.strip():
        return RenderedPage("empty", site=site)
    home = workspaces.get(workspace_id)
    html = site_pages.complete_html(
        found_site, page, html, home, is_canonical=False, is_counted=False
    )
    return RenderedPage(
        "draft",
        html,
        site,
        workspace_id=workspace_id,
        workspace=home,
        page_id=page.id,
        is_listed=False,
    )
