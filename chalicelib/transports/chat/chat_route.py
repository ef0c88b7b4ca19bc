"""The path of the bot chat: preflight, refusals, and an answer that pages of any origin may read.

The chat is no route of the API: API Gateway sends whole answers only. On AWS a function of its own
answers (``function_url``), locally the development server; both do it through ``serve``.
"""

from collections.abc import Callable

from chalicelib.core.errors import MethodNotAllowedError
from chalicelib.transports import cors
from chalicelib.transports.http import HttpRequest, HttpResponse, check_size

PATH = "/api/agents/public/chat-stream"
MAX_CHAT_BODY_BYTES = 160_000
"""A message has 10,000 characters, and JSON may spell each with twelve bytes."""
POLICY = cors.Policy(
    methods="POST",
    headers="Content-Type, Idempotency-Key",
    exposed="Retry-After, X-Request-Id",
)
"""Widgets stand on any page, those in sandboxes included."""

Handler = Callable[[HttpRequest], HttpResponse]
Admit = Callable[[HttpRequest], None]


def serve(request: HttpRequest, handler: Handler, admit: Admit | None = None) -> HttpResponse:
    """Answer a request. The handler answers to POST; what it raises becomes an envelope.

    ``admit`` looks at every request first, and raises for those that get no further.
    """
    return POLICY.handle(request, lambda asked: _answer(asked, handler, admit))


def _answer(request: HttpRequest, handler: Handler, admit: Admit | None) -> HttpResponse:
    if admit:
        admit(request)
    if request.method == "OPTIONS":
        return POLICY.preflight(request)
    if request.method != "POST":
        msg = f"The chat takes POST, not {request.method[:32]}."
        raise MethodNotAllowedError(msg, headers={"Allow": "POST"})
    check_size(request, MAX_CHAT_BODY_BYTES)
    return handler(request)
