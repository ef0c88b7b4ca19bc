"""Pages of AI clients that members have connected by OAuth."""

from chalicelib.domains.oauth.rules import resources
from chalicelib.transports.console.console_request import ConsoleRequest, find_by_id
from chalicelib.transports.console.settings.keys import plan_lacks_api, rights
from chalicelib.transports.http import HttpResponse, redirect

MAX_INACTIVE_SHOWN = 20
"""Maximum ended and expired connections on the page, the latest first."""


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


def _to_list(request: ConsoleRequest) -> HttpResponse:
    return redirect(f"{request.current_membership.path}/apps?done=app_disconnected")


def _app(request: ConsoleRequest) -> dict[str, object]:
    apps = request.call("list_connections")["connections"]
    app = find_by_id(apps, request.http.path["connection"])
    return {**app, "rights": rights(app["scopes"])}
