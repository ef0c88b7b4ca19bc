"""The HTTP part of the development server: cheroot, stricter, and with our words for refusals."""

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
"""CloudFront's limit on a URL (Amazon CloudFront quotas)."""
MAX_HEADER_BYTES = 32_768
"""Of the request line and all headers together, as CloudFront's limit on a request."""
MAX_HEADERS = 100
THREADS = 64
"""Requests answered at once; what a stream takes as long as it runs."""
TIMEOUT_SECONDS = 60
"""The longest pause within a request, between two, or for a client to take its answer."""
LINGER_SECONDS = 30.0
"""How long what a client still sends is read and dropped, so that it gets to see the answer."""
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
    "408": RequestTimeoutError("The rest of the request did not come. Send it again, whole."),
    "413": HeadersTooLargeError(
        f"The headers are too large: {MAX_HEADERS} lines and {MAX_HEADER_BYTES:,} bytes with the "
        "request line are the limits. Send fewer or shorter ones."
    ),
    "414": UriTooLongError(
        f"The request line is over {MAX_TARGET_BYTES:,} bytes. Shorten the URL."
    ),
    "500": InternalError(),
    "505": ValidationError("Only HTTP/1.1 and HTTP/1.0 are spoken here."),
}
"""What cheroot refuses by itself, by its status; of bodies it refuses none."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_LINE = re.compile(rb"(%s):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n" % _TOKEN)


class Request(HTTPRequest):
    """A request as it is read, and its answer as it is sent."""

    method = b""
    status: Any  # bytes, though the stubs say str

    def __init__(self, server: HTTPServer, conn: HTTPConnection) -> None:
        # As a proxy's, a request may name the whole URL, which RFC 9112, 3.2.2 demands of all.
        super().__init__(server, conn, proxy_mode=True)
        self._awaits_continue = False
        self._unread = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers, under lower-case names."""
        headers = self.inheaders.items()
        return {name.decode().lower(): value.decode("latin-1") for name, value in headers}

    def read_request_line(self) -> bool:
        """Read the request line; false if it was refused, or none came."""
        try:
            if not super().read_request_line():  # type: ignore[no-untyped-call]
                return False
        except ValueError:  # of urlsplit
            self.uri = b""
        if len(self.uri) > MAX_TARGET_BYTES:
            raise MaxSizeExceeded
        if not re.fullmatch(_TOKEN, self.method) or not re.fullmatch(rb"[!-~]+", self.uri):
            self.simple_response("400", "the method or the URL is malformed")
            return False
        return True

    def header_reader(self, rfile: Any, headers: dict[bytes, bytes]) -> None:  # noqa: ANN401  cheroot's
        """Read the header lines into ``headers``, repetitions joined (RFC 9110, 5.3).

        Raises:
            ValueError: they are malformed, or do not say where the request ends. A line is not
                shown: it may well be the Authorization.
            MaxSizeExceeded: they are too many.
        """
        for number, line in enumerate(iter(rfile.readline, b"\r\n"), 1):
            if (match := _HEADER_LINE.fullmatch(line)) is None:
                msg = f"header line {number} is not Name: value, or does not end with CRLF"
                raise ValueError(msg)
            if number > MAX_HEADERS:
                raise MaxSizeExceeded
            name, value = match[1].title(), match[2].strip(b" \t")
            mark = b"; " if name == b"Cookie" else b", "
            headers[name] = headers[name] + mark + value if name in headers else value
        self._check(headers)

    def _check(self, headers: dict[bytes, bytes]) -> None:
        """Settle where the request ends and whether the connection stays (RFC 9112, 3.2, 6, 9)."""
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
            headers[b"Connection"] = b"close"  # So cheroot understands it.
        elif b"keep-alive" in wishes:
            headers[b"Connection"] = b"Keep-Alive"
        # Kept from cheroot, which would ask for the body before anybody has looked at the rest.
        self._awaits_continue = headers.pop(b"Expect", b"").lower() == b"100-continue"
        self._unread = coding is not None or bool(int(length or 0))

    def read_body(self, limit: int) -> bytes:
        """Return the request's body, of at most ``limit`` bytes.

        Raises:
            PayloadTooLargeError: it is over the limit; if it has a length, not a byte was read.
            ValidationError: it is malformed, or the client closed the connection before its end.
        """
        if not self._unread:
            return b""
        length = int(self.inheaders.get(b"Content-Length", 0))
        if length > limit:
            raise body_too_large(length, limit)
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

    def _read_blocks(self, most: int) -> bytes:
        body = bytearray()
        while block := self.rfile.read(_BLOCK):
            body += block
            if len(body) > most:
                raise MaxSizeExceeded
        return bytes(body)

    def _read_chunks(self, limit: int) -> bytes:
        self.rfile.maxlen = 2 * limit  # with the chunks' own lines; no chunk is read that passes it
        try:
            body = self._read_blocks(limit)
            for _ in self.rfile.read_trailer_lines():
                pass
        except (TimeoutError, ConnectionError):
            raise
        except (MaxSizeExceeded, OSError):
            msg = f"The body is over the limit of {limit:,} bytes. Send less at once."
            raise PayloadTooLargeError(msg) from None
        except ValueError:
            msg = "The body's chunks are malformed (RFC 9112, 7.1). Send it with a Content-Length."
            raise ValidationError(msg) from None
        return body

    def simple_response(self, status: str, msg: str = "") -> None:
        """Answer what cheroot refuses by itself."""
        said = f"This is no valid HTTP request: {msg.rstrip('.')}."
        self.refuse(_REFUSALS.get(status[:3]) or ValidationError(said))

    def refuse(self, error: AppError) -> None:
        """Answer with a failure and close: where the next request would begin is unknown."""
        self.close_connection = True
        asked = HttpRequest(self.method.decode("latin-1") or "-", "refused", {})
        self.send(handle(asked, lambda r: failure(error, r.request_id)))

    def send(self, response: HttpResponse) -> None:
        """Send an answer, a stream as it comes; the connection closes if the body was not read."""
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
        """Answer one request; true if another may follow.

        Before the connection closes, what still comes is read: closing with unread input would
        reset it, and the client might never see its answer.
        """
        stays: bool = super().communicate()  # type: ignore[no-untyped-call]
        if not stays:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                self.socket.settimeout(LINGER_PAUSE_SECONDS)
                end = time.monotonic() + LINGER_SECONDS
                while time.monotonic() < end and self.socket.recv(_BLOCK):
                    pass
        return stays

    def close(self) -> None:
        """Close; what could not be sent never will be, or the writer would still try at its end."""
        self.wfile._write_buf.clear()  # noqa: SLF001  cheroot shows no other way
        super().close()


class Server(HTTPServer):
    """A server that has ``respond`` answer each request."""

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
        """Answer a connection's request; a new connection takes no thread before it sends one."""
        if conn.last_used is None:
            self._open.add(conn)
            self.put_conn(conn)
        else:
            super().process_conn(conn)

    def stop(self) -> None:
        """Stop; what is being read ends at once, and a stream with its next piece."""
        for conn in list(self._open):
            with suppress(OSError):
                conn.socket.shutdown(socket.SHUT_RDWR)
        super().stop()

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:  # noqa: FBT001, FBT002  cheroot's
        """Log as all of the service does."""
        log.log(level, msg, exc_info=traceback)
