"""Pages of sites, earlier versions and deleted sites."""

from chalicelib.core.errors import AppError, NotFoundError
from chalicelib.transports.console.console_request import SEARCH_THRESHOLD, ConsoleRequest, Problem
from chalicelib.transports.console.form import STORED, Form, State
from chalicelib.transports.console.form_controls import Field, Record, Switch, status_switch
from chalicelib.transports.console.sites import frames
from chalicelib.transports.http import HttpResponse, redirect

SITES_PER_PAGE = 50
FORM = Form(
    Field("title", "site_title", empty=""),
    status_switch("site_is_visible"),
    Switch("showsProducts", "site_shows_products"),
    changes="update_site",
)


def index(request: ConsoleRequest) -> HttpResponse:
    """List the sites, and the deleted ones that can be restored."""
    return _index(request, 200)


def restore_site(request: ConsoleRequest) -> HttpResponse:
    """Restore a deleted site."""
    try:
        response = request.call("restore_site", id=request.http.path["deleted_site"])
    except NotFoundError:
        return redirect(f"{list_path(request)}?done=restored_no_more")
    except AppError as error:
        return _index(request, error.status, _problem(request, error))
    return redirect(f"{list_path(request)}/{response['project']['id']}?done=site_restored")


def restore_page(request: ConsoleRequest) -> HttpResponse:
    """Restore a deleted page of a site."""
    deleted = request.call("list_deleted_pages", projectId=request.http.path["site"])["deleted"]
    page_id = request.http.path["deleted_page"]
    if page_id not in {page["id"] for page in deleted}:
        return redirect(f"{site_path(request)}?done=restored_no_more")
    try:
        request.call("restore_page", id=page_id)
    except AppError as error:
        state = State(error.status, _problem(request, error))
        return _site_page(request, find_site(request), state)
    return redirect(f"{site_path(request)}?done=page_restored")


def versions(request: ConsoleRequest) -> HttpResponse:
    """List the earlier versions of a page."""
    return _versions(request, 200)


def undo(request: ConsoleRequest) -> HttpResponse:
    """Give a page the HTML from before its last change. A second undo brings the change back."""
    page = request.http.path["page"]
    path = f"{site_path(request)}/pages/{page}"
    stored_versions = request.call("list_page_versions", id=page)["versions"]
    if not stored_versions:
        return redirect(f"{path}?done=nothing_to_undo")
    try:
        _restore(request, version_id=stored_versions[0]["id"])
    except AppError as error:
        return _versions(request, error.status, _problem(request, error))
    return redirect(f"{path}?done=change_undone")


def _restore(request: ConsoleRequest, *, version_id: str) -> None:
    request.call(
        "restore_page_version",
        id=request.http.path["page"],
        versionId=version_id,
        ifVersion=int(request.form_value("ifVersion") or 0) or None,
    )


def _versions(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    page_id = request.http.path["page"]
    response = request.call("list_page_versions", id=page_id)
    savers = request.call("list_page_savers", id=page_id)["savers"] if response["versions"] else []
    return request.page(
        "page_versions",
        status,
        problem=problem,
        path=site_path(request),
        savers={saver["savedBy"]: saver for saver in savers},
        page=response["page"],
        versions=response["versions"],
        draft=request.call("get_page_draft", id=page_id)["draft"],
    )


def compare(request: ConsoleRequest) -> HttpResponse:
    """Show an earlier version of a page, and how its HTML differs from the present one."""
    return _comparison(request, 200)


def restore_version(request: ConsoleRequest) -> HttpResponse:
    """Give a page the HTML of an earlier version, unless it has changed since it was shown."""
    try:
        _restore(request, version_id=request.http.path["version"])
    except AppError as error:
        return _comparison(request, error.status, _problem(request, error))
    page = request.http.path["page"]
    return redirect(f"{site_path(request)}/pages/{page}?done=version_restored")


def _comparison(
    request: ConsoleRequest, status: int, problem: Problem | None = None
) -> HttpResponse:
    response = request.call(
        "get_page_version",
        id=request.http.path["page"],
        versionId=request.http.path["version"],
    )
    html, page = response["versionHtml"], response["page"]
    shown_page = request.page(
        "page_version",
        status=status,
        problem=problem,
        path=site_path(request),
        **frames.lines(request, html, new_html=response["html"]),
        page=page,
        version=response["version"],
        version_html=frames.as_visitors_see(request, page, html),
        page_html=frames.as_visitors_see(request, page, response["html"]),
    )
    return frames.allow_their_styles(shown_page)


def _index(request: ConsoleRequest, status: int, problem: Problem | None = None) -> HttpResponse:
    query, number = request.query_value("q").strip()[:200], request.page_number
    response = request.call(
        "list_sites",
        size=SITES_PER_PAGE,
        page=number,
        sortBy="updatedAt",
        **({"search": query} if query else {}),
    )
    total = response["pagination"]["total"]
    deleted = request.call("list_deleted_sites")
    return request.page(
        "sites",
        status=status,
        problem=problem,
        sites=response["projects"],
        total=total,
        page=number,
        size=SITES_PER_PAGE,
        query=query,
        searchable=bool(query) or total > SEARCH_THRESHOLD,
        deleted=deleted["deleted"],
        deleted_total=deleted["total"],
    )


def find_site(request: ConsoleRequest) -> Record:
    """Return the site of a page, or raise NotFoundError."""
    site: Record = request.call("list_deleted_pages", projectId=request.http.path["site"])[
        "project"
    ]
    return site


def _site_page(request: ConsoleRequest, site: Record, state: State = STORED) -> HttpResponse:
    deleted = request.call("list_deleted_pages", projectId=site["id"])
    drafts = request.call("list_page_drafts", projectId=site["id"])["drafts"]
    return request.page(
        "site",
        site=site,
        pages=request.call("list_pages", projectId=site["id"])["pages"],
        drafts={draft["pageId"]: draft for draft in drafts},
        deleted=deleted["deleted"],
        deleted_total=deleted["total"],
        typed_domain=request.form_value("domain"),
        **FORM.page_values(request, site, state),
    )


def set_domain(request: ConsoleRequest) -> HttpResponse:
    """Bind a domain to a site, check its records again, or unbind it."""
    name = None if request.form_value("action") == "remove" else request.form_value("domain")
    try:
        request.call("set_site_domain", id=request.http.path["site"], domain=name)
    except NotFoundError:
        raise
    except AppError as error:
        form_values = FORM.page_values(request, find_site(request), STORED)["typed"]
        state = State(error.status, request.problem(error), form_values=form_values)
        return _site_page(request, find_site(request), state)
    notice = "domain_removed" if name is None else "domain_checked"
    return redirect(f"{site_path(request)}?done={notice}")


def _problem(request: ConsoleRequest, error: AppError) -> Problem:
    codes = {"quota_exceeded", "version_conflict"}
    return Problem(request.translate(f"restore_{error.code if error.code in codes else 'refused'}"))


def list_path(request: ConsoleRequest) -> str:
    """Return the path of the list of sites."""
    return f"{request.current_membership.path}/sites"


def site_path(request: ConsoleRequest) -> str:
    """Return the path of the site's pages in the console."""
    return f"{list_path(request)}/{request.http.path['site']}"


show, save = FORM.editing(find_site, _site_page, "site_saved")
