"""Pages of AI clients that members have connected by OAuth."""

from typing import Any

from chalicelib.core.areas import SCOPED
from chalicelib.core.errors import AppError, ForbiddenError, NotFoundError
from chalicelib.domains.oauth.rules import resources
from chalicelib.transports.console.console_request import ConsoleRequest, Problem, find_by_id
from chalicelib.transports.console.settings.keys import (
    failed_calls,
    meanings,
    plan_lacks_api,
    rights,
)
from chalicelib.transports.http import HttpResponse, redirect

MAX_INACTIVE_SHOWN = 20  # Maximum ended and expired connections on the page, the latest first.


def index(request: ConsoleRequest) -> HttpResponse:
    """List the connected apps, with active connections first."""
    response = request.call("list_connections")
    apps = [{**app, "rights": rights(app["scopes"])} for app in response["connections"]]
    inactive = [app for app in apps if app["state"] != "live"]
    return request.page(
        "apps",
        apps=[app for app in apps if app["state"] == "live"],
        inactive=inactive[:MAX_INACTIVE_SHOWN],
        inactive_count=len(inactive),
        listed=response,
        plan_lacks_api=plan_lacks_api(request),
        server_url=resources.resource(),
    )


def show(request: ConsoleRequest) -> HttpResponse:
    """Show what an app may do, and its failed calls."""
    app = _app(request)
    return request.page(
        "app", app=app, meanings=meanings(app["scopes"]), **failed_calls(request, app["id"])
    )


def confirm_disconnect(request: ConsoleRequest) -> HttpResponse:
    """Show the confirmation to disconnect an app."""
    app = _app(request)
    if app["state"] != "live":
        return _to_list(request)
    return request.page("app_disconnect", app=app)


def disconnect(request: ConsoleRequest) -> HttpResponse:
    """Disconnect an app permanently."""
    request.call("end_connection", id=request.http.path["connection"])
    return _to_list(request)


def confirm_allow(request: ConsoleRequest) -> HttpResponse:
    """Show the scopes that an app lacks, with the scope of the link ticked."""
    return _allow_page(request, {request.query_value("scope")})


def allow(request: ConsoleRequest) -> HttpResponse:
    """Give an app the ticked scopes."""
    ticked = request.form.get("scopes", ())
    if not ticked:
        problem = Problem(request.translate("wrong_consent_scopes"))
        return _allow_page(request, set(), 400, problem)
    try:
        request.call("widen_connection", id=request.http.path["connection"], scopes=list(ticked))
    except (NotFoundError, ForbiddenError):
        raise
    except AppError as error:
        return _allow_page(request, set(ticked), error.status, request.problem(error))
    return _to_list(request, "app_allowed")


def _allow_page(
    request: ConsoleRequest, ticked: set[str], status: int = 200, problem: Problem | None = None
) -> HttpResponse:
    app = _app(request)
    account = request.signed_in_account
    owner: Any = app["account"]
    if app["state"] != "live" or not owner or owner["id"] != account.id:
        return _to_list(request, "")
    missing = [
        (area.text, scope, right, area.meaning(right))
        for scope in resources.REQUESTABLE
        for area, right in [(SCOPED[scope.area], scope.partition(":")[2])]
        if scope not in app["scopes"] and (account.role == "admin" or not scope.admin_only)
    ]
    return request.page(
        "app_allow", status, app=app, missing=missing, ticked=ticked, problem=problem
    )


def _to_list(request: ConsoleRequest, done: str = "app_disconnected") -> HttpResponse:
    query = f"?done={done}" if done else ""
    return redirect(f"{request.current_membership.path}/apps{query}")


def _app(request: ConsoleRequest) -> dict[str, Any]:
    apps = request.call("list_connections")["connections"]
    app = find_by_id(apps, request.http.path["connection"])
    return {**app, "rights": rights(app["scopes"])}
