"""CORS of the tool server: which web pages may call it, and read its answers (Fetch, 3.2; mcp.md).

An origin is admitted if it is the server's own or a configured one (``ALLOWED_ORIGINS``). Programs
that are no browsers send none. There are no cookies, so nothing is allowed to carry credentials.
"""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlsplit

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings
from chalicelib.transports import http
from chalicelib.transports.http import HttpRequest, HttpResponse

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine; a server on one of them answers to all."""
_PREFLIGHT = {
    # GET and DELETE are answered with 405, which clients that try them want to see.
    "Access-Control-Allow-Methods": "POST, GET, DELETE",
    # Named one by one: a wildcard does not stand for Authorization.
    "Access-Control-Allow-Headers": (
        "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, "
        "Last-Event-ID, X-MCP-Toolsets, X-MCP-Tools, X-MCP-Exclude-Tools, X-MCP-Readonly"
    ),
    "Access-Control-Max-Age": "7200",
}
_EXPOSED = (
    "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, "
    "WWW-Authenticate"
)


def check_origin(request: HttpRequest) -> None:
    """Refuse browsers on other sites (DNS rebinding); command-line clients send no origin.

    Raises:
        ForbiddenError: the origin is not admitted.
    """
    origin = request.headers.get("origin")
    if origin is not None and not _admitted(origin):
        msg = "Requests from this origin are not allowed. Call from a server or a terminal."
        raise ForbiddenError(msg)


def preflight(request: HttpRequest) -> HttpResponse:
    """Answer what a browser asks before a call that it would not let a page make otherwise."""
    check_origin(request)
    return HttpResponse(204, b"", _PREFLIGHT)


def handle(request: HttpRequest, handler: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """Run a handler as all are run; pages of admitted origins may read whatever it answers."""
    response = http.handle(request, handler)
    origin = request.headers.get("origin")
    shared = {"Vary": "Origin"}
    if origin is not None and _admitted(origin):
        shared["Access-Control-Allow-Origin"] = origin
        shared["Access-Control-Expose-Headers"] = _EXPOSED
    return replace(response, headers={**response.headers, **shared})


def _admitted(origin: str) -> bool:
    return origin in settings().allowed_origins or origin in _own_origins()


def _own_origins() -> set[str]:
    own = urlsplit(settings().public_url)
    host, colon, port = own.netloc.rpartition(":") if own.port else (own.netloc, "", "")
    hosts = _LOOPBACK if host in _LOOPBACK else (host,)
    return {f"{own.scheme}://{name}{colon}{port}" for name in hosts}
