"""Serve the pages of customers' sites unchanged.

Their scripts cannot read cookies of the platform's own pages: a site has its own host, or its pages
are sandboxed.
"""

from urllib.parse import quote, urlencode

from chalicelib.core.settings import settings
from chalicelib.domains.sites.flows import site_pages
from chalicelib.domains.sites.flows.site_pages import RenderedPage, State
from chalicelib.transports import edge
from chalicelib.transports.http import HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.web import render

SANDBOX = "sandbox allow-scripts allow-forms allow-popups"
"""Content security policy of pages on the platform's own host.

It gives their scripts an opaque origin, which has no cookies.
"""

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
    """Return a page of a site, or a notice that explains why the page cannot be shown."""
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
    """Redirect to the path of the page with or without a final slash.

    Relative links work only if the home page's path ends with a slash and no other path does.
    """
    query = urlencode(request.query, doseq=True, quote_via=quote)
    location = quote(path) + (f"?{query}" if query else "")
    return HttpResponse(301, b"", {"Location": location, "Cache-Control": render.CACHED})


def _notice(request: HttpRequest, rendered: RenderedPage) -> HttpResponse:
    icon, title, about = _NOTICES[rendered.state]
    link = (rendered.home_url, "to_home") if rendered.state == "no page" else None
    return render.notice(request, 404, icon=icon, title=title, about=about, link=link)
