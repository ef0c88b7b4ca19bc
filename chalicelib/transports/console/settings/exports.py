"""Pages on which the owner exports the workspace to a file."""

from chalicelib.core.errors import RateLimitedError, ValidationError
from chalicelib.transports.console.console_request import ConsoleRequest, Problem
from chalicelib.transports.console.form import problem_at_fields
from chalicelib.transports.http import HttpResponse, redirect


def index(request: ConsoleRequest) -> HttpResponse:
    """List the exports, and what a file does not contain."""
    return _page(request)


def _page(
    request: ConsoleRequest, status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    listed = request.call("list_exports")
    return request.page("exports", status, problem=problem, listed=listed)


def start(request: ConsoleRequest) -> HttpResponse:
    """Start an export."""
    try:
        export_id = request.call("export_workspace")["exportId"]
    except ValidationError as error:
        return _page(request, error.status, problem_at_fields(request, error))
    except RateLimitedError as error:
        return _page(request, error.status, Problem(request.translate("exports_used_up")))
    return redirect(f"{request.current_membership.path}/exports/{export_id}")


def show(request: ConsoleRequest) -> HttpResponse:
    """Show how far an export is, with a link to its file that is valid for 15 minutes."""
    export = request.call("get_export", id=request.http.path["export"])
    return request.page("export", export=export)
