"""Adapt Chalice to the project's own requests and responses, with all errors in the envelope."""

from base64 import b64decode
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from chalice.app import Chalice, Request

from chalicelib.core.errors import (
    AppError,
    ForbiddenError,
    MethodNotAllowedError,
    NotFoundError,
)
from chalicelib.core.ids import is_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.settings import settings
from chalicelib.transports import cors, edge, preferences
from chalicelib.transports.console.routes import PREFIX, WORKSPACE
from chalicelib.transports.http import HttpRequest, HttpResponse, failure, handle
from chalicelib.transports.lazy import Lazy
from chalicelib.transports.shared_routes import SharedRoutes

PUBLIC_PREFIX = "/api/public/"
# Prefix of views that respond with 405, unlike API Gateway for methods without a route.
REFUSING = "refuse_"
Handler = Callable[[HttpRequest], HttpResponse]
Runner = Callable[[HttpRequest, Handler], HttpResponse]
_current_request: ContextVar[Request | None] = ContextVar("current_request", default=None)
_CONSOLE_REFUSAL: Lazy[[AppError, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.console.access:refuse"
)


class App(Chalice):
    """A Chalice app that returns unknown paths, wrong methods and crashes in the envelope.

    Stock Chalice responds to an unknown path with 405 and adds it to its routes. It stores the
    current request in one attribute, but ``make dev`` runs many at a time. Routes in ``views``
    receive the event itself and return the reply to API Gateway: Chalice would read request and
    headers once more, which takes a third of the CPU time of a call.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  Chalice's
        super().__init__(*args, **options)
        # The functions of routes, by method and path.
        self.views: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.workspace_pages = SharedRoutes(WORKSPACE)
        self.other_pages = SharedRoutes(PREFIX, apart=WORKSPACE.split("/")[2])
        # Routes of the console's pages, which arrive through shared routes.
        self.page_routes: dict[str, dict[str, Any]] = {}

    @property
    def current_request(self) -> Request | None:
        return _current_request.get()

    @current_request.setter
    def current_request(self, request: Request | None) -> None:
        _current_request.set(request)

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401  Lambda's context
        request_context = event.setdefault("requestContext", {})
        # Local servers send events without a request id.
        request_context["requestId"] = request_context.get("requestId") or str(uuid4())
        event["headers"] = headers = _lower_case(event.get("headers") or {})
        route = request_context.get("resourcePath", "")
        shared = self.shared_routes(route)
        page = shared and shared.match(event.get("pathParameters") or {})
        if page:
            route, event["pathParameters"] = page
        methods = self.methods(route)
        method = request_context.get("httpMethod", "")
        error = _refusal(event, route, method=method, methods=methods)
        if error is None:
            view = self.views.get((method, route))
            reply: dict[str, Any]
            reply = view(event) if view else super().__call__(event, context)
            return reply
        path = request_context.get("resourcePath") or unquote(event.get("path", ""))
        if shared and not page:  # A part of the path may be a key, which is refused.
            path = unquote(path.format_map(event.get("pathParameters") or {}))
        request = HttpRequest(
            method,
            "unrouted",
            headers,
            event.get("multiValueQueryStringParameters") or {},
            {"unrouted": path},
            request_id=request_context["requestId"],
        )
        # A page of another origin can read the error only with CORS headers.
        run = cors.PUBLIC.handle if path.startswith(PUBLIC_PREFIX) else handle
        return _to_gateway(run(request, failure_handler(path, error)))

    def shared_routes(self, route: str) -> SharedRoutes | None:
        """Return the paths that arrive through a route, or None if it has a path of its own."""
        for shared in (self.workspace_pages, self.other_pages):
            if shared.is_shared(route):
                return shared
        return None

    def methods(self, route: str) -> dict[str, Any]:
        # An unknown route has no entries, and a shared route has none of its own.
        if self.shared_routes(route):
            return {}
        return self.page_routes.get(route) or self.routes.get(route, {})


def failure_handler(path: str, error: AppError) -> Handler:
    """Return a handler that raises a failure: a page below /console, elsewhere the envelope."""
    is_console = f"{path}/".startswith(f"{PREFIX}/")
    # Requests that bypass the edge never get a page.
    if isinstance(error, ForbiddenError) or not is_console:
        return lambda request: failure(error, request.request_id)

    return partial(_CONSOLE_REFUSAL, error)


def _refusal(
    event: dict[str, Any], route: str, *, method: str, methods: dict[str, Any]
) -> AppError | None:
    # The edge limits and logs requests, so a request that bypasses the edge is refused.
    try:
        edge.check(event["headers"])
    except ForbiddenError as error:
        return error
    if method in methods:
        return None
    if not methods:
        return unknown_path()
    path_values = {k: unquote(v) for k, v in (event.get("pathParameters") or {}).items()}
    return wrong_method(route, path_values, method=method, methods=methods)


def unknown_path() -> NotFoundError:
    """Return the error for an unknown path."""
    return NotFoundError(
        "This path does not exist. /api/docs and GET /api/openapi.json list all paths.", key="path"
    )


def wrong_method(
    route: str, path_values: Mapping[str, str], *, method: str, methods: dict[str, Any]
) -> AppError:
    """Return the error for a method that a route does not accept."""
    parent, _, last = route.rpartition("/")
    # A word in the place of an id, such as ``POST /api/clients/create``, is a path that does not
    # exist. The error then names the operations that do.
    names_record = not last.startswith("{") or is_id(path_values.get(last.strip("{}"), ""))
    entries = REGISTRY.entries()
    if names_record or route not in {entry.path for entry in entries}:
        return method_not_allowed(method, methods)
    operations = sorted(
        f"{entry.method} {entry.path}" for entry in entries if entry.path.startswith(parent)
    )
    return NotFoundError(
        f"This path does not exist. The operations of {parent} are {', '.join(operations)}.",
        details={"operations": operations},
        key="path",
    )


def method_not_allowed(method: str, methods: dict[str, Any]) -> MethodNotAllowedError:
    """Return the error for a method that a known path does not accept."""
    accepted = (
        name
        for name, entry in methods.items()
        # Browsers send OPTIONS by themselves; callers do not.
        if name != "OPTIONS" and not entry.view_name.startswith(REFUSING)
    )
    allowed = ", ".join(sorted(accepted))
    return MethodNotAllowedError(
        f"Expected one of the methods {allowed} for this path, received {method[:32]}.",
        headers={"Allow": allowed},
    )


def add_route(  # noqa: PLR0913  the parts of a route
    app: App, name: str, *, method: str, path: str, handler: Handler, run: Runner = handle
) -> None:
    """Add a route to a path, and a HEAD route next to each GET route."""

    def view(event: dict[str, Any]) -> dict[str, Any]:
        return _to_gateway(run(_request(method, path=path, event=event), handler))

    app.views[method, path] = view
    app.route(path, methods=[method], name=name, content_types=[])(view)
    # The server in front drops the body of HEAD, but computes the headers that describe it, so it
    # needs a body (RFC 9110, 9.3.2).
    if method == "GET":
        add_route(app, f"{name}_head", method="HEAD", path=path, handler=handler, run=run)


def _request(method: str, *, path: str, event: dict[str, Any]) -> HttpRequest:
    context, headers = event["requestContext"], event["headers"]
    peer = (context.get("identity") or {}).get("sourceIp") or ""
    path_values = event.get("pathParameters") or {}
    body = event.get("body") or ""
    if preferences.HEADER in headers:
        # The gateway has the last of several lines there. Only this header may have several.
        headers = {**headers, preferences.HEADER: _all_lines(event, preferences.HEADER)}
    return HttpRequest(
        method=method,
        route=path,
        headers=headers,
        query=event.get("multiValueQueryStringParameters") or {},
        path={name: unquote(value) for name, value in path_values.items()},
        body=b64decode(body) if event.get("isBase64Encoded") else _bytes(body),
        client_ip=edge.client_ip(headers, peer),
        has_trailing_slash=(context.get("path") or "").endswith("/"),
        request_id=context["requestId"],
    )


def _all_lines(event: dict[str, Any], header: str) -> str:
    lines = [
        line
        for name, values in (event.get("multiValueHeaders") or {}).items()
        if name.lower() == header
        for line in values
    ]
    return ", ".join(lines) or str(event["headers"][header])


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _to_gateway(response: HttpResponse) -> dict[str, Any]:
    headers = dict(response.headers)
    location = headers.get("Location", "")
    # Behind the default API address, each path begins with the stage.
    if location.startswith("/"):
        headers["Location"] = settings().base_path + location
    return {
        "headers": headers,
        "multiValueHeaders": {"Set-Cookie": list(response.cookies)} if response.cookies else {},
        "statusCode": response.status,
        "body": response.whole_body().decode(),
    }


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body
