"""Console pages that create sites and their pages, and delete both."""

from contextlib import suppress
from typing import Any

from chalicelib.core import clock
from chalicelib.core.errors import AppError, ConflictError, NotFoundError, VersionConflictError
from chalicelib.domains.sites.flows.undoing import KEPT_AFTER_DELETION
from chalicelib.domains.sites.rules import page_html
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.deletion import deletion
from chalicelib.transports.console.sites.sites import list_path, site_path
from chalicelib.transports.console.sites.starters import TRADES, first_sections
from chalicelib.transports.http import HttpResponse, redirect


def new_site_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form that creates a site."""
    return request.page("site_new", typed_title="", **_trades(request))


def _trades(request: ConsoleRequest) -> dict[str, Any]:
    trades = [(trade, request.translate(f"trade_{trade}")) for trade in TRADES]
    empty = ("", request.translate("trade_empty"))
    return {"trades": [empty, *trades], "trade": request.form_value("trade")}


def create_site(request: ConsoleRequest) -> HttpResponse:
    """Create a site, and continue with its first page. A form that is sent twice creates one.

    The first page is made of the sections of the chosen trade, or by the next form.
    """
    title, trade = request.form_value("title"), request.form_value("trade")
    try:
        made = request.call_once("create_site", title=title)
    except AppError as error:
        problem = request.problem(error)
        return request.page(
            "site_new", error.status, problem=problem, typed_title=title, **_trades(request)
        )
    if trade in TRADES:
        return _first_page(request, made["project"]["id"], trade)
    return redirect(f"{list_path(request)}/{made['project']['id']}/pages?done=site_created")


def _first_page(request: ConsoleRequest, site: str, trade: str) -> HttpResponse:
    page = request.call_once("create_page", projectId=site, title=request.translate("trade_home"))
    page = page["page"]
    # The form was sent twice, and the page has its sections.
    with suppress(VersionConflictError):
        request.call(
            "update_page",
            id=page["id"],
            sections=first_sections(request, trade),
            ifVersion=page["version"],
        )
    return redirect(f"{list_path(request)}/{site}/pages/{page['id']}/sections?done=page_created")


def new_page_page(request: ConsoleRequest) -> HttpResponse:
    """Show the form that creates a page of a site."""
    return _new_page(request, 200)


def create_page(request: ConsoleRequest) -> HttpResponse:
    """Create a page with a heading, and continue with its sections."""
    title, site = request.form_value("title"), request.http.path["site"]
    try:
        page = request.call_once("create_page", projectId=site, title=title)["page"]
        html = page_html.starter(page["title"], language=request.language)
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
    return redirect(f"{site_path(request)}/pages/{page['id']}/sections?done=page_created")


def _restorable_until() -> str:
    return clock.iso(clock.now() + KEPT_AFTER_DELETION)


def _new_page(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    site = request.call("list_deleted_pages", projectId=request.http.path["site"])["project"]
    is_first = request.query_value("done") == "site_created"
    return request.page(
        "page_new",
        status,
        problem=problem,
        site=site,
        path=site_path(request),
        # The first page of a new site usually has the site's title.
        typed_title=request.form_value("title") or (site["title"] if is_first else ""),
    )


def _page_asked(request: ConsoleRequest) -> dict[str, Any]:
    page = request.call("list_page_versions", id=request.http.path["page"])["page"]
    path = f"{site_path(request)}/pages/{page['id']}"
    return {"page": page, "path": path, "until": _restorable_until()}


def _site_asked(request: ConsoleRequest) -> dict[str, Any]:
    site_id = request.http.path["site"]
    site = request.call("list_deleted_pages", projectId=site_id)["project"]
    cascade = {"pages": None, "forms": None, "domain": None}
    with suppress(ConflictError):
        cascade = request.call("delete_site", id=site_id, dryRun=True)["cascade"]
    path, until = site_path(request), _restorable_until()
    return {"site": site, "path": path, "cascade": cascade, "until": until}


confirm_delete_page, delete_page = deletion(
    "page_delete",
    _page_asked,
    "delete_page",
    notice="page_deleted",
    to=site_path,
    conflict="page_is_home",
    id="page",
    confirm=True,
)
confirm_delete_site, delete_site = deletion(
    "site_delete",
    _site_asked,
    "delete_site",
    notice="site_deleted",
    conflict="site_is_restoring",
    id="site",
)
