"""CORS: which web pages may call a route and read its answers (Fetch, 3.2).

Programs other than browsers send no origin. These routes use no cookies, so no credentials are
allowed.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings
from chalicelib.transports import http
from chalicelib.transports.http import HttpRequest, HttpResponse

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine. A server on one of them accepts all of them."""
_MAX_AGE = "7200"
_EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"


class Policy(NamedTuple):
    """A CORS policy: methods, headers and allowed origins.

    ``admits`` decides by the origin. None allows every origin, including sandboxed frames
    (``null``).
    """

    methods: str
    headers: str
    exposed: str
    admits: Callable[[str], bool] | None = None

    def check_origin(self, request: HttpRequest) -> None:
        """Refuse browsers on other sites (DNS rebinding). Command-line clients send no origin.

        Raises:
            ForbiddenError: the origin is not allowed.
        """
        origin = request.headers.get("origin")
        if origin is not None and self.admits is not None and not self.admits(origin):
            msg = "Requests from this origin are not allowed. Call from a server or a terminal."
            raise ForbiddenError(msg)

    def preflight(self, request: HttpRequest) -> HttpResponse:
        """Answer the preflight request of a browser."""
        self.check_origin(request)
        allowed = {
            "Access-Control-Allow-Methods": self.methods,
            "Access-Control-Allow-Headers": self.headers,
            "Access-Control-Max-Age": _MAX_AGE,
        }
        return HttpResponse(204, b"", allowed)

    def handle(
        self, request: HttpRequest, handler: Callable[[HttpRequest], HttpResponse]
    ) -> HttpResponse:
        """Run a handler as ``http.handle`` does, and let allowed pages read its answer."""
        response = http.handle(request, handler)
        headers = {**response.headers, **self._shared(request)}
        return response.with_headers(
            headers if self.admits is None else http.with_vary(headers, "Origin")
        )

    def _shared(self, request: HttpRequest) -> dict[str, str]:
        shared = {"Access-Control-Expose-Headers": self.exposed}
        if self.admits is None:
            return {"Access-Control-Allow-Origin": "*", **shared}
        origin = request.headers.get("origin")
        if origin is None or not self.admits(origin):
            return {}
        return {"Access-Control-Allow-Origin": origin, **shared}


def _admitted(origin: str) -> bool:
    return origin in settings().allowed_origins or origin in _own_origins()


def _own_origins() -> set[str]:
    own = urlsplit(settings().public_url)
    host, colon, port = own.netloc.rpartition(":") if own.port else (own.netloc, "", "")
    hosts = _LOOPBACK if host in _LOOPBACK else (host,)
    return {f"{own.scheme}://{name}{colon}{port}" for name in hosts}


TOOL_SERVER = Policy(
    # GET and DELETE are answered with 405. Clients that try them need to read that answer.
    methods="POST, GET, DELETE",
    # Listed one by one, because a wildcard does not cover Authorization.
    headers=(
        "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, "
        "Last-Event-ID, X-MCP-Toolsets, X-MCP-Tools, X-MCP-Exclude-Tools, X-MCP-Readonly"
    ),
    exposed=f"{_EXPOSED}, WWW-Authenticate",
    admits=_admitted,
)
"""Allows the server's own origin and the configured ones (``ALLOWED_ORIGINS``)."""
PUBLIC = Policy(methods="GET, POST", headers="Content-Type, Idempotency-Key", exposed=_EXPOSED)
"""Allows visitors' pages of any origin."""
OAUTH = Policy(
    methods="GET, POST",
    headers="Authorization, Content-Type, MCP-Protocol-Version",
    exposed=f"{_EXPOSED}, WWW-Authenticate",
)
"""Allows every origin, since clients of OAuth can be pages, and these answers need no cookie."""
