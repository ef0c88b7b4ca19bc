"""CORS policies, which let web pages of other origins read responses (Fetch, 3.2).

Programs other than browsers send no origin. No credentials are allowed, as no cookies are used.
"""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.settings import settings
from chalicelib.lib import origins
from chalicelib.transports import http, json_rpc
from chalicelib.transports.http import HttpRequest, HttpResponse

_MAX_AGE = "7200"
_EXPOSED = "X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
_EXPOSED_BY_API = f"{_EXPOSED}, Preference-Applied"


class Policy(NamedTuple):
    """A CORS policy."""

    methods: str
    headers: str
    exposed: str
    # decides by the origin; None allows every origin, including sandboxed frames (``null``)
    admits: Callable[[str], bool] | None = None
    fail: http.Fail = http.in_envelope  # writes the responses to requests that fail

    def check_origin(self, request: HttpRequest) -> None:
        """Raise ForbiddenError for browsers on other sites (DNS rebinding)."""
        # Command-line clients send no origin.
        origin = request.headers.get("origin")
        if origin is not None and self.admits is not None and not self.admits(origin):
            msg = (
                "The origin of this page is not allowed to call the API. Add the origin to "
                "ALLOWED_ORIGINS, or call the API from a server."
            )
            raise ForbiddenError(msg, key="origin_not_allowed")

    def preflight(self, request: HttpRequest) -> HttpResponse:
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
        """Run a handler as ``http.handle`` does, and let allowed pages read its response."""
        response = http.handle(request, handler, self.fail)
        headers = {**response.headers, **self._shared(request)}
        return response.with_headers(
            headers if self.admits is None else http.add_vary(headers, "Origin")
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
    # On https, every page may: a call needs a token that the page has itself, and a browser refuses
    # the certificate if another site's name leads here (DNS rebinding). On http it does not notice
    # that, so only pages of the own machine may.
    current = settings()
    if origin in current.allowed_origins or origin in _own_origins():
        return True
    if current.deny_other_origins:
        return False
    return current.public_url.startswith("https://") or origins.is_loopback(origin)


def _own_origins() -> set[str]:
    urls = map(urlsplit, origins.spellings(settings().public_url))
    return {f"{url.scheme}://{url.netloc}" for url in urls}


# Allows the origins that ``_admitted`` describes. Failures are JSON-RPC errors.
TOOL_SERVER = Policy(
    # GET and DELETE get a 405. Clients that try them need to read that response.
    methods="POST, GET, DELETE",
    # Listed one by one, because a wildcard does not cover Authorization.
    headers=(
        "Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, "
        "Last-Event-ID, X-MCP-Toolsets, X-MCP-Tools, X-MCP-Exclude-Tools, X-MCP-Readonly"
    ),
    exposed=f"{_EXPOSED}, WWW-Authenticate",
    admits=_admitted,
    fail=json_rpc.failure,
)
# Allows visitors' pages of any origin.
PUBLIC = Policy(
    methods="GET, POST", headers="Content-Type, Idempotency-Key, Prefer", exposed=_EXPOSED_BY_API
)
# Allows every origin, since OAuth clients can be pages, and these responses need no cookie.
OAUTH = Policy(
    methods="GET, POST",
    headers="Authorization, Content-Type, MCP-Protocol-Version",
    exposed=f"{_EXPOSED}, WWW-Authenticate",
)
# Allows every origin to read what describes a server, and to ask whether it has changed.
CARDS = Policy(methods="GET", headers="Content-Type, If-None-Match", exposed=f"{_EXPOSED}, ETag")
