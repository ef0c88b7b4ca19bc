"""Adapter between Chalice and the project's own requests and responses.

Every error body is in the envelope.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from chalice.app import Chalice, Request

from chalicelib.core import logs
from chalicelib.core.errors import (
    AppError,
    ForbiddenError,
    MethodNotAllowedError,
    NotFoundError,
)
from chalicelib.core.manifest import manifest
from chalicelib.core.operations import REGISTRY, Entry, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.transports import cors, edge, form_data
from chalicelib.transports.console import routes
from chalicelib.transports.console.page import Page, View
from chalicelib.transports.http import HttpRequest, HttpResponse, failure, handle
from chalicelib.transports.lazy import Lazy
from chalicelib.transports.shared_routes import SharedRoutes

MCP_PATH = "/api/mcp"
TELEGRAM_PATH = "/api/telegram/webhook"
PAYMENT_HOOK_PATH = "/api/public/payments/hooks/{merchant}"
WIDGET_PATH = "/widget.js"
BOOK_SCRIPT_PATH = "/book.js"
FILE_PATHS = {"file": "/files/{folder}/{name}", "thumbnail": "/files/{folder}/thumbnail/{name}"}
PUBLIC_PREFIX = "/api/public/"
MCP = "mcp"
"""Last part of the path of a booking page's tools."""
REFUSING = "refuse_"
"""Prefix of views that respond with 405, unlike API Gateway for methods without a route."""

_current_request: ContextVar[Request | None] = ContextVar("current_request", default=None)

Handler = Callable[[HttpRequest], HttpResponse]
Runner = Callable[[HttpRequest, Handler], HttpResponse]
LazyHandler = Lazy[[HttpRequest], HttpResponse]

PAGES: Mapping[str, LazyHandler] = {
    "/": Lazy("chalicelib.transports.web.home:page"),
    "/blog": Lazy("chalicelib.transports.web.blog:index"),
    "/blog/{slug}": Lazy("chalicelib.transports.web.blog:post"),
    "/blog/rss.xml": Lazy("chalicelib.transports.web.blog:rss"),
    "/sitemap.xml": Lazy("chalicelib.transports.web.blog:sitemap"),
    "/robots.txt": Lazy("chalicelib.transports.web.blog:robots"),
    "/api/docs": Lazy("chalicelib.transports.web.docs:start"),
    "/api/docs/search.json": Lazy("chalicelib.transports.web.docs:index"),
    "/api/docs/{section}": Lazy("chalicelib.transports.web.docs:section"),
    "/assets/{name}": Lazy("chalicelib.transports.web.assets:serve"),
    "/s/{site}": Lazy("chalicelib.transports.web.sites:page"),
    "/form/{form}": Lazy("chalicelib.transports.web.form_page:show"),
    "/s/{site}/{page}": Lazy("chalicelib.transports.web.sites:page"),
}
"""Pages by path, for GET and HEAD."""
FORM_PAGES: Mapping[str, tuple[LazyHandler, LazyHandler]] = {
    "/booking/{token}": (
        Lazy("chalicelib.transports.web.manage_booking_page:show"),
        Lazy("chalicelib.transports.web.manage_booking_page:change"),
    ),
    "/booking/confirm/{token}": (
        Lazy("chalicelib.transports.web.confirm_booking_page:show"),
        Lazy("chalicelib.transports.web.confirm_booking_page:book"),
    ),
    "/pay/{token}": (
        Lazy("chalicelib.transports.web.pay_booking_page:show"),
        Lazy("chalicelib.transports.web.pay_booking_page:pay"),
    ),
    "/unsubscribe/{token}": (
        Lazy("chalicelib.transports.unsubscribe:show"),
        Lazy("chalicelib.transports.unsubscribe:unsubscribe"),
    ),
}
"""Pages behind links in e-mail, each with the handler of its form for POST."""
BOOKING_PAGES: Mapping[str, tuple[LazyHandler, LazyHandler | None]] = {
    "/book/{workspace}": (Lazy("chalicelib.transports.web.booking_page:show"), None),
    "/book/{workspace}/{service}": (
        Lazy("chalicelib.transports.web.booking_page:show"),
        Lazy("chalicelib.transports.web.booking_page:book"),
    ),
}
"""Pages on which visitors book, in frames of any site, each with the handler of its form."""
OAUTH_METADATA: Mapping[str, LazyHandler] = {
    "/.well-known/oauth-protected-resource": Lazy("chalicelib.transports.oauth.metadata:resource"),
    "/.well-known/oauth-protected-resource/api/mcp": Lazy(
        "chalicelib.transports.oauth.metadata:resource"
    ),
    "/.well-known/oauth-authorization-server": Lazy("chalicelib.transports.oauth.metadata:server"),
    "/.well-known/openid-configuration": Lazy("chalicelib.transports.oauth.metadata:server"),
    "/.well-known/jwks.json": Lazy("chalicelib.transports.oauth.metadata:keys"),
}
"""Documents by which clients discover how users sign in (RFC 9728, RFC 8414).

If the base URL has a path, ``openid-configuration`` is the only place under the path where a client
looks for the authorization server. The service does not provide OpenID Connect.
"""
OAUTH_ENDPOINTS: Mapping[str, LazyHandler] = {
    "/oauth/token": Lazy("chalicelib.transports.oauth.token:issue"),
    "/oauth/revoke": Lazy("chalicelib.transports.oauth.token:revoke"),
    "/oauth/register": Lazy("chalicelib.transports.oauth.register:register"),
}
"""Endpoints that OAuth clients call with POST."""
_CONSENT: LazyHandler = Lazy("chalicelib.transports.oauth.authorize:show")
_CONSENT_FORM: LazyHandler = Lazy("chalicelib.transports.oauth.authorize:decide")
_HEALTH: LazyHandler = Lazy("chalicelib.transports.rest:health")
_OPENAPI: LazyHandler = Lazy("chalicelib.transports.api_docs.reference:openapi_json")
_TOOL_SERVER: LazyHandler = Lazy("chalicelib.transports.mcp:serve")
_ASSISTANTS: LazyHandler = Lazy("chalicelib.transports.assistants:serve")
_SITE_ASSISTANTS: LazyHandler = Lazy("chalicelib.transports.assistants:serve_site")
_BOOK_LLMS: LazyHandler = Lazy("chalicelib.transports.web.discovery:book_llms")
_WIDGET: LazyHandler = Lazy("chalicelib.transports.widget:script")
_BOOK_SCRIPT: LazyHandler = Lazy("chalicelib.transports.widget:booking_script")
_TELEGRAM: LazyHandler = Lazy("chalicelib.transports.telegram:serve")
_PAYMENT_HOOK: LazyHandler = Lazy("chalicelib.transports.payment_hooks:serve")
_FILE: LazyHandler = Lazy("chalicelib.transports.files:serve")
_OPERATION: Lazy[[Operation, HttpRequest], HttpResponse] = Lazy("chalicelib.transports.rest:serve")
_PUBLIC_OPERATION: Lazy[[Operation, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.public:serve"
)
_CONSOLE: Lazy[[Page, View, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.console.access:serve"
)
_CONSOLE_REFUSAL: Lazy[[AppError, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.console.access:refuse"
)


class App(Chalice):
    """A Chalice app that returns unknown paths, wrong methods and crashes in the envelope.

    Stock Chalice responds to an unknown path with 405 and adds it to its routes. It also stores the
    current request in one attribute of the app. Lambda runs one request at a time, but ``make dev``
    runs many, and each thread must read its own.

    Routes in ``views`` receive the event itself and return the reply to API Gateway. Chalice would
    read the request, the type of its body and the headers of the response once more, which takes a
    third of the CPU time of a call.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  Chalice's
        super().__init__(*args, **options)
        self.views: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {}
        """The functions of routes, by method and path."""
        self.workspace_pages = SharedRoutes(routes.WORKSPACE)
        self.page_routes: dict[str, dict[str, Any]] = {}
        """Routes of the pages of a workspace, which arrive through shared routes."""

    @property
    def current_request(self) -> Request | None:
        """The request of the current thread."""
        return _current_request.get()

    @current_request.setter
    def current_request(self, request: Request | None) -> None:
        _current_request.set(request)

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401  Lambda's context
        """Handle an API Gateway event."""
        request_context = event.setdefault("requestContext", {})
        # Local servers send events without a request id.
        request_context["requestId"] = request_context.get("requestId") or str(uuid4())
        event["headers"] = headers = _lower_case(event.get("headers") or {})
        route = request_context.get("resourcePath", "")
        page = self.workspace_pages.match(event.get("pathParameters") or {})
        if page:
            route, event["pathParameters"] = page
        methods = self.methods(route)
        method = request_context.get("httpMethod", "")
        error = _refusal(headers, method, methods)
        if error is None:
            view = self.views.get((method, route))
            reply: dict[str, Any]
            reply = view(event) if view else super().__call__(event, context)
            return reply
        path = request_context.get("resourcePath") or unquote(event.get("path", ""))
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
        return _to_gateway(run(request, _failure_handler(path, error)))

    def methods(self, route: str) -> dict[str, Any]:
        """Return the entries of a route by method.

        An unknown route has none, and a shared route has none of its own.
        """
        if self.workspace_pages.is_shared(route):
            return {}
        return self.page_routes.get(route) or self.routes.get(route, {})


def _failure_handler(path: str, error: AppError) -> Handler:
    """Return a handler that raises a failure: a page below /console, elsewhere the envelope.

    Requests that bypass the edge never get a page.
    """
    is_console = f"{path}/".startswith(f"{routes.PREFIX}/")
    if isinstance(error, ForbiddenError) or not is_console:
        return lambda request: failure(error, request.request_id)

    return partial(_CONSOLE_REFUSAL, error)


def _refusal(headers: Mapping[str, str], method: str, methods: dict[str, Any]) -> AppError | None:
    """Return the error of a request that Chalice must not dispatch, or None for all others.

    A request must come through the edge, and its path must accept its method.
    """
    # The edge limits and logs requests, so a request that bypasses the edge is refused.
    try:
        edge.check(headers)
    except ForbiddenError as error:
        return error
    if method in methods:
        return None
    return method_not_allowed(method, methods) if methods else unknown_path()


def unknown_path() -> NotFoundError:
    """Return the error for an unknown path."""
    return NotFoundError(
        "This path does not exist. /api/docs and GET /api/openapi.json list all paths."
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


def create() -> App:
    """Create the application with all its routes.

    Raises:
        RuntimeError: a deployed function has no stage.
        ValueError: a setting has an invalid value.
    """
    if not logs.are_configured():  # ``chalice local`` configures its own log format.
        logs.configure()
    settings()  # A function with missing settings fails here, not at its first request.
    if not manifest().digest:
        load_all()
    app = App(app_name="workspace-api", configure_logs=False)
    mount(app)
    return app


def mount(app: App) -> None:
    """Add a Chalice route for every operation, and for the few other public paths.

    A route imports its handler at the first call (ADR 22).
    """
    # No other type is binary, and Chalice searches the list for each response.
    app.api.binary_types[:] = [form_data.MULTIPART]
    for entry in filter(lambda operation: operation.path, REGISTRY.entries()):
        if Audience.PUBLIC in entry.audience:
            serve = _operation_handler(entry, _PUBLIC_OPERATION)
            _shared_route(app, entry.name, entry.method, entry.path, serve, cors.PUBLIC)
        else:
            _route(app, entry.name, entry.method, entry.path, _operation_handler(entry, _OPERATION))
    _route(app, "health", "GET", "/api/health", _HEALTH)
    _route(app, "openapi_json", "GET", "/api/openapi.json", _OPENAPI)
    _route(app, "telegram_webhook", "POST", TELEGRAM_PATH, _TELEGRAM)
    _route(app, "payment_webhook", "POST", PAYMENT_HOOK_PATH, _PAYMENT_HOOK)
    for path, (view_page, submit) in {**FORM_PAGES, **BOOKING_PAGES}.items():
        view = "page" + re.sub(r"\W+", "_", path).rstrip("_")
        _shared_route(app, view, "GET", path, view_page, cors.PUBLIC, submit)
    _shared_route(app, "mcp", "POST", MCP_PATH, _TOOL_SERVER, cors.TOOL_SERVER)
    policy = cors.TOOL_SERVER
    _shared_route(app, "assistants", "POST", f"/book/{{workspace}}/{MCP}", _ASSISTANTS, policy)
    on_site = f"/s/{{site}}/{MCP}"
    _route(app, "site_assistants_page", "GET", on_site, _page_named_mcp, cors.PUBLIC.handle)
    _route(app, "site_assistants", "POST", on_site, _SITE_ASSISTANTS, policy.handle)
    _route(app, "site_assistants_preflight", "OPTIONS", on_site, policy.preflight, policy.handle)
    _shared_route(app, "book_llms", "GET", "/book/{workspace}/llms.txt", _BOOK_LLMS, cors.PUBLIC)
    for path, handler in PAGES.items():
        view = "page" + re.sub(r"\W+", "_", path).rstrip("_")
        _shared_route(app, view, "GET", path, handler, cors.PUBLIC)
    _mount_oauth(app)
    for path, page in routes.ROUTES.items():
        view = "console" + re.sub(r"\W+", "_", path).rstrip("_")
        for method, page_view in (("GET", page.get), ("POST", page.post)):
            if page_view:
                _route(
                    app,
                    f"{view}_{method.lower()}",
                    method,
                    path,
                    partial(_CONSOLE, page, page_view),
                )
            else:
                refusal_name = f"{REFUSING}{view}_{method.lower()}"
                _route(app, refusal_name, method, path, _console_refusal_handler(app))
    _shared_route(app, "widget_js", "GET", WIDGET_PATH, _WIDGET, cors.PUBLIC)
    _shared_route(app, "book_js", "GET", BOOK_SCRIPT_PATH, _BOOK_SCRIPT, cors.PUBLIC)
    for view, path in FILE_PATHS.items():
        _shared_route(app, view, "GET", path, _FILE, cors.PUBLIC)
    _share_routes(app)


def _page_named_mcp(request: HttpRequest) -> HttpResponse:
    # API Gateway prefers this path to a parameter, and a site may have a page of this name.
    return PAGES["/s/{site}/{page}"](replace(request, path={**request.path, "page": MCP}))


def _share_routes(app: App) -> None:
    """Replace the routes of a workspace's pages by the routes that they share."""
    shared_paths = set()
    for path in list(app.routes):
        if shared_path := app.workspace_pages.add(path):
            app.page_routes[path] = app.routes.pop(path)
            shared_paths.add(shared_path)
    for number, shared_path in enumerate(sorted(shared_paths)):
        for method in ("GET", "POST"):
            view = f"console_{number}_{method.lower()}"
            _route(app, view, method, shared_path, _failure_handler(shared_path, unknown_path()))


def _mount_oauth(app: App) -> None:
    """Add the routes of OAuth.

    Pages of any origin may call the routes that need no cookie.
    """
    for path, handler in OAUTH_METADATA.items():
        view = "oauth" + re.sub(r"\W+", "_", path)
        _shared_route(app, view, "GET", path, handler, cors.OAUTH)
    for path, handler in OAUTH_ENDPOINTS.items():
        view = "oauth" + re.sub(r"\W+", "_", path.removeprefix("/oauth"))
        _shared_route(app, view, "POST", path, handler, cors.OAUTH)
    _route(app, "oauth_consent", "GET", routes.CONSENT, _CONSENT)
    _route(app, "oauth_consent_form", "POST", routes.CONSENT, _CONSENT_FORM)


def _shared_route(  # noqa: PLR0913, PLR0917  as ``_route``, and the policy
    app: App,
    name: str,
    method: str,
    path: str,
    handler: Handler,
    policy: cors.Policy,
    post: Handler | None = None,
) -> None:
    """Add a route that pages of other origins may call, with its preflight and its refusals.

    A page with a form also has ``post``, which handles the form.
    """
    accepted = {method: handler} | ({"POST": post} if post else {})
    for number, (content_types, serve) in enumerate(accepted.items()):
        _route(app, f"{name}_form" if number else name, content_types, path, serve, policy.handle)
    _route(app, f"{name}_preflight", "OPTIONS", path, policy.preflight, policy.handle)
    for refused_method in filter(
        lambda candidate: candidate not in accepted, ("GET", "POST", "DELETE")
    ):
        view = f"{REFUSING}{name}_{refused_method.lower()}"
        _route(app, view, refused_method, path, _refusal_handler(app), policy.handle)


def _refusal_handler(app: App) -> Handler:
    def refuse(request: HttpRequest) -> HttpResponse:
        raise method_not_allowed(request.method, app.methods(request.route))

    return refuse


def _operation_handler(
    entry: Entry, serve: Callable[[Operation, HttpRequest], HttpResponse]
) -> Handler:
    """Return a handler that runs an operation and imports it at the first request."""
    return lambda request: serve(REGISTRY[entry.name], request)


def _console_refusal_handler(app: App) -> Handler:
    def refuse(request: HttpRequest) -> HttpResponse:
        error = method_not_allowed(request.method, app.methods(request.route))
        return _failure_handler(request.route, error)(request)

    return refuse


def _route(  # noqa: PLR0913, PLR0917  the parts of a route
    app: App, name: str, method: str, path: str, handler: Handler, run: Runner = handle
) -> None:
    """Add a route to a path, and a HEAD route next to each GET route.

    HEAD runs the same handler as GET, and the server in front drops the body (RFC 9110, 9.3.2). The
    server computes the headers that describe the body, so it needs one.
    """

    def view(event: dict[str, Any]) -> dict[str, Any]:
        return _to_gateway(run(_request(method, path, event), handler))

    app.views[method, path] = view
    app.route(path, methods=[method], name=name, content_types=[])(view)
    if method == "GET":
        _route(app, f"{name}_head", "HEAD", path, handler, run)


def _request(method: str, path: str, event: dict[str, Any]) -> HttpRequest:
    context, headers = event["requestContext"], event["headers"]
    peer = (context.get("identity") or {}).get("sourceIp") or ""
    path_values = event.get("pathParameters") or {}
    body = event.get("body") or ""
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


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _to_gateway(response: HttpResponse) -> dict[str, Any]:
    """Return a response in the form that API Gateway expects of a Lambda function."""
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
