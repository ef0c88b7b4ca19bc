"""Probe that streams three events, one second apart, for a deployment's smoke test (ADR 50).

The edge adds its secret to every request, so the secret does not identify the operator. The probe
therefore requires a token that is signed with the secret.
"""

import hmac
from collections.abc import Iterator
from datetime import timedelta

from chalicelib.core import clock, retry
from chalicelib.core.errors import NotFoundError
from chalicelib.core.settings import settings
from chalicelib.transports.chat import chat_route
from chalicelib.transports.http import HttpRequest, HttpResponse

# The edge sends all paths that begin with the chat's to the chat's function.
PATH = f"{chat_route.PATH}/probe"
TOKEN_HEADER = "X-Probe-Token"  # noqa: S105  a header's name
# How long a token is valid, and how far the clock of the operator's machine may be off.
TOKEN_LIFE = timedelta(minutes=5)
EVENTS = 3
PAUSE_SECONDS = 1.0


def token(secret: str) -> str:
    """Return a token, which is the current time and its signature with the edge's secret."""
    return _signed(secret, int(clock.now().timestamp()))


def handle(request: HttpRequest) -> HttpResponse:
    """Stream the events, or raise NotFoundError without a valid token or an edge."""
    if request.method != "GET" or not _is_valid(request.headers.get(TOKEN_HEADER.lower(), "")):
        raise NotFoundError("This path does not exist.", key="path")
    return HttpResponse(200, _events(), chat_route.STREAM_HEADERS)


def _events() -> Iterator[bytes]:
    for number in range(1, EVENTS + 1):
        if number > 1:
            retry.sleep(PAUSE_SECONDS)
        yield b'data: {"type":"probe","number":%d}\n\n' % number


def _is_valid(signature: str) -> bool:
    text = signature.partition(".")[0]
    if not (text.isascii() and text.isdecimal() and len(text) <= len("9999999999")):
        return False
    time = int(text)
    # Each secret is tried, so that the duration does not depend on which one matches.
    matches = [
        hmac.compare_digest(signature.encode(errors="replace"), _signed(secret, time).encode())
        for secret in settings().edge_secrets
    ]
    age = abs(clock.now().timestamp() - time)
    return any(matches) and age <= TOKEN_LIFE.total_seconds()


def _signed(secret: str, time: int) -> str:
    signature = hmac.digest(secret.encode(), f"stream probe {time}".encode(), "sha256")
    return f"{time}.{signature.hex()}"
