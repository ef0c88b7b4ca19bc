"""Page that edits the HTML of a site's page."""

import re
from typing import Any

from chalicelib.core.errors import AppError, NotFoundError, VersionConflictError
from chalicelib.domains.sites.flows.page_objects import parts_without_host
from chalicelib.domains.sites.rules import side_by_side
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.sites import placing
from chalicelib.transports.console.sites.sites import site_path
from chalicelib.transports.http import HttpResponse, redirect

# Maximum bytes of HTML that a form edits. Larger pages need the API: a form triples some bytes.
MAX_EDITED_BYTES = 200_000
_VERSION = re.compile("[1-9][0-9]{0,9}", re.ASCII)


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the HTML of a page."""
    page = _find_page(request)
    return _page(request, 200, page, page["html"])


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the HTML, unless the page has changed since it was shown."""
    page = _find_page(request)
    typed_html = request.form_value("html").replace("\r\n", "\n")
    html = typed_html.replace("\n", "\r\n") if "\r\n" in page["html"] else typed_html
    version = request.form_value("ifVersion")
    condition = {"ifVersion": int(version)} if _VERSION.fullmatch(version) else {}
    try:
        request.call("save_page_html", id=page["id"], html=html, returnHtml=False, **condition)
    except NotFoundError:
        raise
    except VersionConflictError as error:
        page = _find_page(request)
        rows = side_by_side.compare(page["html"], new_text=html)
        problem = Problem(request.translate("page_changed_meanwhile"))
        return _page(request, error.status, page, typed_html, problem, rows=rows, is_compared=True)
    except AppError as error:
        return _page(request, error.status, page, typed_html, placing.problem(request, error))
    return redirect(f"{site_path(request)}/pages/{page['id']}/html?done=page_saved")


def _find_page(request: ConsoleRequest) -> dict[str, Any]:
    page: dict[str, Any] = request.call("get_page", id=request.http.path["page"])["page"]
    return page


def _page(  # noqa: PLR0913, PLR0917  parts of the page
    request: ConsoleRequest,
    status: int,
    page: dict[str, Any],
    typed_html: str,
    problem: Problem | None = None,
    rows: list[side_by_side.Row] | None = None,
    *,
    is_compared: bool = False,
) -> HttpResponse:
    return request.page(
        "page_html",
        status,
        problem=problem,
        page=page,
        path=f"{site_path(request)}/pages/{page['id']}",
        site_path=site_path(request),
        just_saved=request.query_value("done") == "page_saved",
        frame_hosts=parts_without_host(page["url"], page["html"]),
        typed=typed_html,
        too_long=page["htmlBytes"] > MAX_EDITED_BYTES,
        rows=rows,
        is_compared=is_compared,
    )
