"""Pages of sites in sandboxed frames of the console, as their visitors would see them."""

from typing import Any

from chalicelib.domains.sites.flows.site_pages import RenderedPage
from chalicelib.domains.sites.rules import sections, side_by_side
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form_controls import Record
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy

_SHOW: Lazy[[RenderedPage], str] = Lazy("chalicelib.transports.web.composed_pages:show")

LINES = "lines"  # The parameter of a page that also compares the HTML.


def as_visitors_see(request: ConsoleRequest, page: Record, html: str) -> str:
    """Return HTML of a page with its sections filled in, and its header and footer."""
    if sections.BEGIN not in html:
        return html
    workspace = request.current_membership.workspace
    site = SITES.require(workspace.id, record_id=page["projectId"])
    return _SHOW(
        RenderedPage(
            "shown",
            html,
            site,
            workspace_id=workspace.id,
            workspace=workspace,
            page_id=page["id"],
        )
    )


def lines(request: ConsoleRequest, old_html: str, *, new_html: str) -> dict[str, Any]:
    """Return what a page shows of two documents line by line, if its reader has to know or asks.

    The lines of two long pages are more than the rest of the page.
    """
    # A form that is answered with a page was refused, because of what was saved meanwhile.
    is_asked = request.http.method == "POST" or request.query_value(LINES) == "1"
    rows = side_by_side.compare(old_html, new_text=new_html) if is_asked else None
    return {"has_lines": is_asked, "rows": rows}


def allow_their_styles(response: HttpResponse) -> HttpResponse:
    """Return a page of the console whose frames show the styles of sites."""
    # A document in a frame has the policy of its page, and pages of sites have styles of their own.
    # Scripts stay forbidden, by this policy and by the sandbox of the frame.
    policy = response.headers["Content-Security-Policy"].replace(
        "style-src 'self'",
        "style-src 'self' 'unsafe-inline' https:; font-src 'self' https: data:; media-src https:",
    )
    return response._replace(headers={**response.headers, "Content-Security-Policy": policy})
