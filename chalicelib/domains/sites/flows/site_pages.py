"""Pages of a site for visitors, found by the site's slug or host, and by the page's slug."""

from typing import Literal, NamedTuple

from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.core.retry import retry_on_conflict
from chalicelib.core.settings import settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.identity.store import workspaces
from chalicelib.domains.identity.store.workspaces import WorkspaceRow
from chalicelib.domains.sites.rules import page_html
from chalicelib.domains.sites.store import pages, sites
from chalicelib.domains.sites.store.pages import PAGES, PageRow
from chalicelib.domains.sites.store.sites import SUSPENDED, FoundSite, SiteRow
from chalicelib.engine.events import subscriptions
from chalicelib.gateways.object_store import object_store
from chalicelib.lib import localized

HIT_PATH = "/api/public/hit"
NOT_FOUND_SLUG = "404"  # shown for unknown pages
MAX_MENU_PAGES = 50  # Sites with more pages have no menu: each page of the menu is read.
REPORT = {"en": "Report this page", "ru": "Пожаловаться на страницу"}
State = Literal[
    "shown",
    "moved",
    "empty",
    "no site",
    "inactive",
    "suspended",
    "no page",
    "draft",
    "no draft",
    "no preview",
]


class RenderedPage(NamedTuple):
    """HTML for a visitor, or the reason why there is no HTML."""

    state: State
    html: str = ""  # in the state ``no page``, of the site's own notice
    site: SiteRow | None = None  # if visitors may see it
    slug: str = ""  # the page's present slug, in the state ``moved``
    workspace_id: str = ""  # of a page that is shown
    workspace: WorkspaceRow | None = None  # of a page that is shown
    page_id: str = ""  # of a page that is shown
    is_listed: bool = True  # Search engines may list it.


def render(name: str, *, page_slug: str) -> RenderedPage:
    """Return a page of a site by its slug, "" for the home page, and the site's slug or host."""
    # A page that is saved between the read of its row and of its object is read again.
    return retry_on_conflict(lambda: _render(name, page_slug=page_slug))


def listed_pages(name: str) -> tuple[RenderedPage, list[PageRow]]:
    """Return a site, and its pages that search engines may list, in order."""
    found_site = find_site(name)
    if not isinstance(found_site, FoundSite):
        return found_site, []
    _, rows = pages.read_site_and_pages(found_site.workspace_id, site_id=found_site.row.id)
    pages_out = [
        page
        for page in rows
        if page.html_key
        and page.slug != NOT_FOUND_SLUG
        and not (page.noindex or page.canonical_elsewhere)
    ]
    site = RenderedPage("shown", site=found_site.row, workspace_id=found_site.workspace_id)
    return site, pages_out


def menu_pages(workspace_id: str, site: SiteRow) -> list[PageRow]:
    """Return the pages that a site has for visitors, in order, or none if it has very many."""
    if not 1 < int(site.page_count or 0) <= MAX_MENU_PAGES:
        return []
    _, rows = pages.read_site_and_pages(workspace_id, site_id=site.id)
    return [page for page in rows if page.html_key and page.slug != NOT_FOUND_SLUG]


def workspace_of(name: str) -> str | None:
    """Return the workspace of a site that visitors may see, or None."""
    found_site = find_site(name)
    return found_site.workspace_id if isinstance(found_site, FoundSite) else None


def find_logo(name: str) -> str | None:
    """Return the URL of the logo of a site's workspace, or None."""
    workspace_id = workspace_of(name)
    logo: str | None = workspaces.get(workspace_id).logo_url if workspace_id else None
    return logo


def find_site(name: str, *, also_inactive: bool = False) -> FoundSite | RenderedPage:
    """Return a site by its slug or host, or the state that its visitors see instead."""
    # Only a domain has a dot.
    found_site = sites.find_by_host(name) if "." in name else sites.find_by_slug(name)
    if found_site is None:
        return RenderedPage("no site")
    if halt := subscriptions.halt_of(found_site.workspace_id):
        return RenderedPage("suspended" if halt == "suspended" else "no site")
    if found_site.row.status == SUSPENDED:
        return RenderedPage("suspended")
    if found_site.row.status != "active" and not also_inactive:
        return RenderedPage("inactive")
    return found_site


def _render(name: str, *, page_slug: str) -> RenderedPage:
    found_site = find_site(name)
    if not isinstance(found_site, FoundSite):
        return found_site
    site, page = found_site.row, find_page(found_site, page_slug)
    if page is None and not page_slug:
        return RenderedPage("empty", site=site)
    if page is None:
        slug = _moved_to(found_site, page_slug)
        return (
            _not_found(found_site) if slug is None else RenderedPage("moved", site=site, slug=slug)
        )
    if page.slug == NOT_FOUND_SLUG:
        return _not_found(found_site)
    html = _read_html(page)
    if not html.strip():
        return RenderedPage("empty", site=site)
    home = workspaces.get(found_site.workspace_id)
    return RenderedPage(
        "shown",
        complete_html(found_site, page, html, home),
        site,
        workspace_id=home.id,
        workspace=home,
        page_id=page.id,
        is_listed=is_listed(home),
    )


def add_notes(html: str, workspace: WorkspaceRow) -> str:
    """Return a page that says if it is a test, and that can be reported if nobody has seen it."""
    if is_test(workspace.id):
        html = page_html.mark_as_test(html)
    if workspace.awaits_review and (url := settings().support_url):
        # Nobody has looked at the pages, so their readers can report them.
        language = localized.language_of_country(workspace.country)
        html = page_html.add_report(html, url=url, text=REPORT[language])
    return html


def is_listed(workspace: WorkspaceRow) -> bool:
    """Whether search engines may list the pages of a workspace."""
    return not (is_test(workspace.id) or workspace.awaits_review)


def _moved_to(found_site: FoundSite, slug: str) -> str | None:
    # Sites of files have addresses such as ``about.html``, and ``index.html`` for the home page.
    former = pages.find_former(found_site.workspace_id, found_site.row, slug)
    if former is not None:
        return former.slug
    name, _, extension = slug.rpartition(".")
    if extension.lower() not in {"html", "htm"} or not name:
        return None
    if find_page(found_site, name):
        return name
    if name.lower() == "index" and found_site.row.home_page_id:
        return ""
    former = pages.find_former(found_site.workspace_id, found_site.row, name)
    return former.slug if former else None


def _not_found(found_site: FoundSite) -> RenderedPage:
    page = find_page(found_site, NOT_FOUND_SLUG)
    html = _read_html(page) if page else ""
    if page is None or not html.strip():
        return RenderedPage("no page", site=found_site.row)
    home = workspaces.get(found_site.workspace_id)
    html = complete_html(found_site, page, html, home, is_canonical=False)
    return RenderedPage(
        "no page",
        html,
        found_site.row,
        workspace_id=home.id,
        workspace=home,
        page_id=page.id,
        is_listed=is_listed(home),
    )


def has_page(found_site: FoundSite, slug: str) -> bool:
    """Whether the owner has a page at an address of a site, or had one that is elsewhere now."""
    workspace_id, site = found_site
    return (
        pages.find_id(workspace_id, site, slug) is not None
        or pages.find_former(workspace_id, site, slug) is not None
    )


def find_page(found_site: FoundSite, slug: str) -> PageRow | None:
    """Return a page of a site by its slug, "" for the home page, or None."""
    page_id = pages.find_id(found_site.workspace_id, found_site.row, slug)
    return PAGES.find(found_site.workspace_id, record_id=page_id) if page_id else None


def _read_html(page: PageRow) -> str:
    if page.html_key is None:
        return ""
    body = object_store().get(page.html_key)
    if body is None:
        raise ConcurrentUpdateError
    return body.decode()


def complete_html(  # noqa: PLR0913  the parts of a page
    found_site: FoundSite,
    page: PageRow,
    html: str,
    workspace: WorkspaceRow,
    *,
    is_canonical: bool = True,
    is_counted: bool = True,
) -> str:
    """Return a page's HTML with what the platform adds for visitors."""
    site = page.site = found_site.row
    logo = workspace.logo_url
    html = page_html.complete(
        html,
        title=page.title,
        description=page.description,
        canonical=page.canonical_url if is_canonical else None,
        icon=logo,
        image=page_html.first_image(html, url=page.canonical_url) or logo,
    )
    html = add_notes(html, workspace)
    if not (is_counted and site.stats_enabled):
        return html
    return page_html.add_beacon(
        html, hit_url=settings().public_url + HIT_PATH, project_id=site.id, page_id=page.id
    )
