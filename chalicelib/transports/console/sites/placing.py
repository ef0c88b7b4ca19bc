"""The part of embed pages that places a form or a bot on a page of one of the workspace's sites."""

from typing import Any, NamedTuple

from chalicelib.core.errors import AppError, ConflictError, NotFoundError
from chalicelib.domains.sites.rules import page_html
from chalicelib.transports.console.choices import SITES
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.http import HttpResponse, redirect

TRIES = 3  # Attempts to save a page that another user saves at the same moment.


class Snippet(NamedTuple):
    """HTML to place, unless the page has a block from ``begins`` through ``ends``."""

    html: str
    begins: str
    ends: str


class Placed(NamedTuple):
    """Address of the page in the console, and whether its HTML changed."""

    site: str
    page: str
    changed: bool


def places(request: ConsoleRequest) -> dict[str, Any]:
    """Return the sites, and the pages of the chosen or else the latest one, for the template."""
    if not request.current_membership.may("save_page_html"):
        return {"sites": None}
    site_id = request.query_value("site") or request.form_value("site")
    offered = SITES.offer(request, "site", [site_id], sortBy="updatedAt")
    sites = offered.records
    site = next(
        (candidate for candidate in sites if candidate["id"] == site_id),
        sites[0] if sites else None,
    )
    pages = request.call("list_pages", projectId=site["id"])["pages"] if site else []
    return {
        "sites": [*offered.names.items()],
        "offered_sites": offered,
        "site": site,
        "pages": [(page["id"], page["title"]) for page in pages],
        "page": request.form_value("page"),
    }


def place(request: ConsoleRequest, snippet: Snippet) -> HttpResponse:
    """Place a snippet on the chosen page and show it, or raise the AppError of the save."""
    placement = _save(request, request.form_value("page"), snippet)
    path = f"{request.current_membership.path}/sites/{placement.site}/pages/{placement.page}"
    return redirect(f"{path}?done={'placed' if placement.changed else 'placed_already'}")


def problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return what an embed page shows of a placement that failed."""
    if error.code == NotFoundError.code:
        text = request.translate("wrong_page")
        return Problem(request.translate("wrong_fields"), {"page": text})
    known = {"quota_exceeded", "payload_too_large", "version_conflict"}
    if error.code in known:
        return Problem(request.translate(f"place_{error.code}"))
    return request.problem(error)


def _save(request: ConsoleRequest, page_id: str, snippet: Snippet) -> Placed:
    for attempt in range(TRIES):
        page = request.call("get_page", id=page_id)["page"]
        stored_html = page["html"]
        blank = not stored_html.strip()
        base_html = (
            page_html.starter(page["title"], language=request.language) if blank else stored_html
        )
        html = page_html.add_snippet(
            base_html, snippet=snippet.html, begins=snippet.begins, ends=snippet.ends
        )
        if html == stored_html:
            return Placed(page["projectId"], page["id"], changed=False)
        try:
            request.call(
                "save_page_html",
                id=page["id"],
                html=html,
                ifVersion=page["version"],
                returnHtml=False,
            )
        except ConflictError:
            if attempt + 1 == TRIES:
                raise
            continue
        return Placed(page["projectId"], page["id"], changed=True)
    raise AssertionError
