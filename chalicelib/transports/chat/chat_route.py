"""Route of the bot chat: preflight, refusals, and CORS headers for pages of any origin.

The chat is not an API Gateway route, because API Gateway buffers answers. On AWS a separate
function serves it (``function_url``); locally, the development server does. Both call ``serve``.
"""

from collections.abc import Callable

from chalicelib.core.errors import MethodNotAllowedError
from chalicelib.transports import cors
from chalicelib.transports.http import HttpRequest, HttpResponse, check_size

PATH = "/api/agents/public/chat-stream"
MAX_CHAT_BODY_BYTES = 160_000
"""A message has up to 10,000 characters, and JSON may escape each in twelve bytes."""
POLICY = cors.Policy(
    methods="POST",
    headers="Content-Type, Idempotency-Key",
    exposed="Retry-After, X-Request-Id",
)
"""Widgets run on any page, including pages in sandboxed frames."""

Handler = Callable[[HttpRequest], HttpResponse]
Admit = Callable[[HttpRequest], None]


def serve(request: HttpRequest, handler: Handler, admit: Admit | None = None) -> HttpResponse:
    """Answer a request. The handler runs for POST; its errors are returned in the envelope.

    ``admit`` checks every request first, and raises an error for requests that it refuses.
    """
    return POLICY.handle(request, lambda incoming: _answer(incoming, handler, admit))


def _answer(request: HttpRequest, handler: Handler, admit: Admit | None) -> HttpResponse:
    if admit:
        admit(request)
    if request.method == "OPTIONS":
        return POLICY.preflight(request)
    if request.method != "POST":
        msg = f"The chat accepts POST, not {request.method[:32]}."
        raise MethodNotAllowedError(msg, headers={"Allow": "POST"})
    check_size(request, MAX_CHAT_BODY_BYTES)
    return handler(request)
