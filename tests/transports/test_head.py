"""HEAD requests have the same responses as GET, without a body."""

import gzip

import pytest

import app as application
from tests.conftest import Api, Time
from tests.factories.console import World
from tests.transports.conftest import LocalServer, WireReply

CHANGING = {"X-Request-Id", "Date", "Set-Cookie", "RateLimit-Remaining", "Content-Length"}
GZIP = b"Accept-Encoding: gzip\r\n"


def send_request(
    server: LocalServer, path: str, method: str = "GET", more: bytes = b""
) -> WireReply:
    return server.request(f"{method} {path} HTTP/1.1\r\nHost: x\r\n".encode() + more + b"\r\n")


def headers(reply: WireReply) -> dict[str, str]:
    return {name: value for name, value in reply.fields if name not in CHANGING}


def test_every_route_for_get_has_one_for_head() -> None:
    missing = [
        path
        for path, methods in (application.app.routes | application.app.page_routes).items()
        if "GET" in methods and "HEAD" not in methods
    ]
    assert missing == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/health",
        "/api/openapi.json",
        "/api/docs",
        "/api/blog/list",
        "/blog",
        "/widget.js",
        "/robots.txt",
        "/console/sign-in",
        "/console",
        "/playground",
        "/api/projects/list",
        "/api/nope",
    ],
)
@pytest.mark.parametrize("more", [b"", GZIP])
@pytest.mark.usefixtures("database")
def test_head_is_answered_like_get_without_the_body(
    path: str, more: bytes, local_server: LocalServer, time: Time
) -> None:
    got, head = (send_request(local_server, path, method, more) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (got.status, b"")
    assert headers(head) == headers(got)
    if not more:  # The token in a form changes a compressed page's length.
        assert head.header("Content-Length") == got.header("Content-Length")


def test_head_of_a_record_needs_the_key_that_get_needs(local_server: LocalServer, api: Api) -> None:
    authorized = f"Authorization: Bearer {api.token}\r\n".encode()
    got, head = (
        send_request(local_server, "/api/projects/list", method, authorized)
        for method in ("GET", "HEAD")
    )
    assert (got.status, head.status) == (200, 200)
    assert headers(head) == headers(got)
    assert send_request(local_server, "/api/projects/none", "HEAD", authorized).status == 404


@pytest.mark.parametrize("path", ["/api/openapi.json", "/widget.js", "/api/docs/search.json"])
def test_two_encodings_of_a_body_share_no_strong_tag(path: str, local_server: LocalServer) -> None:
    plain, packed = (send_request(local_server, path, more=more) for more in (b"", GZIP))
    assert packed.header("Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    for reply in (plain, packed):
        assert "Accept-Encoding" in (reply.header("Vary") or "")
        assert (reply.header("ETag") or "").startswith("W/")
    tag = (packed.header("ETag") or "").encode()
    known = send_request(local_server, path, more=GZIP + b"If-None-Match: " + tag + b"\r\n")
    assert known.status == 304
    assert "Accept-Encoding" in (known.header("Vary") or "")


def test_an_answer_varies_by_every_header_that_affects_it(
    local_server: LocalServer, world: World
) -> None:
    page = send_request(local_server, "/blog")
    assert page.header("Vary") == "Accept-Language, Accept-Encoding"
    tools = send_request(local_server, "/api/mcp", "POST", b"Origin: http://app\r\n")
    assert tools.header("Vary") == "Accept-Encoding, Origin"
