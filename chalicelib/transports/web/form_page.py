"""A form on a page of its own, for a link in a message or a profile."""

from collections.abc import Sequence

from chalicelib.core.settings import settings
from chalicelib.domains.booking_page.rules import prepared_links
from chalicelib.domains.leads.flows import form_html
from chalicelib.domains.leads.flows.submissions import form_with_brand
from chalicelib.transports.http import CACHED, HTML_TYPE, HttpRequest, HttpResponse, etag
from chalicelib.transports.lazy import Lazy
from chalicelib.transports.web import render
from chalicelib.transports.web.visitor_requests import query_value

# The campaign of the links that assistants prepare, by which statistics count their orders.
AGENT_SOURCE = "utm_source=agent"


_PREPARED_ORDER: Lazy[[str, str, str], list[form_html.OrderLine]] = Lazy(
    "chalicelib.domains.assistants.flows.prepared_orders:opened"
)


@render.failures_as_pages
def show(request: HttpRequest) -> HttpResponse:
    """Show a form in its language. Raises NotFoundError if unknown, or its site is suspended."""
    form_id = request.path["form"]
    form = form_with_brand(form_id)
    url = f"{settings().public_url}/api/public/forms/{form_id}/submit"
    order = _order(request)
    html = form_html.form_page(
        form.title,
        form.fields,
        form.language,
        submit_url=url,
        brand=form.brand,
        is_test=form.is_test,
        order=order,
        currency=form.currency,
        report_url=settings().support_url,
        page_url=f"{settings().public_url}/form/{form_id}?{AGENT_SOURCE}" if order else "",
    )
    headers = {"Content-Type": HTML_TYPE, **form_html.form_page_headers(form.language, form.brand)}
    # An order is one visitor's, and its prices are of this moment.
    headers |= (
        {"Cache-Control": "no-store"}
        if order
        else {"Cache-Control": CACHED, "ETag": etag(html.encode())}
    )
    return HttpResponse(200, html.encode(), headers)


def _order(request: HttpRequest) -> Sequence[form_html.OrderLine]:
    # Raises AppError if the link has ended, or its products cannot be ordered any more.
    if not (token := query_value(request, prepared_links.PARAMETER)):
        return ()
    lines = query_value(request, prepared_links.LINES)
    return _PREPARED_ORDER(request.path["form"], lines, token)
