"""Page that edits the HTML of a site's page, or of its draft."""

from typing import Any

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.domains.sites.flows.page_objects import parts_without_host
from chalicelib.domains.sites.rules import side_by_side
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.sites import drafts
from chalicelib.transports.console.sites.sites import site_path
from chalicelib.transports.http import HttpResponse, redirect

# Maximum bytes of HTML that a form edits. Larger pages need the API: a form triples some bytes.
MAX_EDITED_BYTES = 200_000


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the HTML of a page, or of its draft."""
    read = drafts.find(request)
    return _page(request, 200, read, read["html"])


def save(request: ConsoleRequest) -> HttpResponse:
    """Save the HTML as the draft, unless another was saved since; publish it if asked to."""
    read = drafts.find(request)
    typed_html = request.form_value("html").replace("\r\n", "\n")
    html = typed_html.replace("\n", "\r\n") if "\r\n" in read["html"] else typed_html
    shown = drafts.marks(request, drafts.IF_DRAFT, "beganFrom")
    try:
        saved = request.call("save_page_draft", id=read["id"], html=html, **shown)
    except NotFoundError:
        raise
    except AppError as error:
        problem = drafts.problem(request, error)
        if error.key != drafts.CHANGED:
            return _page(request, error.status, read, typed_html, problem)
        read = drafts.find(request)
        rows = side_by_side.compare(read["html"], new_text=html)
        return _page(request, error.status, read, typed_html, problem, rows, is_compared=True)
    path = f"{drafts.path_of(request)}/html"
    if request.form_value("action") == drafts.DRAFT:
        return redirect(f"{path}?done=draft_saved")
    return drafts.publish_shown(request, path, ifDraft=saved["mark"])


def _page(  # noqa: PLR0913, PLR0917  parts of the page
    request: ConsoleRequest,
    status: int,
    read: dict[str, Any],
    typed_html: str,
    problem: Problem | None = None,
    rows: list[side_by_side.Row] | None = None,
    *,
    is_compared: bool = False,
) -> HttpResponse:
    page, draft = read["page"], read["draft"]
    return request.page(
        "page_html",
        status,
        problem=problem,
        page=page,
        draft=draft,
        began_from=draft["beganFrom"] if draft else read["htmlMark"],
        path=drafts.path_of(request),
        site_path=site_path(request),
        just_saved=request.query_value("done") == "page_saved",
        frame_hosts=parts_without_host(page["url"], read["html"]),
        typed=typed_html,
        too_long=len(read["html"].encode()) > MAX_EDITED_BYTES,
        rows=rows,
        is_compared=is_compared,
    )
