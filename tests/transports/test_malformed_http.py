"""Malformed requests receive a response, and the server keeps running."""

import gzip
import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from tests.support.sweep import sweep
from tests.transports.conftest import LocalServer, Records

SECRET = b"Zq7SECRETzQ"
"""Part of each Authorization header below. No response may contain this part."""
HOST = b"Host: x\r\n"
TOKEN = b"@TOKEN@"
AUTHORIZED = b"Authorization: Bearer " + TOKEN


class Case(NamedTuple):
    """A request and the allowed statuses of its response."""

    name: str
    request: bytes
    statuses: tuple[int, ...]
    end_input: bool = False


def line(name: str, first: bytes, *statuses: int) -> Case:
    """Return a request with this first line."""
    return Case(f"request line: {name}", first + b"\r\n" + HOST + b"\r\n", statuses)


def path(target: str, *statuses: int, token: bool = False) -> Case:
    """Return a GET request for this target."""
    more = AUTHORIZED + b"\r\n" if token else b""
    request = b"GET " + target.encode() + b" HTTP/1.1\r\n" + HOST + more + b"\r\n"
    return Case(f"target: {target[:40]}{' with a key' if token else ''}", request, statuses)


def method(name: str, target: str, *statuses: int) -> Case:
    """Return a request with this method."""
    request = f"{name} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    return Case(f"method: {name[:40]} {target}", request, statuses)


def header(name: str, lines: bytes, *statuses: int) -> Case:
    """Return a request for the health page with these header lines."""
    request = b"GET /api/health HTTP/1.1\r\n" + HOST + lines + b"\r\n\r\n"
    return Case(f"header: {name}", request, statuses)


def framing(
    name: str,
    lines: bytes,
    body: bytes,
    *statuses: int,
    end_input: bool = False,
    version: bytes = b"1.1",
) -> Case:
    """Return a POST request with these header lines about the body."""
    first = b"POST /api/pages/create HTTP/" + version + b"\r\n"
    request = first + HOST + lines + b"\r\n\r\n" + body
    return Case(f"framing: {name}", request, statuses, end_input)


def key(name: str, lines: bytes, *statuses: int) -> Case:
    """Return a request with these Authorization lines."""
    request = b"GET /api/projects/list HTTP/1.1\r\n" + HOST + lines + b"\r\n\r\n"
    return Case(f"key: {name}", request, statuses)


def body(
    name: str, content: bytes, *statuses: int, kind: bytes = b"application/json", more: bytes = b""
) -> Case:
    """Return an authorised POST request with this body. Lines in ``more`` end in CRLF."""
    lines = AUTHORIZED + b"\r\n" + more + (b"Content-Type: " + kind + b"\r\n" if kind else b"")
    size = b"Content-Length: %d" % len(content)
    request = b"POST /api/projects/create HTTP/1.1\r\n" + HOST + lines + size + b"\r\n\r\n"
    return Case(f"body: {name}", request + content, statuses)


def client_hello() -> bytes:
    """Return the first message of a browser that tries https://."""
    hello = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="x")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return hello.read()


CASES = [
    line("binary garbage", b"\x00\x01\x02\xff\xfe", 400),
    line("binary garbage after a letter", b"G\x00\x01\x02\xff\xfe", 400),
    Case("a TLS handshake", client_hello(), (400,)),
    Case("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    Case("a blank line first", b"\r\nGET /api/health HTTP/1.1\r\nHost: x\r\n\r\n", (200,)),
    Case("nothing but blank lines", b"\r\n" * 50, (400,)),
    Case("a line that never ends", b"GET /" + b"a" * 100_000, (414,)),
    Case("an unfinished line", b"GET /api/hea", (400,), end_input=True),
    Case("unfinished headers", b"GET /api/health HTTP/1.1\r\nHost: x\r\n", (400,), end_input=True),
    line("a word", b"HELLO", 400),
    line("HTTP/0.9", b"GET /api/health", 400),
    line("two spaces", b"GET  /api/health HTTP/1.1", 400),
    line("a space first", b" GET /api/health HTTP/1.1", 200),
    line("tabs", b"GET\t/api/health\tHTTP/1.1", 400),
    line("four words", b"GET /api/health HTTP/1.1 now", 400),
    line("a space in the path", b"GET /api/ health HTTP/1.1", 400),
    line("a NUL in the path", b"GET /api/\x00health HTTP/1.1", 400),
    line("a DEL in the path", b"GET /api/\x7fhealth HTTP/1.1", 400),
    line("a CR in the path", b"GET /api/\rhealth HTTP/1.1", 400),
    line("HTTP/2.0", b"GET /api/health HTTP/2.0", 400),
    line("HTTP/0.9 spelled out", b"GET /api/health HTTP/0.9", 400),
    line("HTTP/1", b"GET /api/health HTTP/1", 400),
    line("HTTP/1.1.1", b"GET /api/health HTTP/1.1.1", 400),
    line("HTTP/-1.1", b"GET /api/health HTTP/-1.1", 400),
    line("HTTP/11", b"GET /api/health HTTP/11", 400),
    line("http/1.1", b"GET /api/health http/1.1", 400),
    line("HTTP/1.9", b"GET /api/health HTTP/1.9", 400),
    line("another protocol", b"GET /api/health SIP/2.0", 400),
    line("a bracket in the method", b"GE(T /api/health HTTP/1.1", 400),
    line("raw UTF-8", "GET /api/pages/страница HTTP/1.1".encode(), 400),
    line("raw bytes that are no UTF-8", b"GET /api/pages/\xff\xfe HTTP/1.1", 400),
    line("raw bytes in the query", b"GET /api/health?q=\xff\xfe HTTP/1.1", 400),
    path("/api/health/", 200),
    path("/api/health//", 404),
    path("//api//health", 404),
    path("//api/health", 404),
    path("/api//health", 404),
    path("//", 404),
    path("/", 404),
    path("*", 400),
    path("?a=1", 400),
    path("api/health", 400),
    path("x:/api/health", 404),
    path("/api/./health", 404),
    path("/api/../api/health", 404),
    path("/api/%2e%2e/api/health", 404),
    path("/api/health;a=1", 404),
    path("/api/health#a", 400),
    path("/api/health%00", 404),
    path("/api/{id}", 404),
    path("/api/pages/{id}", 401),
    path("/api/pages/%D0%BF", 401),
    path("/api/pages/%D0%BF", 400, 404, token=True),
    path("/api/pages/a%2Fb", 400, 404, token=True),
    path("/api/pages/%00", 400, 404, token=True),
    path("/api/pages/%zz", 400, 404, token=True),
    path("/api/pages/%", 400, 404, token=True),
    path("/api/pages/%ff", 400, 404, token=True),
    path("/api/pages/%ED%A0%80", 400, 404, token=True),
    path("/api/pages/%F0%9F%98%80", 400, 404, token=True),
    path("/api/pages/a;b", 400, 404, token=True),
    path("/api/pages/" + "a" * 7_000, 400, 404, token=True),
    path("/api/pages//", 404, token=True),
    path("/" + "a/" * 4_000, 404),
    path("/files/" + "a" * 3_000, 404),
    path("/files/" + "%D0%B6" * 1_000, 404),
    path("/files/a%00b/%00", 404),
    path("/files/%2e%2e/%2e%2e/etc/passwd", 404),
    path("/files/", 404),
    path("/api/" + "a" * 9_000, 414),
    path("/api/health?page=1&page=2&=&&%", 200),
    path("/api/health?" + "&" * 5_000, 200),
    path("/api/health?%0d%0aSet-Cookie:%20a=b", 200),
    path("/api/health???", 200),
    path("/api/projects/list?page=1&page=2&=&&", 200, token=True),
    path("/api/projects/list?page=1&=&&%", 400, token=True),
    path("/api/projects/list?search=100%zz", 400, token=True),
    path("/api/projects/list?search=100%", 400, token=True),
    path("/api/projects/list?search=100%25zz", 200, token=True),
    path("/api/projects/list?%ff=1", 400, token=True),
    path("/api/projects/list?page=%ff&size=%00", 400, token=True),
    path("/api/projects/list?page=" + "9" * 5_000, 400, token=True),
    path("/api/projects/list?page=-1", 400, token=True),
    path("/api/projects/list?page=%D9%A1", 400, token=True),
    path("/api/projects/list?page=1e400", 400, token=True),
    path("http://elsewhere/api/health", 200),
    path("HTTPS://user:word@elsewhere:1/api/health?a", 200),
    path("http://elsewhere", 404),
    path("http://[::1/api/health", 400),
    path("http:///api/health", 200),
    *(method(name, "/api/health", 405) for name in ("OPTIONS", "TRACE", "BREW")),
    method("HEAD", "/api/health", 200),
    *(method(name, "/api/health", 405) for name in ("PROPFIND", "POST", "!#$%&'*+.^_`|~9")),
    *(method(name, "/api/health", 400) for name in ("get", "CONNECT")),
    *(method(name, "/api/none", 404) for name in ("HEAD", "OPTIONS", "TRACE", "BREW")),
    method("A" * 32, "/api/health", 405),
    method("A" * 4_000, "/api/health", 405),
    method("OPTIONS", "*", 404),
    method("CONNECT", "elsewhere:443", 404),
    header("no colon", b"Authorization Bearer " + SECRET, 400),
    header("a space before the colon", b"Authorization : Bearer " + SECRET, 400),
    header("no name", b": Bearer " + SECRET, 400),
    header("continued on the next line", b"Authorization: Bearer\r\n " + SECRET, 400),
    header("a NUL", b"Authorization: Bearer \x00" + SECRET, 400),
    header("a bare CR", b"X: a\rAuthorization: Bearer " + SECRET, 400),
    header("a control character", b"X: \x01", 400),
    header("a space in the name", b"X Y: a", 400),
    header("other line separators", b"X: a\x85Y: b\x0cZ", 400),
    header("a next-line character", b"X: a\x85Transfer-Encoding: chunked", 200),
    header("empty", b"X:", 200),
    header("lines that end in LF", b"X: a\nY: b", 400),
    header("102 lines", b"\r\n".join(b"X%d: a" % i for i in range(101)), 431),
    header("40 KB", b"X: " + b"a" * 40_000, 431),
    header("300 KB", b"X: " + b"a" * 300_000, 431),
    header("two hosts", b"Host: y", 400),
    header("a foreign host", b"X-Forwarded-Host: evil.example", 200),
    header("a request id of the caller's", b"X-Request-Id: a%0d%0ab", 200),
    header("an unknown expectation", b"Expect: the-unexpected", 200),
    header("an upgrade", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c", 200),
    Case("no host", b"GET /api/health HTTP/1.1\r\n\r\n", (400,)),
    Case("no host in HTTP/1.0", b"GET /api/health HTTP/1.0\r\n\r\n", (200,)),
    framing("a word as length", b"Content-Length: abc", b"{}", 400),
    framing("a negative length", b"Content-Length: -1", b"{}", 400),
    framing("a signed length", b"Content-Length: +2", b"{}", 400),
    framing("a length with an underscore", b"Content-Length: 1_0", b"{}", 400),
    framing("a hexadecimal length", b"Content-Length: 0x2", b"{}", 400),
    framing("a fractional length", b"Content-Length: 2.0", b"{}", 400),
    framing("no length", b"Content-Length:", b"{}", 400),
    framing("two lengths", b"Content-Length: 2\r\nContent-Length: 3", b"{}", 400),
    framing("one length twice", b"Content-Length: 2\r\nContent-Length: 2", b"{}", 400),
    framing("a list of lengths", b"Content-Length: 2, 2", b"{}", 400),
    framing("a superscript length", b"Content-Length: \xb2", b"{}", 400),
    framing("a length with zeros before it", b"Content-Length: 0002", b"{}", 401),
    framing("a length of 18 digits", b"Content-Length: " + b"9" * 18, b"", 413),
    framing("a length of 6 MB", b"Content-Length: 6000000", b"", 413),
    framing("a length of 20 digits", b"Content-Length: " + b"9" * 20, b"", 400),
    framing("a length of 10,000 digits", b"Content-Length: " + b"9" * 10_000, b"", 400),
    framing("6 MB", b"Content-Length: 6000000", b"a" * 6_000_000, 413),
    framing("6 MB announced", b"Expect: 100-continue\r\nContent-Length: 6000000", b"", 413),
    framing("chunks", b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n", 401),
    framing("broken chunks", b"Transfer-Encoding: chunked", b"zz\r\n{}\r\n", 400),
    framing("a chunk cut short", b"Transfer-Encoding: chunked", b"9\r\n{}", 400, end_input=True),
    framing("a chunk that is too long", b"Transfer-Encoding: chunked", b"2\r\n{}}\r\n", 400),
    framing("no last chunk", b"Transfer-Encoding: chunked", b"2\r\n{}\r\n", 400, end_input=True),
    framing("a huge chunk", b"Transfer-Encoding: chunked", b"f" * 20 + b"\r\n", 413),
    framing("chunks in HTTP/1.0", b"Transfer-Encoding: chunked", b"0\r\n\r\n", 400, version=b"1.0"),
    framing("no chunks", b"Transfer-Encoding: identity", b"", 400),
    framing("an odd coding", b"Transfer-Encoding: \x0bchunked", b"", 400),
    framing("gzipped chunks", b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n", 400),
    framing(
        "chunks and a length",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"0\r\n\r\nGET /api/none HTTP/1.1\r\nHost: x\r\n\r\n",
        400,
    ),
    framing("a body that ends early", b"Content-Length: 20", b"{}", 400, end_input=True),
    framing("no body", b"Content-Length: 20", b"", 400, end_input=True),
    framing("a body that says nothing", b"X: a", b"", 401),
    key("none", b"X: a", 401),
    key("empty", b"Authorization:", 401),
    key("only a scheme", b"Authorization: Bearer", 401),
    key("another scheme", b"Authorization: Basic " + SECRET, 401),
    key("no scheme", b"Authorization: " + SECRET, 401),
    key("unknown", b"Authorization: Bearer svc_live_" + SECRET, 401),
    key("of a bot", b"Authorization: Bearer svc_bot_" + SECRET, 401),
    key("two words", b"Authorization: Bearer " + SECRET + b" " + SECRET, 401),
    key("a comma", b"Authorization: Bearer ,", 401),
    key("Latin-1", b"Authorization: Bearer \xe9\xff" + SECRET, 401),
    key("UTF-8", "Authorization: Bearer ключ".encode() + SECRET, 401),
    key("a next-line character", b"Authorization: Bearer \x85\xa0" + SECRET, 401),
    key("quoted", b'Authorization: Bearer "' + SECRET + b'"', 401),
    key("20 KB", b"Authorization: Bearer " + SECRET * 1_800, 401),
    key("40 KB", b"Authorization: Bearer " + SECRET * 3_600, 431),
    key("twice", b"Authorization: Bearer " + SECRET + b"\r\nAuthorization: Bearer x", 401),
    key("good, then bad", AUTHORIZED + b"\r\nAuthorization: Bearer " + SECRET, 401),
    key("bad, then good", b"Authorization: Bearer " + SECRET + b"\r\n" + AUTHORIZED, 401),
    key("good, with spaces around", b"authorization:\t bearer   " + TOKEN + b" \t", 200),
    Case(
        "key: on an unknown path",
        b"GET /api/none HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + SECRET + b"\r\n\r\n",
        (404,),
    ),
    Case(
        "key: on a wrong method",
        b"BREW /api/health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + SECRET + b"\r\n\r\n",
        (405,),
    ),
    body("empty", b"", 400),
    body("spaces", b" \r\n\t ", 400),
    body("an array", b"[]", 400),
    body("a string", b'"title"', 400),
    body("null", b"null", 400),
    body("a number", b"1", 400),
    body("half an object", b'{"title": "a', 400),
    body("two objects", b'{"title": "a"}{"title": "b"}', 400),
    body("single quotes", b"{'title': 'a'}", 400),
    body("a trailing comma", b'{"title": "a",}', 400),
    body("a comment", b'{"title": "a"} // b', 400),
    body("NaN", b'{"title": NaN}', 400),
    body("Infinity", b'{"title": Infinity}', 400),
    body("-Infinity", b'{"title": -Infinity}', 400),
    body("1e400", b'{"title": 1e400}', 400),
    body("1e400 in an unknown field", b'{"x": [[1e400]]}', 400),
    body("a bare word", b"hello", 400),
    body("10,000 digits", b'{"title": ' + b"9" * 10_000 + b"}", 400),
    body("10,000 digits in an unknown field", b'{"x": ' + b"9" * 10_000 + b"}", 400),
    body("100,000 levels of arrays", b'{"title": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    body("100,000 levels of objects", b'{"title":' * 100_000 + b"1" + b"}" * 100_000, 400),
    body("150 levels", b'{"title": ' + b"[" * 150 + b"]" * 150 + b"}", 400),
    body("a lone surrogate", rb'{"title": "\ud800"}', 400),
    body("a lone surrogate as a key", rb'{"\udfff": 1}', 400),
    body("a surrogate in UTF-8", b'{"title": "\xed\xa0\x80"}', 400),
    body("a NUL", rb'{"title": "\u0000"}', 200, 400),
    body("a raw control character", b'{"title": "a\x01"}', 400),
    body("a key twice", b'{"title": 1, "title": 2}', 400),
    body("an empty key", b'{"": 1}', 400),
    body("__proto__", b'{"__proto__": {"x": 1}, "constructor": 1}', 400),
    body("a million keys", b"{" + b",".join(b'"%d":1' % i for i in range(300_000)) + b"}", 400),
    body("a byte order mark", b'\xef\xbb\xbf{"title": "a"}', 200),
    body("UTF-16", '{"title": "a"}'.encode("utf-16"), 400),
    body("UTF-32", '{"title": "a"}'.encode("utf-32"), 400),
    body("Latin-1", '{"title": "é"}'.encode("latin-1"), 400),
    body("Windows-1251", '{"title": "Сайт"}'.encode("cp1251"), 400),
    body("random bytes", bytes(range(256)) * 20, 400),
    body("an overlong NUL", b'{"title": "\xc0\x80"}', 400),
    body("gzip", gzip.compress(b'{"title": "a"}'), 400, 415, more=b"Content-Encoding: gzip\r\n"),
    body("an unknown coding", b"{}", 400, 415, more=b"Content-Encoding: rot13\r\n"),
    body("a bomb", gzip.compress(b" " * 10**7), 400, 415, more=b"Content-Encoding: gzip\r\n"),
    body("5 MB of spaces", b" " * 5_000_000, 400),
    body("5 MB and a byte", b" " * 5_000_001, 413),
    body("text", b"{}", 415, kind=b"text/plain"),
    body("a form", b"name=a", 415, kind=b"application/x-www-form-urlencoded"),
    body(
        "a multipart form", b"--a\r\n\r\n\xff\r\n--a--", 415, kind=b"multipart/form-data;boundary=a"
    ),
    body("an unknown binary type", bytes(range(256)), 415, kind=b"application/octet-stream"),
    body("XML", b"<a/>", 415, kind=b"application/xml"),
    body("a type without a slash", b"{}", 415, kind=b"json"),
    body("a type of odd bytes", b"{}", 415, kind=b"\xff\xfe/\xe9"),
    body("a type of 5 KB", b"{}", 415, kind=b"a/" * 2_500),
    body("two types", b"{}", 415, kind=b"application/json\r\nContent-Type: text/plain"),
    body("no type", b"{}", 400, kind=b""),
    body("a type in capitals", b"{}", 400, kind=b"APPLICATION/JSON"),
    body("another JSON type", b"{}", 400, kind=b"application/merge-patch+json"),
    body("semicolons", b"{}", 400, kind=b"application/json;;; ;"),
    body(
        "a foreign charset",
        '{"title": "é"}'.encode("utf-16"),
        400,
        kind=b"application/json; charset=utf-16",
    ),
    body("an odd charset", b"{}", 400, kind=b'application/json; charset="\xff"'),
    body("an empty idempotency key", b"{}", 400, more=b"Idempotency-Key:\r\n"),
    body("a long idempotency key", b"{}", 400, more=b"Idempotency-Key: " + b"a" * 300 + b"\r\n"),
    body("an odd idempotency key", b"{}", 400, more=b"Idempotency-Key: \xff\xfe\r\n"),
]


@pytest.fixture(autouse=True)
def _quiet(log_records: Records, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Check that nothing crashes, and that the secret is not logged."""
    yield
    assert log_records.errors == []
    assert SECRET.decode() not in "".join(log_records.lines)
    output = "".join(capfd.readouterr())
    assert "Traceback" not in output
    assert SECRET.decode() not in output


BY_NAME = {case.name: case for case in CASES}


@sweep("name", [case.name for case in CASES])
def test_every_request_is_answered_in_the_envelope(
    name: str, local_server: LocalServer, request: pytest.FixtureRequest
) -> None:
    case = BY_NAME[name]
    wire_request = case.request
    if TOKEN in wire_request:
        wire_request = wire_request.replace(
            TOKEN, str(request.getfixturevalue("api").token).encode()
        )
    with local_server.connect() as connection:
        connection.send(wire_request)
        if case.end_input:
            connection.end_input()
        method = wire_request.partition(b" ")[0].decode("latin-1")
        reply = connection.reply(to=method)
    assert reply.status in case.statuses, reply.body
    assert re.fullmatch(r"[0-9a-f-]{36}", reply.header("X-Request-Id") or "")
    assert reply.header("Content-Type") == "application/json"
    assert SECRET not in reply.body
    if method != "HEAD":
        assert reply.data["status"] is (reply.status == 200)
        if reply.status != 200:
            assert reply.data["requestId"] == reply.header("X-Request-Id")
            assert reply.data["message"]
            assert re.fullmatch(r"[a-z_]+", reply.data["code"])
            assert len(reply.body) < 5_000
    assert local_server.healthy()


def test_the_cases_are_many_and_all_different() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len({case.request for case in CASES})
