"""The chat of bots, which a separate function serves on AWS."""

from chalicelib.transports.chat import chat_route, stream_runtime
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.devserver.api_gateway import LocalRoute


def stream(request: HttpRequest) -> HttpResponse:
    """Answer with the handler of that function."""
    return stream_runtime.handler()(request)


ROUTES = (
    LocalRoute(chat_route.PATH, stream, chat_route.MAX_CHAT_BODY_BYTES, run=chat_route.serve),
)
