"""Pages that create sites and pages of them, and delete both.

The part of embed pages that places a form or a bot on a page of one of the workspace's sites.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConflictError, NotFoundError, VersionConflictError
from chalicelib.domains.sites.flows.undoing import KEPT_AFTER_DELETION
from chalicelib.domains.sites.rules import page_html
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.list_page import deletion
from chalicelib.transports.console.sites.sites import list_path, site_path
from chalicelib.transports.http import HttpResponse, redirect


def new_site_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form that creates a site."""
    return request.page("site_new", typed_title="")


def create_site(request: ConsoleRequest) -> HttpResponse:
    """Create a site, and continue with its first page. A form that is sent twice creates one."""
    title = request.form_value("title")
    try:
        made = request.call_once("create_site", title=title)
    except AppError as error:
        problem = request.problem(error)
        return request.page("site_new", error.status, problem=problem, typed_title=title)
    return redirect(f"{list_path(request)}/{made['project']['id']}/pages?done=site_created")


def new_page_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form that creates a page of a site."""
    return _new_page(request, 200)


def create_page(request: ConsoleRequest) -> HttpResponse:
    """Create a page with a heading, and continue with its HTML."""
    title, site = request.form_value("title"), request.http.path["site"]
    try:
        page = request.call_once("create_page", projectId=site, title=title)["page"]
        html = page_html.starter(page["title"], request.language)
        with suppress(VersionConflictError):  # The form was sent twice, and the page has its HTML.
            request.call(
                "save_page_html",
                id=page["id"],
                html=html,
                ifVersion=page["version"],
                returnHtml=False,
            )
    except NotFoundError:
        raise
    except ConflictError as error:
        return _new_page(request, error.status, Problem(request.translate("pages_full")))
    except AppError as error:
        return _new_page(request, error.status, request.problem(error))
    return redirect(f"{site_path(request)}/pages/{page['id']}/html?done=page_created")


def _restorable_until() -> str:
    """Return the time until which a record that is deleted now can be restored."""
    return clock.iso(clock.now() + KEPT_AFTER_DELETION)


def _new_page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    site = request.call("list_deleted_pages", projectId=request.http.path["site"])["project"]
    return request.page(
        "page_new",
        status,
        problem=problem,
        site=site,
        path=site_path(request),
        typed_title=request.form_value("title"),
    )


def _page_asked(request: ConsoleRequest) -> dict[str, Any]:
    page = request.call("list_page_versions", id=request.http.path["page"])["page"]
    path = f"{site_path(request)}/pages/{page['id']}"
    return {"page": page, "path": path, "until": _restorable_until()}


def _site_asked(request: ConsoleRequest) -> dict[str, Any]:
    """Return a site, with what would be deleted."""
    site_id = request.http.path["site"]
    site = request.call("list_deleted_pages", projectId=site_id)["project"]
    cascade = {"pages": None, "forms": None, "domain": None}
    with suppress(ConflictError):
        cascade = request.call("delete_site", id=site_id, dryRun=True)["cascade"]
    path, until = site_path(request), _restorable_until()
    return {"site": site, "path": path, "cascade": cascade, "until": until}


confirm_delete_page, delete_page = deletion(
    *("page_delete", _page_asked, "delete_page", "page_deleted"),
    to=site_path,
    conflict="page_is_home",
    id="page",
    confirm=True,
)
confirm_delete_site, delete_site = deletion(
    *("site_delete", _site_asked, "delete_site", "site_deleted"),
    conflict="site_is_restoring",
    id="site",
)


MAX_SITES = 100
TRIES = 3
"""Attempts to save a page that another person saves at the same moment."""


class Snippet(NamedTuple):
    """HTML to place. A page that has text from ``begins`` through ``ends`` has it already."""

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
    sites = request.call("list_sites", size=MAX_SITES, sortBy="updatedAt")["projects"]
    chosen = request.query_value("site") or request.form_value("site")
    site = next((each for each in sites if each["id"] == chosen), sites[0] if sites else None)
    pages = request.call("list_pages", projectId=site["id"])["pages"] if site else []
    return {
        "sites": [(each["id"], each["title"]) for each in sites],
        "site": site,
        "pages": [(page["id"], page["title"]) for page in pages],
        "page": request.form_value("page"),
    }


def place(request: ConsoleRequest, snippet: Snippet) -> HttpResponse:
    """Place a snippet on the chosen page, and show the page with its earlier versions.

    Raises:
        NotFoundError: the page is gone.
        AppError: the page could not be saved.
    """
    placed = _save(request, request.form_value("page"), snippet)
    path = f"{request.current_membership.path}/sites/{placed.site}/pages/{placed.page}"
    return redirect(f"{path}?done={'placed' if placed.changed else 'placed_already'}")


def problem(request: ConsoleRequest, error: AppError) -> Problem:
    """Return what an embed page says of a placement that failed."""
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
        stored = page["html"]
        blank = not stored.strip()
        before = page_html.starter(page["title"], request.language) if blank else stored
        html = page_html.with_snippet(before, *snippet)
        if html == stored:
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
