"""CORS: which web pages may call some routes, and read their answers (Fetch, 3.2).

Programs that are no browsers send no origin. There are no cookies, so nothing is allowed to carry
credentials.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings
from chalicelib.transports import http
from chalicelib.transports.http import HttpRequest, HttpResponse

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine; a server on one of them answers to all."""
_MAX_AGE = "7200"
_EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is shared with which origins.

    ``admits`` decides by the origin; None shares with all, sandboxed frames (``null``) included.
    """

    methods: str
    headers: str
    exposed: str
    admits: Callable[[str], bool] | None = None

    def check_origin(self, request: HttpRequest) -> None:
        """Refuse browsers on other sites (DNS rebinding); command-line clients send no origin.

        Raises:
            ForbiddenError: the origin is not admitted.
        """
        origin = request.headers.get("origin")
        if origin is not None and self.admits is not None and not self.admits(origin):
            msg = "Requests from this origin are not allowed. Call from a server or a terminal."
            raise ForbiddenError(msg)

    def preflight(self, request: HttpRequest) -> HttpResponse:
        """Answer what a browser asks before a call that it would not let a page make otherwise."""
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
        """Run a handler as all are run; admitted pages may read whatever it answers."""
        response = http.handle(request, handler)
        headers = {**response.headers, **self._shared(request)}
        return response._replace(
            headers=headers if self.admits is None else http.varying(headers, "Origin")
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
    # GET and DELETE are answered with 405, which clients that try them want to see.
    methods="POST, GET, DELETE",
    # Named one by one: a wildcard does not stand for Authorization.
    headers=(
        "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, "
        "Last-Event-ID, X-MCP-Toolsets, X-MCP-Tools, X-MCP-Exclude-Tools, X-MCP-Readonly"
    ),
    exposed=f"{_EXPOSED}, WWW-Authenticate",
    admits=_admitted,
)
"""The server's own origin and the configured ones (``ALLOWED_ORIGINS``; mcp.md)."""
PUBLIC = Policy(methods="GET, POST", headers="Content-Type, Idempotency-Key", exposed=_EXPOSED)
"""What visitors use from whichever page they are on."""
