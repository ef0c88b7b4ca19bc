"""Pages behind a client's link, which look like the booking page of the business."""

from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.booking_page.flows.brand import brand_of
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.web import render


def show(
    request: HttpRequest,
    workspace_id: str,
    template: str,
    status: int = 200,
    *,
    script: str | None = None,
    **values: object,
) -> HttpResponse:
    """Return a page of ``templates/book`` that no search engine lists."""
    response = render.page(
        request,
        f"book/{template}.html",
        status,
        cached=False,
        script=script,
        is_test=is_test(workspace_id),
        brand=brand_of(workspace_id),
        indexed=False,
        **values,
    )
    return response.with_headers({**response.headers, "X-Robots-Tag": "noindex"})
