"""Customers' sites: pages as their authors wrote them, isolated from the platform's own."""

from urllib.parse import quote, urlencode

from chalicelib.core.settings import settings
from chalicelib.domains.sites.flows import site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage, State
from chalicelib.transports import edge
from chalicelib.transports.http import HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import render

SANDBOX = "sandbox allow-scripts allow-forms allow-popups"
"""For pages on the platform's own host: their scripts get an opaque origin without cookies."""

_NOTICES: dict[State, tuple[str, str, str]] = {
    "no site": ("file-question", "not_found", "site_not_found"),
    "no page": ("file-question", "not_found", "site_page_not_found"),
    "inactive": ("power-off", "site_inactive", "site_inactive_about"),
    "suspended": ("ban", "site_suspended", "site_suspended_about"),
    "empty": ("clock", "site_empty", "site_empty_about"),
}
"""Icon, title and text of each notice shown in place of a page. All have status 404."""


@render.failures_as_pages
def page(request: HttpRequest) -> HttpResponse:
    """Show a page of a site, or a notice with the reason if it cannot be shown."""
    slug = request.path["site"]
    domain = settings().sites_domain
    if domain and edge.host(request.headers) != f"{slug}.{domain}":
        return _notice(request, RenderedPage("no site"))
    rendered = site_pages.render(slug, request.path.get("page", ""))
    if rendered.state != "shown":
        return _notice(request, rendered)
    is_home = "page" not in request.path
    if not domain and request.has_trailing_slash != is_home:
        return _moved(request, f"/s/{slug}/" + ("" if is_home else request.path["page"]))
    body = rendered.html.encode()
    headers = {
        "Content-Type": HTML_TYPE,
        "Cache-Control": render.CACHED,
        "ETag": etag(body),
        "X-Content-Type-Options": "nosniff",
    }
    if not domain:
        headers["Content-Security-Policy"] = SANDBOX
    return HttpResponse(200, body, headers)


def _moved(request: HttpRequest, path: str) -> HttpResponse:
    """Redirect to the path that relative links need: only the home page's ends with a slash."""
    query = urlencode(request.query, doseq=True, quote_via=quote)
    location = quote(path) + (f"?{query}" if query else "")
    return HttpResponse(301, b"", {"Location": location, "Cache-Control": render.CACHED})


def _notice(request: HttpRequest, rendered: RenderedPage) -> HttpResponse:
    icon, title, about = _NOTICES[rendered.state]
    link = (rendered.home_url, "to_home") if rendered.state == "no page" else None
    return render.notice(request, 404, icon=icon, title=title, about=about, link=link)
