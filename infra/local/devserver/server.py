"""The HTTP server of development, which is cheroot with stricter checks of requests."""

import logging
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import responses
from typing import Any
from weakref import WeakSet

from cheroot.errors import MaxSizeExceeded
from cheroot.server import Gateway, HTTPConnection, HTTPRequest, HTTPServer

from chalicelib.core.errors import AppError, InternalError, PayloadTooLargeError, ValidationError
from chalicelib.transports.http import HttpRequest, HttpResponse, body_too_large, failure, handle

MAX_TARGET_BYTES = 8_192
"""Maximum length of a URL that CloudFront accepts (Amazon CloudFront quotas)."""
MAX_HEADER_BYTES = 32_768
"""Maximum bytes of the request line and all headers together, as for CloudFront."""
MAX_HEADERS = 100
THREADS = 64
"""Requests that are served concurrently. A stream occupies one thread while it runs."""
TIMEOUT_SECONDS = 60
"""Seconds to wait for more of a request, for the next request, or for the client to read."""
LINGER_SECONDS = 30.0
"""Seconds of reading and dropping further input, so that the client receives the response."""
LINGER_PAUSE_SECONDS = 2.0
_BLOCK = 65_536
_NO_BODY = frozenset({204, 304})

log = logging.getLogger("chalicelib.devserver")


class RequestTimeoutError(AppError):
    """The client stopped in the middle of a request."""

    status = 408
    code = "request_timeout"


class UriTooLongError(AppError):
    """The request's target passes the limit."""

    status = 414
    code = "uri_too_long"


class HeadersTooLargeError(AppError):
    """The headers pass the limit."""

    status = 431
    code = "headers_too_large"


_REFUSALS = {
    "408": RequestTimeoutError(
        "The rest of the request did not come. Send the whole request again."
    ),
    "413": HeadersTooLargeError(
        f"The headers are too large: {MAX_HEADERS} lines and {MAX_HEADER_BYTES:,} bytes with the "
        "request line are the limits. Send fewer or shorter ones."
    ),
    "414": UriTooLongError(
        f"The request line is over {MAX_TARGET_BYTES:,} bytes. Shorten the URL."
    ),
    "500": InternalError(),
    "505": ValidationError("Expected HTTP/1.1 or HTTP/1.0. Use HTTP/1.1."),
}
"""Cheroot's own refusals, by status. It refuses no bodies."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_LINE = re.compile(rb"(%s):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n" % _TOKEN)


class Request(HTTPRequest):
    """A request while it is read, and its response while it is sent."""

    method = b""
    status: Any  # bytes, though the stubs say str

    def __init__(self, server: HTTPServer, conn: HTTPConnection) -> None:
        # Like a proxy, accept whole URLs, as RFC 9112, 3.2.2 requires of every server.
        super().__init__(server, conn, proxy_mode=True)
        self._awaits_continue = False
        self._unread = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers, under lower-case names."""
        headers = self.inheaders.items()
        return {name.decode().lower(): value.decode("latin-1") for name, value in headers}

    def read_request_line(self) -> bool:
        """Read the request line, and return False if it was refused or did not arrive."""
        try:
            if not super().read_request_line():  # type: ignore[no-untyped-call]
                return False
        except ValueError:  # raised by urlsplit
            self.uri = b""
        if len(self.uri) > MAX_TARGET_BYTES:
            raise MaxSizeExceeded
        if not re.fullmatch(_TOKEN, self.method) or not re.fullmatch(rb"[!-~]+", self.uri):
            self.simple_response("400", "the method or the URL is malformed")
            return False
        return True

    def header_reader(self, rfile: Any, headers: dict[bytes, bytes]) -> None:  # noqa: ANN401  cheroot's
        """Read the header lines into ``headers``, with repetitions joined (RFC 9110, 5.3).

        Raises:
            ValueError: they are malformed, or the end of the request is unclear. Lines are left out
                of the error, because one may be the Authorization header.
            MaxSizeExceeded: they exceed the limit.
        """
        for number, line in enumerate(iter(rfile.readline, b"\r\n"), 1):
            if (match := _HEADER_LINE.fullmatch(line)) is None:
                msg = f"header line {number} is not Name: value, or does not end with CRLF"
                raise ValueError(msg)
            # The number is limited, too, because each line costs memory however short it is.
            if number > MAX_HEADERS:
                raise MaxSizeExceeded
            name, value = match[1].title(), match[2].strip(b" \t")
            # A comma is part of a cookie's value, so RFC 6265 separates cookies by semicolons.
            mark = b"; " if name == b"Cookie" else b", "
            headers[name] = headers[name] + mark + value if name in headers else value
        self._check(headers)

    def _check(self, headers: dict[bytes, bytes]) -> None:
        """Determine the end of the request and the fate of the connection (RFC 9112, 3.2, 6, 9)."""
        old = self.response_protocol == "HTTP/1.0"
        if b"," in headers.get(b"Host", b"" if old else b","):
            raise ValueError("it must have one Host header")
        length, coding = headers.get(b"Content-Length"), headers.get(b"Transfer-Encoding")
        if coding is not None and (old or length is not None or coding.lower() != b"chunked"):
            raise ValueError("a Transfer-Encoding is chunked, in HTTP/1.1, without Content-Length")
        if length is not None and not re.fullmatch(rb"[0-9]{1,18}", length):
            raise ValueError("a Content-Length comes once and is the body's number of bytes")
        wishes = {wish.strip() for wish in headers.get(b"Connection", b"").lower().split(b",")}
        if b"close" in wishes:
            headers[b"Connection"] = b"close"  # Cheroot understands this form.
        elif b"keep-alive" in wishes:
            headers[b"Connection"] = b"Keep-Alive"
        # Removed, because cheroot would request the body before the other checks.
        self._awaits_continue = headers.pop(b"Expect", b"").lower() == b"100-continue"
        self._unread = coding is not None or bool(int(length or 0))

    def read_body(self, limit: int) -> bytes:
        """Return the request's body, of at most ``limit`` bytes.

        Raises:
            PayloadTooLargeError: it exceeds the limit. If it has a length, nothing was read.
            ValidationError: it is malformed, or the client closed the connection before its end.
        """
        if not self._unread:
            return b""
        length = int(self.inheaders.get(b"Content-Length", 0))
        if length > limit:
            raise body_too_large(length, limit=limit)
        if self._awaits_continue:
            self.conn.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._read_chunks(limit) if self.chunked_read else self._read_blocks(length)
        if len(body) < length:
            msg = (
                f"The body ended after {len(body):,} bytes; Content-Length says {length:,}. "
                "Send all of it."
            )
            raise ValidationError(msg)
        self._unread = False
        return body

    def _read_blocks(self, max_size: int) -> bytes:
        body = bytearray()
        while block := self.rfile.read(_BLOCK):
            body += block
            if len(body) > max_size:
                raise MaxSizeExceeded
        return bytes(body)

    def _read_chunks(self, limit: int) -> bytes:
        self.rfile.maxlen = 2 * limit  # includes chunks' own lines; larger chunks are not read
        try:
            body = self._read_blocks(limit)
            for _ in self.rfile.read_trailer_lines():
                pass
        except (TimeoutError, ConnectionError):
            raise
        except (MaxSizeExceeded, OSError):
            msg = f"The body is over the limit of {limit:,} bytes. Send less data in one call."
            raise PayloadTooLargeError(msg) from None
        except ValueError:
            msg = "The body's chunks are malformed (RFC 9112, 7.1). Send it with a Content-Length."
            raise ValidationError(msg) from None
        return body

    def simple_response(self, status: str, msg: str = "") -> None:
        """Send the service's error for one of cheroot's own refusals."""
        message = f"This is no valid HTTP request: {msg.rstrip('.')}."
        self.refuse(_REFUSALS.get(status[:3]) or ValidationError(message))

    def refuse(self, error: AppError) -> None:
        """Send an error and close, because the start of the next request is unknown."""
        self.close_connection = True
        http_request = HttpRequest(self.method.decode("latin-1") or "-", "refused", {})
        self.send(handle(http_request, lambda r: failure(error, r.request_id)))

    def send(self, response: HttpResponse) -> None:
        """Send a response. Streams are sent as they arrive.

        If the body was not read, the connection closes.
        """
        headers = [*response.headers.items(), *(("Set-Cookie", c) for c in response.cookies)]
        body = response.body
        if isinstance(body, bytes) and response.status not in _NO_BODY:
            headers.append(("Content-Length", str(len(body))))
        self.status = f"{response.status} {responses.get(response.status, '')}".encode()
        self.outheaders = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]
        self.close_connection = self.close_connection or self._unread
        try:
            self.ensure_headers_sent()
            if self.method != b"HEAD":
                for piece in [body] if isinstance(body, bytes) else body:
                    if piece:
                        self.write(piece)
        finally:
            response.close()


class Connection(HTTPConnection):
    """One connection."""

    RequestHandlerClass = Request

    def communicate(self) -> bool:
        """Respond to one request, and return whether another may follow.

        Before the connection closes, further input is read and dropped. Closing with unread input
        would reset the connection, and the client might never receive the response.
        """
        stays: bool = super().communicate()  # type: ignore[no-untyped-call]
        if not stays:
            with suppress(OSError):
                # The client sees the end of the response while its own input is still being read.
                self.socket.shutdown(socket.SHUT_WR)
                self.socket.settimeout(LINGER_PAUSE_SECONDS)
                end = time.monotonic() + LINGER_SECONDS
                while time.monotonic() < end and self.socket.recv(_BLOCK):
                    pass
        return stays

    def close(self) -> None:
        """Close the connection and drop unsent output, which the writer would still try to send."""
        self.wfile._write_buf.clear()  # noqa: SLF001  cheroot has no public method
        super().close()


class Server(HTTPServer):
    """A server that passes each request to ``respond``."""

    ConnectionClass = Connection
    request_queue_size = 128
    shutdown_timeout = 1
    keep_alive_conn_limit = 1_000
    max_request_header_size = MAX_HEADER_BYTES
    timeout = TIMEOUT_SECONDS

    def __init__(self, host: str, port: int, respond: Callable[[Request], None]) -> None:
        class Responder(Gateway):
            def respond(self) -> None:
                respond(self.req)

        super().__init__((host, port), Responder, minthreads=THREADS, server_name="chalice-local")
        self._open: WeakSet[HTTPConnection] = WeakSet()

    def process_conn(self, conn: HTTPConnection) -> None:
        """Serve a connection, which takes no thread before its first request arrives."""
        if conn.last_used is None:
            # ``stop`` must end connections that wait in cheroot's selector.
            self._open.add(conn)
            self.put_conn(conn)
        else:
            super().process_conn(conn)

    def stop(self) -> None:
        """Stop the server, which ends open reads immediately and streams with their next piece."""
        for conn in list(self._open):
            with suppress(OSError):
                conn.socket.shutdown(socket.SHUT_RDWR)
        super().stop()

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:  # noqa: FBT001, FBT002  cheroot's
        """Write cheroot's log records to the service's log."""
        log.log(level, msg, exc_info=traceback)
