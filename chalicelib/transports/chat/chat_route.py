"""Route of the bot chat, with its preflight, refusals, and headers for pages of any origin.

API Gateway buffers answers, so on AWS a separate function (``function_url``) serves the chat;
locally, the development server does. Both call ``answer`` within ``POLICY.handle``.
"""

from collections.abc import Callable

from chalicelib.core.errors import MethodNotAllowedError
from chalicelib.core.settings import settings
from chalicelib.transports import cors
from chalicelib.transports.http import HttpRequest, HttpResponse, check_size

PATH = "/api/agents/public/chat-stream"
# Maximum bytes of a chat request. A message has up to 10,000 characters of twelve bytes each.
MAX_CHAT_BODY_BYTES = 160_000
STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}
# Widgets run on any page, including pages in sandboxed frames.
POLICY = cors.Policy(
    methods="POST",
    headers="Content-Type, Idempotency-Key",
    exposed="Retry-After, X-Request-Id",
)

Handler = Callable[[HttpRequest], HttpResponse]


def url() -> str:
    """Return the URL of the chat."""
    return (settings().chat_url or settings().public_url) + PATH


def serve(request: HttpRequest, handler: Handler) -> HttpResponse:
    """Answer a request, with errors in the envelope and CORS headers."""
    return POLICY.handle(request, lambda incoming: answer(incoming, handler))


def answer(request: HttpRequest, handler: Handler) -> HttpResponse:
    """Answer a preflight request, or run the handler for POST.

    Raises:
        AppError: another method, a body that is too large, or an error of the handler.
    """
    if request.method == "OPTIONS":
        return POLICY.preflight(request)
    if request.method != "POST":
        msg = f"Expected the method POST for the chat, received {request.method[:32]}."
        raise MethodNotAllowedError(msg, headers={"Allow": "POST"})
    check_size(request, MAX_CHAT_BODY_BYTES)
    return handler(request)
