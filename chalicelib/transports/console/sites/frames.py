"""Pages of sites in sandboxed frames of the console, as their visitors would see them."""

from chalicelib.domains.sites.flows.site_pages import RenderedPage
from chalicelib.domains.sites.rules import sections
from chalicelib.domains.sites.store.sites import SITES
from chalicelib.transports.console.console_request import ConsoleRequest
from chalicelib.transports.console.form_controls import Record
from chalicelib.transports.http import HttpResponse
from chalicelib.transports.lazy import Lazy

_SHOW: Lazy[[RenderedPage], str] = Lazy("chalicelib.transports.web.composed_pages:show")


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


def allow_their_styles(response: HttpResponse) -> HttpResponse:
    """Return a page of the console whose frames show the styles of sites."""
    # A document in a frame has the policy of its page, and pages of sites have styles of their own.
    # Scripts stay forbidden, by this policy and by the sandbox of the frame.
    policy = response.headers["Content-Security-Policy"].replace(
        "style-src 'self'",
        "style-src 'self' 'unsafe-inline' https:; font-src 'self' https: data:; media-src https:",
    )
    return response._replace(headers={**response.headers, "Content-Security-Policy": policy})
