"""Serve the pages of customers' sites unchanged.

Their scripts cannot read cookies of the platform's own pages: a site has its own host, or its pages
are sandboxed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, urlencode

from chalicelib.core.settings import settings
from chalicelib.domains.catalog.store.products import MAX_SHOWN, active_ids
from chalicelib.domains.sites.flows import site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage, State
from chalicelib.domains.sites.rules import sections
from chalicelib.domains.sites.rules.site_urls import DRAFT_PARAMETER, PRODUCTS
from chalicelib.domains.sites.store.pages import PageRow
from chalicelib.domains.sites.store.sites import FoundSite, SiteRow
from chalicelib.transports import edge
from chalicelib.transports.http import (
    CACHED,
    HTML_TYPE,
    HttpRequest,
    HttpResponse,
    etag,
    redirect,
)
from chalicelib.transports.lazy import Lazy
from chalicelib.transports.web import render

# Content security policy of pages on the platform's own host. It gives their scripts an opaque
# origin, which has no cookies. A page that opens in a new tab, such as a payment, has its own
# origin and cookies. Documents that the page itself writes (``about:blank``, ``blob:``) inherit the
# opaque one, and other pages of sites have this policy, too.
SANDBOX = (
    "sandbox allow-scripts allow-forms allow-popups allow-popups-to-escape-sandbox "
    "allow-downloads allow-modals"
)

# Icon, title and text of each notice shown in place of a page. All have status 404.
_NOTICES: dict[State, tuple[str, str, str]] = {
    "no site": ("file-question", "not_found", "site_not_found"),
    "no page": ("file-question", "not_found", "site_page_not_found"),
    "inactive": ("power-off", "site_inactive", "site_inactive_about"),
    "suspended": ("ban", "site_suspended", "site_suspended_about"),
    "empty": ("clock", "site_empty", "site_empty_about"),
    "no preview": ("clock", "preview_over", "preview_over_about"),
}


# Fills in sections, and frames composed pages. Other pages need no services and bookings.
_SHOW: Lazy[[RenderedPage], str] = Lazy("chalicelib.transports.web.composed_pages:show")
_DRAFT: Lazy[[str, str, str], RenderedPage] = Lazy(
    "chalicelib.domains.sites.flows.draft_pages:render"
)
# Responds with a page, a feed, or None if there is no such product.
_PRODUCT_PAGE: Lazy[
    [FoundSite, str, Mapping[str, Sequence[str]]], RenderedPage | HttpResponse | None
] = Lazy("chalicelib.transports.web.product_pages:find")
_SITE_LLMS: Lazy[[SiteRow, Iterable[PageRow], str], HttpResponse] = Lazy(
    "chalicelib.transports.web.discovery:site_llms"
)
_UCP_PROFILE: Lazy[[str, str, str], HttpResponse] = Lazy(
    "chalicelib.transports.assistants:ucp_profile"
)
_SITE_CARDS: Lazy[[str, str, str], HttpResponse] = Lazy(
    "chalicelib.transports.server_cards:of_site_file"
)
ROBOTS, SITEMAP, LLMS, UCP = "robots.txt", "sitemap.xml", "llms.txt", ".well-known/ucp"
# By which programs find the tools of a site: the catalogue, and the card that it names.
CATALOG, CARD = ".well-known/ai-catalog.json", "mcp/server-card"
# Nobody keeps a draft, lists it or learns its link.
_UNPUBLISHED = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
FAVICON = "favicon.ico"  # Names of files next to a site's pages. A slug has no dot.


@render.failures_as_pages
def page(request: HttpRequest) -> HttpResponse:
    """Return a page of a site, or a notice that explains why the page cannot be shown."""
    name = site_name(request)
    if name is None:
        return _notice(request, RenderedPage("no site"))
    slug = "/".join(filter(None, (request.path.get("page"), request.path.get("part"))))
    request = replace(request, path={**request.path, "page": slug})
    if slug in {ROBOTS, SITEMAP, LLMS, CATALOG, CARD} or f"{slug}/".startswith(f"{UCP}/"):
        return _file(request, name, file=slug)
    if slug == FAVICON:
        return _favicon(name)
    token = next(iter(request.query.get(DRAFT_PARAMETER, ())), "")
    if not token and slug.partition("/")[0] == PRODUCTS:
        shown = _products(request, name, slug)
        if shown is not None:
            return shown
    if not token:
        return _answer(request, name, site_pages.render(name, page_slug=slug))
    response = _answer(request, name, _DRAFT(name, slug, token))
    return response._replace(headers={**response.headers, **_UNPUBLISHED})


def _products(request: HttpRequest, name: str, slug: str) -> HttpResponse | None:
    # None if visitors see no product there. A page that the owner has at the address takes it.
    found = site_pages.find_site(name)
    if not isinstance(found, FoundSite) or found.row.products_url is None:
        return None
    place = slug.removeprefix(PRODUCTS).removeprefix("/")
    if not place and site_pages.has_page(found, slug):
        return None
    redirection = _redirect_host(request, name, found.row)
    redirection = redirection or _redirect_slash(request, name, should_end=False)
    if redirection is not None:
        return redirection
    shown = _PRODUCT_PAGE(found, place, request.query)
    if isinstance(shown, RenderedPage):
        return _html(shown, sandboxed=not _is_own_host(name))
    return shown


def _answer(request: HttpRequest, name: str, rendered: RenderedPage) -> HttpResponse:
    redirection = _redirect(request, name, rendered)
    if redirection is not None:
        return redirection
    if rendered.state == "no draft" and rendered.site is not None:
        # It was published or discarded.
        return redirect(f"{rendered.site.url}/{rendered.slug}")
    if not rendered.html:
        return _notice(request, rendered)
    return _html(rendered, sandboxed=not _is_own_host(name))


def _redirect(request: HttpRequest, name: str, rendered: RenderedPage) -> HttpResponse | None:
    if rendered.site is None:
        return None
    if (redirection := _redirect_host(request, name, rendered.site)) is not None:
        return redirection
    if rendered.state == "moved":
        return _redirect_moved(request, 301, _base(name), slug=rendered.slug)
    if rendered.html:
        return _redirect_slash(request, name, should_end=not request.path.get("page"))
    return None


def _redirect_host(request: HttpRequest, name: str, site: SiteRow) -> HttpResponse | None:
    # A site with an active domain is only there.
    if site.active_host in {name, None}:
        return None
    return _redirect_moved(request, 308, site.url, slug=request.path.get("page", ""))


def _redirect_slash(request: HttpRequest, name: str, *, should_end: bool) -> HttpResponse | None:
    # Relative links need the home page's path to end with a slash, and no other.
    if not (base := _base(name)) or request.has_trailing_slash == should_end:
        return None
    return _redirect_moved(request, 301, base, slug=request.path.get("page", ""))


def _base(name: str) -> str:
    return "" if _is_own_host(name) else f"/s/{name}"


def _redirect_moved(request: HttpRequest, status: int, base: str, *, slug: str) -> HttpResponse:
    query = urlencode(request.query, doseq=True, quote_via=quote)
    location = f"{base}/{quote(slug)}" + (f"?{query}" if query else "")
    return HttpResponse(status, b"", {"Location": location, "Cache-Control": CACHED})


def site_name(request: HttpRequest) -> str | None:
    """Return the slug or the custom domain of a site, or None if the host is another one."""
    # A request to a site's own host has the host in its path, where the edge or the local server
    # puts it.
    name, host = request.path["site"], edge.host(request.headers)
    domain = settings().sites_domain
    if domain and name.endswith(f".{domain}"):
        slug = name.removesuffix(f".{domain}")
        return slug if name == host and "." not in slug else None
    if "." in name:
        return name if name == host else None
    return name if not domain or host == f"{name}.{domain}" else None


def _is_own_host(name: str) -> bool:
    return "." in name or bool(settings().sites_domain)


def _html(rendered: RenderedPage, *, sandboxed: bool) -> HttpResponse:
    html = rendered.html
    body = (_SHOW(rendered) if sections.BEGIN in html else html).encode()
    headers = {"Content-Type": HTML_TYPE, "X-Content-Type-Options": "nosniff"}
    if not rendered.is_listed:
        headers["X-Robots-Tag"] = "noindex"
    if sandboxed:
        headers["Content-Security-Policy"] = SANDBOX
    if rendered.state == "no page":
        return HttpResponse(404, body, headers)
    return HttpResponse(200, body, {**headers, "Cache-Control": CACHED, "ETag": etag(body)})


def _file(request: HttpRequest, name: str, *, file: str) -> HttpResponse:
    rendered, pages = site_pages.listed_pages(name)
    if rendered.site is None:
        return _notice(request, rendered)
    if (redirection := _redirect(request, name, rendered)) is not None:
        return redirection
    if file == ROBOTS:
        return render.robots(("User-agent: *", "Allow: /"), f"{rendered.site.url}/{SITEMAP}")
    if file == LLMS:
        return _SITE_LLMS(rendered.site, pages, rendered.workspace_id)
    if file != SITEMAP:
        return _describe_tools(file, rendered.site.url, rendered.workspace_id)
    text = render.document(
        "en",
        "sites/sitemap.xml",
        pages=pages,
        product_urls=_product_urls(rendered),
    )
    return render.xml(text, kind="application/xml", caching=render.CACHED_LONGER)


def _product_urls(rendered: RenderedPage) -> list[str]:
    site = rendered.site
    if site is None or site.products_url is None:
        return []
    ids = active_ids(rendered.workspace_id, MAX_SHOWN)
    is_own = site_pages.has_page(FoundSite(rendered.workspace_id, site), PRODUCTS)
    return [
        *([] if is_own else [site.products_url]),
        *(f"{site.products_url}/{product_id}" for product_id in ids),
    ]


def _describe_tools(file: str, site_url: str, workspace_id: str) -> HttpResponse:
    if file in {CATALOG, CARD}:
        return _SITE_CARDS(file, site_url, workspace_id)
    return _UCP_PROFILE(site_url, workspace_id, file.removeprefix(UCP).strip("/"))


def _favicon(name: str) -> HttpResponse:
    logo = site_pages.find_logo(name)
    headers = {"Cache-Control": render.CACHED_LONGER}
    if logo is None:
        return HttpResponse(404, b"", headers)
    return HttpResponse(302, b"", {**headers, "Location": logo})


def _notice(request: HttpRequest, rendered: RenderedPage) -> HttpResponse:
    icon, title, about = _NOTICES[rendered.state]
    link = (
        (f"{rendered.site.url}/", "to_home")
        if rendered.site and rendered.state == "no page"
        else None
    )
    return render.notice(request, 404, icon=icon, title=title, about=about, link=link)
