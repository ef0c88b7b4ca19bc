"""A form that is too large is refused before any part of it is decoded."""

import re
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest

import app as application
from chalicelib.transports.console.routes import ROUTES
from chalicelib.transports.http import MAX_PUBLIC_BODY_BYTES
from tests.conftest import Api

pytestmark = pytest.mark.usefixtures("database")
ENCODED = b"%41" * 1_666_666
"""Decoding this takes almost half a second, and 97 MB of memory."""
PARTS = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n' + b"A" * 4_900_000
FORMS = {
    "application/x-www-form-urlencoded": b"name=" + ENCODED[: 5_000_000 - 5],
    "multipart/form-data; boundary=x": PARTS + b"\r\n--x--\r\n",
}
ROUTED = application.app.routes | application.app.page_routes
POSTS = [path for path, methods in ROUTED.items() if "POST" in methods]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what the parsers of forms receive, from the first call on."""
    from python_multipart.multipart import MultipartParser

    sizes: list[int] = []

    def recording(parser: Callable[..., Any], place: int) -> Callable[..., Any]:
        def parse(*args: Any, **options: Any) -> Any:
            sizes.append(len(args[place]))
            return parser(*args, **options)

        return parse

    monkeypatch.setattr(urllib.parse, "unquote", recording(urllib.parse.unquote, 0))
    monkeypatch.setattr(MultipartParser, "write", recording(MultipartParser.write, 1))
    return sizes


@pytest.mark.parametrize("kind", FORMS)
def test_no_form_is_decoded_beyond_its_limit(kind: str, decoded: list[int]) -> None:
    assert len(POSTS) > 100
    too_long = {}
    for route in POSTS:
        page = ROUTES.get(route)
        limit = page.max_bytes if page is not None else MAX_PUBLIC_BODY_BYTES
        decoded.clear()
        path = re.sub(r"\{[^}]+\}", "x", route)
        Api(None).call("POST", path, FORMS[kind], {"Content-Type": kind, "Origin": "null"})
        if max(decoded, default=0) > limit:
            too_long[route] = max(decoded)
    assert too_long == {}
