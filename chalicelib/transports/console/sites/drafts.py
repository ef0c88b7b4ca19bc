"""The draft of a page: beside the page that visitors see, published or discarded."""

from typing import Any

from chalicelib.core.errors import AppError, ConflictError, NotFoundError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.sites import frames, placing
from chalicelib.transports.console.sites.sites import site_path
from chalicelib.transports.http import HttpResponse, redirect

IF_DRAFT, IF_HTML = "ifDraft", "ifHtml"
"""Form fields with the marks of the draft and of the page's HTML that were shown."""
CHANGED, OUTDATED = "draft_changed", "draft_outdated"
"""Keys of conflicts: another draft, or other HTML of the page, was saved in the meantime."""
DRAFT = "draft"  # The button that saves the draft. Any other publishes.


def find(request: ConsoleRequest) -> dict[str, Any]:
    """Return a page with its draft, and as ``html`` and ``sections`` what its editors show."""
    read = request.call("get_page_draft", id=request.http.path["page"])
    shown = read["draft"] or read["page"]
    return {**read, "id": read["page"]["id"], "html": shown["html"], "sections": shown["sections"]}


def marks(request: ConsoleRequest, *names: str) -> dict[str, str]:
    """Return the marks that a form was opened with. A form without one asks for no condition."""
    return {name: request.form_value(name) for name in names if name in request.form}


def path_of(request: ConsoleRequest) -> str:
    """Return the path of a page in the console."""
    return f"{site_path(request)}/pages/{request.http.path['page']}"


def show(request: ConsoleRequest) -> HttpResponse:
    """Show the draft of a page and the page side by side."""
    return _comparison(request, 200)


def publish(request: ConsoleRequest) -> HttpResponse:
    """Publish the draft that was shown."""
    return publish_shown(request, path_of(request), **marks(request, IF_DRAFT, IF_HTML))


def discard(request: ConsoleRequest) -> HttpResponse:
    """Remove the draft that was shown."""
    shown = marks(request, IF_DRAFT)
    try:
        request.call("discard_page_draft", id=request.http.path["page"], **shown)
    except ConflictError as error:
        return _comparison(request, error.status, problem(request, error))
    return redirect(f"{path_of(request)}?done=draft_discarded")


def publish_shown(request: ConsoleRequest, then: str, **shown: str) -> HttpResponse:
    """Publish a draft and go on, or show what was saved meanwhile beside it."""
    try:
        request.call("publish_page", id=request.http.path["page"], **shown)
    except NotFoundError as error:
        if error.key != "page_draft":
            raise
        return redirect(f"{path_of(request)}?done=no_draft")
    except AppError as error:
        return _comparison(request, error.status, problem(request, error))
    return redirect(f"{then}?done=page_saved")


def problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return what a page says of a draft that was not saved or published."""
    if error.key in {CHANGED, OUTDATED}:
        return Problem(request.translate(f"problem_{error.key}"))
    return placing.problem(request, error)


def _comparison(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    read = find(request)
    page, draft = read["page"], read["draft"]
    if draft is None:
        return redirect(f"{path_of(request)}?done=no_draft")
    response = request.page(
        "page_draft",
        status,
        problem=problem,
        path=path_of(request),
        page=page,
        draft=draft,
        html_mark=read["htmlMark"],
        **frames.lines(request, page["html"], new_html=draft["html"]),
        page_html=frames.as_visitors_see(request, page, page["html"]),
        draft_html=frames.as_visitors_see(request, page, draft["html"]),
    )
    return frames.allow_their_styles(response)
