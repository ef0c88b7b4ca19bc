"""Passes requests to the app in the form of API Gateway, and converts its responses."""

import base64
import gzip
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from chalice.app import Chalice
from chalice.config import Config
from chalice.local import LambdaContext, LocalGateway

from chalicelib.core.errors import AppError
from chalicelib.transports import cors
from chalicelib.transports.http import MAX_BODY_BYTES, HttpRequest, HttpResponse, handle
from infra.local.devserver.server import Request
from infra.local.devserver.site_hosts import check_host, site_path

Handler = Callable[[HttpRequest], HttpResponse]

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:[.]0*)?(?:,|$))")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_UNREADABLE = quote("\N{REPLACEMENT CHARACTER}")
"""The replacement for invalid escapes and invalid UTF-8 in a query."""
_IN_PATH = "/%:@!$&'()*+,=~"
"""Characters that API Gateway leaves unchanged in a path. It encodes the others."""


@dataclass(frozen=True, slots=True)
class LocalRoute:
    """A path that another part than the API serves on AWS: the edge, or a function of its own.

    A path with a trailing slash covers all paths below that path. The handler gets the rest of the
    path as ``proxy``, as API Gateway names it. ``run`` runs the handler, for refused requests, too.
    """

    path: str
    handler: Handler
    max_body_bytes: int = MAX_BODY_BYTES
    run: Callable[[HttpRequest, Handler], HttpResponse] = handle

    def matches(self, path: str) -> bool:
        """Whether the route serves a decoded path."""
        return path == self.path or (self.path.endswith("/") and path.startswith(self.path))


class ApiGateway:
    """Dispatches HTTP requests to local routes first, then to the app."""

    def __init__(self, app: Chalice, config: Config, routes: Sequence[LocalRoute]) -> None:
        self._app = app
        self._routes = routes
        self._local = LocalGateway(app, config)
        self._minimum_compression_size: int | None = config.minimum_compression_size

    def respond(self, request: Request) -> None:
        """Respond to a request, after checks of the path, the method and the body."""
        path, _, query = _ORIGIN.sub("", request.uri.decode(), count=1).partition("?")
        path, query = quote(path, safe=_IN_PATH) or "/", _BROKEN_ESCAPE.sub(_UNREADABLE, query)
        host = request.headers.get("host", "")
        try:
            check_host(host)
            path = site_path(path, host=host)
            response = self._run(request, unquote(path), query=query) or self._invoke(
                request, path, query=query
            )
        except AppError as error:
            request.refuse(error)
        else:
            request.send(response)

    def _run(self, request: Request, path: str, *, query: str) -> HttpResponse | None:
        """Return the response of a local route, or None if no route has the path."""
        for route in self._routes:
            if route.matches(path):
                http_request = HttpRequest(
                    method=request.method.decode(),
                    route=route.path,
                    headers=request.headers,
                    query=parse_qs(query, keep_blank_values=True),
                    path={"proxy": path.removeprefix(route.path)},
                    client_ip=request.conn.remote_addr,
                )
                return route.run(*_read_body(http_request, request, route))
        return None

    def _invoke(self, request: Request, path: str, *, query: str) -> HttpResponse:
        method, headers = request.method.decode(), request.headers
        event = self._event(method, path=path, query=query, headers=headers)
        about = event["requestContext"]
        about["identity"] = {"sourceIp": request.conn.remote_addr}
        routes = self._app.routes.get(about["resourcePath"], {})
        if method in routes:
            try:
                event["body"] = request.read_body(MAX_BODY_BYTES) or None
            except AppError as error:
                return _run_for(about["resourcePath"])(
                    HttpRequest(method, about["resourcePath"], headers), partial(_refuse, error)
                )
        elif method == "OPTIONS" and any(entry.cors for entry in routes.values()):
            preflight = self._local.handle_request(method, path, headers, None)
            return handle(
                HttpRequest(method, about["resourcePath"], headers),
                lambda _: HttpResponse(200, b"", preflight["headers"]),
            )
        response = _response(self._app(event, LambdaContext("local", 1024, 29_000)))
        return self._compressed(response, headers.get("accept-encoding", ""))

    def _compressed(self, response: HttpResponse, accepted: str) -> HttpResponse:
        """Return a response, compressed if the client accepts gzip and it saves space."""
        minimum_size, body = self._minimum_compression_size, response.body
        if (
            minimum_size is None
            or not isinstance(body, bytes)
            or len(body) < minimum_size
            or not _GZIP.search(accepted)
        ):
            return response
        headers = {**response.headers, "Content-Encoding": "gzip"}
        return response._replace(body=gzip.compress(body, mtime=0), headers=headers)

    def _event(
        self, method: str, *, path: str, query: str, headers: dict[str, str]
    ) -> dict[str, Any]:
        """Return the event that Lambda would receive, without the body.

        As on API Gateway, a trailing slash is ignored, and a path with an empty segment matches no
        route.
        """
        if path.startswith("/") and "//" not in path:
            with suppress(ValueError):  # no such path
                event: dict[str, Any] = self._local.event_converter.create_lambda_event(
                    method, f"{path}?{query}" if query else path, headers
                )
                return event
        return {
            "path": path,
            "headers": headers,
            "multiValueQueryStringParameters": parse_qs(query, keep_blank_values=True),
            "requestContext": {"resourcePath": "", "httpMethod": method},
        }


def _read_body(
    http_request: HttpRequest, request: Request, route: LocalRoute
) -> tuple[HttpRequest, Handler]:
    """Return the request with its body, and the handler, which fails for a refused body."""
    try:
        return replace(http_request, body=request.read_body(route.max_body_bytes)), route.handler
    except AppError as error:
        return http_request, partial(_refuse, error)


def _run_for(route: str) -> Callable[[HttpRequest, Handler], HttpResponse]:
    """Return what runs the handlers of a route. Refusals of a tool server are JSON-RPC errors."""
    return cors.TOOL_SERVER.handle if route.endswith("/mcp") else handle


def _refuse(error: AppError, _: HttpRequest) -> HttpResponse:
    raise error


def _response(reply: dict[str, Any]) -> HttpResponse:
    """Convert the app's response to an HTTP response."""
    body, repeated = reply["body"] or b"", dict(reply["multiValueHeaders"])
    if reply.get("isBase64Encoded"):
        body = base64.b64decode(body)
    cookies = repeated.pop("Set-Cookie", ())
    joined = {name: ", ".join(values) for name, values in repeated.items()}
    return HttpResponse(
        reply["statusCode"],
        body if isinstance(body, bytes) else body.encode(),
        {**reply["headers"], **joined},
        cookies=cookies,
    )
