"""The routes of the service. A route imports its handler at the first request (ADR 22)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from chalicelib.core import logs
from chalicelib.core.manifest import manifest
from chalicelib.core.operations import REGISTRY, Entry, Operation, load_all
from chalicelib.core.principals import Audience
from chalicelib.core.settings import settings
from chalicelib.transports import cors, form_data
from chalicelib.transports.chalice_app import (
    REFUSING,
    App,
    Handler,
    add_route,
    failure_handler,
    method_not_allowed,
    unknown_path,
    wrong_method,
)
from chalicelib.transports.console import routes as console_routes
from chalicelib.transports.console.page import Page, View
from chalicelib.transports.http import HttpRequest, HttpResponse
from chalicelib.transports.lazy import Lazy

MCP_PATH = "/api/mcp"
ASSISTANTS_PATH = "/assistants/mcp"
TELEGRAM_PATH = "/api/telegram/webhook"
MAX_PATH = "/api/max/webhook"
PAYMENT_HOOK_PATH = "/api/public/payments/hooks/{merchant}"
WIDGET_PATH = "/widget.js"
BOOK_SCRIPT_PATH = "/book.js"
FILE_PATHS = {"file": "/files/{folder}/{name}", "thumbnail": "/files/{folder}/thumbnail/{name}"}
MCP = "mcp"  # Last part of the path of a booking page's tools.
LazyHandler = Lazy[[HttpRequest], HttpResponse]
# Pages by path, for GET and HEAD.
PAGES: Mapping[str, LazyHandler] = {
    "/": Lazy("chalicelib.transports.web.home:page"),
    "/blog": Lazy("chalicelib.transports.web.blog:index"),
    "/blog/{slug}": Lazy("chalicelib.transports.web.blog:post"),
    "/sitemap.xml": Lazy("chalicelib.transports.web.blog:sitemap"),
    "/robots.txt": Lazy("chalicelib.transports.web.blog:robots"),
    "/llms.txt": Lazy("chalicelib.transports.web.docs:llms"),
    "/api/docs": Lazy("chalicelib.transports.web.docs:start"),
    "/api/docs/{section}": Lazy("chalicelib.transports.web.docs:section"),
    "/assets/{name}": Lazy("chalicelib.transports.web.assets:serve"),
    "/s/{site}": Lazy("chalicelib.transports.web.sites:page"),
    "/form/{form}": Lazy("chalicelib.transports.web.form_page:show"),
    "/b/{code}": Lazy("chalicelib.transports.web.short_link:show"),
    "/s/{site}/{page}": Lazy("chalicelib.transports.web.sites:page"),
    "/s/{site}/{page}/{part}": Lazy("chalicelib.transports.web.sites:page"),
}
# Pages behind links in e-mail, each with the handler of its form for POST.
FORM_PAGES: Mapping[str, tuple[LazyHandler, LazyHandler]] = {
    "/booking/{token}": (
        Lazy("chalicelib.transports.web.manage_booking_page:show"),
        Lazy("chalicelib.transports.web.manage_booking_page:change"),
    ),
    "/booking/confirm/{token}": (
        Lazy("chalicelib.transports.web.confirm_booking_page:show"),
        Lazy("chalicelib.transports.web.confirm_booking_page:book"),
    ),
    "/booking/waiting/{token}": (
        Lazy("chalicelib.transports.web.waiting_page:show"),
        Lazy("chalicelib.transports.web.waiting_page:leave"),
    ),
    "/pay/{token}": (
        Lazy("chalicelib.transports.web.pay_booking_page:show"),
        Lazy("chalicelib.transports.web.pay_booking_page:pay"),
    ),
    "/pay/test/{id}": (
        Lazy("chalicelib.transports.web.test_payment_page:show"),
        Lazy("chalicelib.transports.web.test_payment_page:settle"),
    ),
    "/unsubscribe/{token}": (
        Lazy("chalicelib.transports.unsubscribe:show"),
        Lazy("chalicelib.transports.unsubscribe:unsubscribe"),
    ),
    "/unsubscribe/advertising/{token}": (
        Lazy("chalicelib.transports.unsubscribe:show_advertising"),
        Lazy("chalicelib.transports.unsubscribe:withdraw_advertising"),
    ),
}
# Pages on which visitors book, in frames of any site, each with the handler of its form.
BOOKING_PAGES: Mapping[str, tuple[LazyHandler, LazyHandler | None]] = {
    "/book/{workspace}": (Lazy("chalicelib.transports.web.booking_page:show"), None),
    "/book/{workspace}/{service}": (
        Lazy("chalicelib.transports.web.booking_page:show"),
        Lazy("chalicelib.transports.web.booking_page:book"),
    ),
}
# Documents by which clients discover how users sign in (RFC 9728, RFC 8414). If the base URL has a
# path, ``openid-configuration`` is the only place under the path where a client looks for the
# authorization server. The service does not provide OpenID Connect.
OAUTH_METADATA: Mapping[str, LazyHandler] = {
    "/.well-known/oauth-protected-resource": Lazy("chalicelib.transports.oauth.metadata:resource"),
    "/.well-known/oauth-protected-resource/api/mcp": Lazy(
        "chalicelib.transports.oauth.metadata:resource"
    ),
}
# Documents below ``/.well-known``, which share one resource of API Gateway.
WELL_KNOWN: Mapping[str, LazyHandler] = {
    "ai-catalog.json": Lazy("chalicelib.transports.server_cards:catalog"),
    "jwks.json": Lazy("chalicelib.transports.oauth.metadata:keys"),
    "oauth-authorization-server": Lazy("chalicelib.transports.oauth.metadata:server"),
    "openid-configuration": Lazy("chalicelib.transports.oauth.metadata:server"),
}
# Documents by which programs find the tool servers. On its own host, a site has one, too.
CARDS: Mapping[str, LazyHandler] = {
    f"{ASSISTANTS_PATH}/server-card": Lazy("chalicelib.transports.server_cards:for_all"),
    f"/book/{{workspace}}/{MCP}/server-card": Lazy("chalicelib.transports.server_cards:of_page"),
}
# Endpoints that OAuth clients call with POST.
OAUTH_ENDPOINTS: Mapping[str, LazyHandler] = {
    "/oauth/token": Lazy("chalicelib.transports.oauth.token:issue"),
    "/oauth/revoke": Lazy("chalicelib.transports.oauth.token:revoke"),
    "/oauth/register": Lazy("chalicelib.transports.oauth.register:register"),
}
_CONSENT: LazyHandler = Lazy("chalicelib.transports.oauth.authorize:show")
_CONSENT_FORM: LazyHandler = Lazy("chalicelib.transports.oauth.authorize:decide")
_HEALTH: LazyHandler = Lazy("chalicelib.transports.rest:health")
_OPENAPI: LazyHandler = Lazy("chalicelib.transports.api_docs.reference:openapi_json")
_TOOL_SERVER: LazyHandler = Lazy("chalicelib.transports.mcp:serve")
_ASSISTANTS: LazyHandler = Lazy("chalicelib.transports.assistants:serve")
_SITE_ASSISTANTS: LazyHandler = Lazy("chalicelib.transports.assistants:serve_site")
_ASSISTANTS_FOR_ALL: LazyHandler = Lazy("chalicelib.transports.assistants:serve_all")
_BOOK_LLMS: LazyHandler = Lazy("chalicelib.transports.web.discovery:book_llms")
_WIDGET: LazyHandler = Lazy("chalicelib.transports.widget:script")
_BOOK_SCRIPT: LazyHandler = Lazy("chalicelib.transports.widget:booking_script")
_TELEGRAM: LazyHandler = Lazy("chalicelib.transports.telegram:serve")
_MAX: LazyHandler = Lazy("chalicelib.transports.max_messenger:serve")
_PAYMENT_HOOK: LazyHandler = Lazy("chalicelib.transports.payment_hooks:serve")
_FILE: LazyHandler = Lazy("chalicelib.transports.files:serve")
_OPERATION: Lazy[[Operation, HttpRequest], HttpResponse] = Lazy("chalicelib.transports.rest:serve")
_PUBLIC_OPERATION: Lazy[[Operation, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.public:serve"
)
_CONSOLE: Lazy[[Page, View, HttpRequest], HttpResponse] = Lazy(
    "chalicelib.transports.console.access:serve"
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
    """Add a Chalice route for every operation, and for the few other public paths."""
    # No other type is binary, and Chalice searches the list for each response.
    app.api.binary_types[:] = [form_data.MULTIPART]
    for entry in filter(lambda operation: operation.path, REGISTRY.entries()):
        if Audience.PUBLIC in entry.audience:
            serve = _operation_handler(entry, _PUBLIC_OPERATION)
            _shared_route(
                app,
                entry.name,
                method=entry.method,
                path=entry.path,
                handler=serve,
                policy=cors.PUBLIC,
            )
        else:
            add_route(
                app,
                entry.name,
                method=entry.method,
                path=entry.path,
                handler=_operation_handler(entry, _OPERATION),
            )
    add_route(app, "health", method="GET", path="/api/health", handler=_HEALTH)
    add_route(app, "openapi_json", method="GET", path="/api/openapi.json", handler=_OPENAPI)
    add_route(app, "telegram_webhook", method="POST", path=TELEGRAM_PATH, handler=_TELEGRAM)
    add_route(app, "max_webhook", method="POST", path=MAX_PATH, handler=_MAX)
    add_route(app, "payment_webhook", method="POST", path=PAYMENT_HOOK_PATH, handler=_PAYMENT_HOOK)
    for path, (view_page, submit) in {**FORM_PAGES, **BOOKING_PAGES}.items():
        view = "page" + re.sub(r"\W+", "_", path).rstrip("_")
        _shared_route(
            app, view, method="GET", path=path, handler=view_page, policy=cors.PUBLIC, post=submit
        )
    _shared_route(
        app, "mcp", method="POST", path=MCP_PATH, handler=_TOOL_SERVER, policy=cors.TOOL_SERVER
    )
    policy = cors.TOOL_SERVER
    _shared_route(
        app,
        "assistants",
        method="POST",
        path=f"/book/{{workspace}}/{MCP}",
        handler=_ASSISTANTS,
        policy=policy,
    )
    _shared_route(
        app,
        "assistants_for_all",
        method="POST",
        path=ASSISTANTS_PATH,
        handler=_ASSISTANTS_FOR_ALL,
        policy=policy,
    )
    for path, handler in CARDS.items():
        view = "card" + re.sub(r"\W+", "_", path).rstrip("_")
        _shared_route(app, view, method="GET", path=path, handler=handler, policy=cors.CARDS)
    on_site = f"/s/{{site}}/{MCP}"
    add_route(
        app,
        "site_assistants_page",
        method="GET",
        path=on_site,
        handler=_page_named_mcp,
        run=cors.PUBLIC.handle,
    )
    add_route(
        app,
        "site_assistants",
        method="POST",
        path=on_site,
        handler=_SITE_ASSISTANTS,
        run=policy.handle,
    )
    add_route(
        app,
        "site_assistants_preflight",
        method="OPTIONS",
        path=on_site,
        handler=policy.preflight,
        run=policy.handle,
    )
    _shared_route(
        app,
        "book_llms",
        method="GET",
        path="/book/{workspace}/llms.txt",
        handler=_BOOK_LLMS,
        policy=cors.PUBLIC,
    )
    for path, handler in PAGES.items():
        view = "page" + re.sub(r"\W+", "_", path).rstrip("_")
        _shared_route(app, view, method="GET", path=path, handler=handler, policy=cors.PUBLIC)
    _mount_oauth(app)
    for path, page in console_routes.ROUTES.items():
        view = "console" + re.sub(r"\W+", "_", path).rstrip("_")
        for method, page_view in (("GET", page.get), ("POST", page.post)):
            if page_view:
                add_route(
                    app,
                    f"{view}_{method.lower()}",
                    method=method,
                    path=path,
                    handler=partial(_CONSOLE, page, page_view),
                )
            else:
                refusal_name = f"{REFUSING}{view}_{method.lower()}"
                add_route(
                    app,
                    refusal_name,
                    method=method,
                    path=path,
                    handler=_console_refusal_handler(app),
                )
    _shared_route(
        app, "widget_js", method="GET", path=WIDGET_PATH, handler=_WIDGET, policy=cors.PUBLIC
    )
    _shared_route(
        app,
        "book_js",
        method="GET",
        path=BOOK_SCRIPT_PATH,
        handler=_BOOK_SCRIPT,
        policy=cors.PUBLIC,
    )
    for view, path in FILE_PATHS.items():
        _shared_route(app, view, method="GET", path=path, handler=_FILE, policy=cors.PUBLIC)
    _share_routes(app)


def _page_named_mcp(request: HttpRequest) -> HttpResponse:
    # API Gateway prefers this path to a parameter, and a site may have a page of this name.
    return PAGES["/s/{site}/{page}"](replace(request, path={**request.path, "page": MCP}))


def _well_known(request: HttpRequest) -> HttpResponse:
    handler = WELL_KNOWN.get(request.path["document"])
    if handler is None:
        raise unknown_path()
    return handler(request)


def _share_routes(app: App) -> None:
    shared_paths = set()
    for path in list(app.routes):
        if shared_path := app.workspace_pages.add(path) or app.other_pages.add(path):
            app.page_routes[path] = app.routes.pop(path)
            shared_paths.add(shared_path)
    for number, shared_path in enumerate(sorted(shared_paths)):
        for method in ("GET", "POST"):
            view = f"console_{number}_{method.lower()}"
            add_route(
                app,
                view,
                method=method,
                path=shared_path,
                handler=failure_handler(shared_path, unknown_path()),
            )


def _mount_oauth(app: App) -> None:
    # Pages of any origin may call the routes that need no cookie.
    for path, handler in OAUTH_METADATA.items():
        view = "oauth" + re.sub(r"\W+", "_", path)
        _shared_route(app, view, method="GET", path=path, handler=handler, policy=cors.OAUTH)
    _shared_route(
        app,
        "well_known",
        method="GET",
        path="/.well-known/{document}",
        handler=_well_known,
        policy=cors.OAUTH,
    )
    for path, handler in OAUTH_ENDPOINTS.items():
        view = "oauth" + re.sub(r"\W+", "_", path.removeprefix("/oauth"))
        _shared_route(app, view, method="POST", path=path, handler=handler, policy=cors.OAUTH)
    add_route(app, "oauth_consent", method="GET", path=console_routes.CONSENT, handler=_CONSENT)
    add_route(
        app, "oauth_consent_form", method="POST", path=console_routes.CONSENT, handler=_CONSENT_FORM
    )


def _shared_route(  # noqa: PLR0913  as ``add_route``, and the policy
    app: App,
    name: str,
    *,
    method: str,
    path: str,
    handler: Handler,
    policy: cors.Policy,
    post: Handler | None = None,
) -> None:
    # A page with a form also has ``post``, which handles the form.
    accepted = {method: handler} | ({"POST": post} if post else {})
    for number, (content_types, serve) in enumerate(accepted.items()):
        add_route(
            app,
            f"{name}_form" if number else name,
            method=content_types,
            path=path,
            handler=serve,
            run=policy.handle,
        )
    add_route(
        app,
        f"{name}_preflight",
        method="OPTIONS",
        path=path,
        handler=policy.preflight,
        run=policy.handle,
    )
    for refused_method in filter(
        lambda candidate: candidate not in accepted, ("GET", "POST", "DELETE")
    ):
        view = f"{REFUSING}{name}_{refused_method.lower()}"
        add_route(
            app,
            view,
            method=refused_method,
            path=path,
            handler=_refusal_handler(app),
            run=policy.handle,
        )


def _refusal_handler(app: App) -> Handler:
    def refuse(request: HttpRequest) -> HttpResponse:
        methods = app.methods(request.route)
        raise wrong_method(request.route, request.path, method=request.method, methods=methods)

    return refuse


def _operation_handler(
    entry: Entry, serve: Callable[[Operation, HttpRequest], HttpResponse]
) -> Handler:
    return lambda request: serve(REGISTRY[entry.name], request)


def _console_refusal_handler(app: App) -> Handler:
    def refuse(request: HttpRequest) -> HttpResponse:
        error = method_not_allowed(request.method, app.methods(request.route))
        return failure_handler(request.route, error)(request)

    return refuse
