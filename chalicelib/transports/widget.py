"""Scripts for the pages of any site.

``/widget.js`` is the chat of a bot. ``/book.js`` puts the booking page of a workspace into a frame.
"""

import re
from functools import cache
from pathlib import Path

from pydantic_core import to_json

from chalicelib.core.settings import settings
from chalicelib.transports.chat import chat_route
from chalicelib.transports.http import HttpRequest, HttpResponse, etag
from chalicelib.transports.web import assets

_FOLDER = Path(__file__).with_name("static")
_HEADERS = {
    "Content-Type": "text/javascript; charset=utf-8",
    # A new version reaches every page within ten minutes, without a delay of the page.
    "Cache-Control": "public, max-age=600, stale-while-revalidate=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


def script(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  it is the same for all
    """Return the script, which contains its styles, translations and icons."""
    body, tag = _read("widget")
    return HttpResponse(200, body, {**_HEADERS, "ETag": tag})


def booking_script(request: HttpRequest) -> HttpResponse:  # noqa: ARG001  as above
    """Return the script that embeds a booking page."""
    body, tag = _read("book")
    return HttpResponse(200, body, {**_HEADERS, "ETag": tag})


# The expression of the chat's URL, which is next to the script if the chat has no other URL.
_CHAT = f"`${{base}}{chat_route.PATH[1:]}`".encode()


@cache
def _read(name: str) -> tuple[bytes, str]:
    body = _UNUSED.sub(b"", (_FOLDER / f"{name}.js").read_bytes())
    body = body.replace(b"assets/webmcp.js", assets.script_url("webmcp")[1:].encode())
    if settings().chat_url:
        body = body.replace(_CHAT, to_json(chat_route.url()))
    return body, etag(body)


# Matches indentation and comment lines, which browsers do not need.
_UNUSED = re.compile(rb"(?m)^[ ]+(//.*\n|/\*\*.*\*/\n)?|^\n")
