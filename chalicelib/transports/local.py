"""What ``chalice local`` lacks: HTTP as the deployed system speaks it.

Stock Chalice echoes the Authorization header of a request to an unknown path, answers malformed
requests with HTML or not at all, ignores chunked bodies, and delays each answer on a kept-alive
connection by 44 ms (chalice.md). ``install`` puts a server in its place that reads requests
strictly, answers each in the common envelope, and hands the rest to the same ``App`` that runs on
Lambda.
"""

import logging
import re
import socket
import string
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPMessage
from typing import Any
from urllib.parse import quote

import chalice.local
from chalice.app import Chalice
from chalice.config import Config
from chalice.local import (
    ChaliceRequestHandler,
    LambdaContext,
    LocalDevServer,
    ThreadedHTTPServer,
)

from chalicelib.core.errors import AppError, InternalError, ValidationError
from chalicelib.transports import chalice_app, schedules
from chalicelib.transports.http import (
    MAX_BODY_BYTES,
    HttpRequest,
    HttpResponse,
    body_too_large,
    failure,
    handle,
)

MAX_LINE_BYTES = 8_192
"""Of the request line, as CloudFront's limit on a URL (Amazon CloudFront quotas)."""
MAX_HEADER_BYTES = 32_768
"""Of all header lines together, as CloudFront's limit on a request without its body."""
MAX_HEADERS = 100
MAX_BLANK_LINES = 8
"""Before a request line; RFC 9112, 2.2 asks to ignore at least one."""
STALL_SECONDS = 30.0
"""The longest pause within a request, or for a client to take its answer."""
KEEP_ALIVE_SECONDS = 120.0
"""The longest pause between two requests on a connection."""
LINGER_SECONDS = 30.0
"""How long what a client still sends is read and dropped, so that it gets to see the answer."""
LINGER_PAUSE_SECONDS = 2.0

log = logging.getLogger(__name__)


class RequestTimeoutError(AppError):
    """The client stopped in the middle of a request."""

    status = 408
    code = "request_timeout"


class LengthRequiredError(AppError):
    """The body comes in chunks, or in another coding that says no length beforehand."""

    status = 411
    code = "length_required"


class UriTooLongError(AppError):
    """The request line passes the limit."""

    status = 414
    code = "uri_too_long"


class HeadersTooLargeError(AppError):
    """The headers pass the limit."""

    status = 431
    code = "headers_too_large"


_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_REQUEST_LINE = re.compile(
    rb"(%s{1,32}) ([\x21-\x7e\x80-\xff]+) HTTP/([0-9])\.([0-9])\r?\n" % _TOKEN
)
_HEADER_LINE = re.compile(rb"(%s+):([^\x00-\x08\x0a-\x1f\x7f]*)\r?\n" % _TOKEN)
_BLANK = (b"\r\n", b"\n")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_IN_PATH = "/%:@!$&'()*+,=~"
_IN_QUERY = string.punctuation.replace("#", "")
_LONGEST_NUMBER = 18
_NO_BODY = frozenset({204, 304})


class RequestHandler(ChaliceRequestHandler):
    """One connection: reads its requests, has ``App`` answer them, and leaves no traceback."""

    timeout = STALL_SECONDS
    disable_nagle_algorithm = True

    def __init__(  # noqa: PLR0913  Chalice's five, and ours
        self,
        request: Any,  # noqa: ANN401  a socket; Chalice's hints say bytes
        client_address: tuple[str, int],
        server: Any,  # noqa: ANN401  an HTTPServer
        *,
        app_object: Chalice,
        config: Config,
        handle_early: "TakeOver | None" = None,
    ) -> None:
        self.app = app_object
        self._take_over = handle_early
        self._length = 0
        self._unread = False
        super().__init__(request, client_address, server, app_object, config)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Write nothing: the request's JSON log line says it all."""

    def handle(self) -> None:
        """Answer requests until the client goes, stalls, or is sent away."""
        with suppress(OSError):
            super().handle()

    def finish(self) -> None:
        """Close, but read on for a while.

        Closing with unread input resets the connection, and the client may never see its answer.
        """
        with suppress(OSError):
            super().finish()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(LINGER_PAUSE_SECONDS)
            end = time.monotonic() + LINGER_SECONDS
            while time.monotonic() < end and self.connection.recv(65_536):
                pass

    def handle_one_request(self) -> None:
        """Read one request and answer it."""
        self.close_connection = True
        self.command, self.path, self.request_version = "", "", self.protocol_version
        self.headers = HTTPMessage()
        self._length, self._unread = 0, False
        try:
            if self._read_head():
                self._generic_handle()
        except AppError as error:
            self.refuse(error)
        except OSError:
            raise
        except Exception:
            log.exception("the local server crashed")
            self.refuse(InternalError())

    def _generic_handle(self) -> None:
        """Answer a request whose head has been read: the path first, its method, then the body."""
        if self._take_over is not None and self._take_over(self):
            return
        event = self._event()
        about = event["requestContext"]
        routes = self.app.routes.get(about["resourcePath"], {})
        entry = routes.get(self.command)
        if entry is not None and not entry.view_name.startswith(chalice_app.REFUSING):
            event["body"] = self.read_body() or None
        elif self.command == "OPTIONS" and any(entry.cors for entry in routes.values()):
            headers, target = event["headers"], about["path"]
            reply = self.local_gateway.handle_request("OPTIONS", target, headers, None)
            self.respond(
                handle(
                    HttpRequest("OPTIONS", about["resourcePath"], {}),
                    lambda _: HttpResponse(200, b"", reply["headers"]),
                )
            )
            return
        context = LambdaContext("local", memory_size=1024, max_runtime_ms=29_000)
        reply = self._handle_binary(self.app(event, context))
        body = reply["body"] or b""
        self._send(
            reply["statusCode"],
            {**reply["headers"], **reply["multiValueHeaders"]},
            body if isinstance(body, bytes) else body.encode(),
        )

    def _event(self) -> dict[str, Any]:
        """Return what Lambda would get, without the body.

        As on API Gateway, a trailing slash is ignored, and an empty segment matches nothing.
        """
        path, mark, query = _ORIGIN.sub("", self.path, count=1).partition("?")
        path = quote(path.encode("latin-1"), safe=_IN_PATH) or "/"
        query = quote(query.encode("latin-1"), safe=_IN_QUERY)
        if path.startswith("/") and "//" not in path:
            headers = {name.lower(): self.header(name) for name in self.headers}
            with suppress(ValueError):  # no such path
                event = self.local_gateway.event_converter.create_lambda_event(
                    self.command, path + mark + query, headers
                )
                event["requestContext"]["identity"]["sourceIp"] = self.client_address[0]
                return event
        return {"requestContext": {"resourcePath": "", "httpMethod": self.command}}

    def header(self, name: str) -> str:
        """Return a header, its repetitions joined (RFC 9110, 5.3), or an empty text."""
        return ", ".join(self.headers.get_all(name, []))

    def _listed(self, name: str) -> set[str]:
        return {part.strip().lower() for part in self.header(name).split(",")}

    def _read_head(self) -> bool:
        """Read the request line and the headers; false if the client has closed the connection.

        Raises:
            AppError: they are malformed or too large, or the client stalls.
        """
        for _ in range(MAX_BLANK_LINES):
            self.connection.settimeout(KEEP_ALIVE_SECONDS)
            first = self.rfile.peek(1)[:1]
            self.connection.settimeout(self.timeout)
            if not first:
                return False
            if first not in b"\r\n" and not re.match(_TOKEN, first):
                # A browser that tries https:// would wait for more, and so would we.
                raise ValidationError("This is not HTTP. Use http://, without TLS.")
            line = self._line(MAX_LINE_BYTES)
            if line not in _BLANK:
                break
        if len(line) > MAX_LINE_BYTES:
            msg = f"The request line is over {MAX_LINE_BYTES:,} bytes. Shorten the URL."
            raise UriTooLongError(msg)
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            msg = "The request line is malformed. Send, for example: GET /api/health HTTP/1.1"
            raise ValidationError(msg)
        if match[3] != b"1":
            raise ValidationError("Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        self.command, self.path = match[1].decode(), match[2].decode("latin-1")
        self.request_version = "HTTP/1.0" if match[4] == b"0" else "HTTP/1.1"
        self._read_headers()
        self._check_headers()
        return True

    def _read_headers(self) -> None:
        size = 0
        while (line := self._line(MAX_HEADER_BYTES)) not in _BLANK:
            size += len(line)
            if size > MAX_HEADER_BYTES or len(self.headers) == MAX_HEADERS:
                msg = (
                    f"The headers are too large: {MAX_HEADERS} lines and {MAX_HEADER_BYTES:,} "
                    "bytes are the limits. Send fewer or shorter ones."
                )
                raise HeadersTooLargeError(msg)
            match = _HEADER_LINE.fullmatch(line)
            if match is None:  # The line is not shown: it may well be the Authorization.
                msg = (
                    f"Header line {len(self.headers) + 1} is malformed. Send Name: value, without "
                    "control characters and without continuing it on another line."
                )
                raise ValidationError(msg)
            self.headers[match[1].decode()] = match[2].decode("latin-1").strip(" \t")

    def _check_headers(self) -> None:
        """Settle where the request ends and whether the connection stays (RFC 9112, 3.2, 6, 9)."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) > 1 or (not hosts and self.request_version == "HTTP/1.1"):
            raise ValidationError("A request must have one Host header.")
        lengths = self.headers.get_all("Content-Length", [])
        chunked = "Transfer-Encoding" in self.headers
        if lengths and (chunked or len(lengths) > 1 or not re.fullmatch("[0-9]+", lengths[0])):
            msg = (
                "The Content-Length header is invalid. Send it once, as the body's number of "
                "bytes, and no Transfer-Encoding beside it."
            )
            raise ValidationError(msg)
        if lengths:
            # int() refuses thousands of digits; any length this long is far over the limit.
            self._length = int(lengths[0]) if len(lengths[0]) <= _LONGEST_NUMBER else 10**18
        self._unread = chunked or self._length > 0
        wishes = self._listed("Connection")
        self.close_connection = "close" in wishes or (
            self.request_version == "HTTP/1.0" and "keep-alive" not in wishes
        )

    def _line(self, limit: int) -> bytes:
        try:
            line: bytes = self.rfile.readline(limit + 1)
        except TimeoutError:
            raise _stalled() from None
        return line

    def read_body(self, limit: int = MAX_BODY_BYTES) -> bytes:
        """Return the request's body, of at most ``limit`` bytes.

        Raises:
            LengthRequiredError: it has no length; reading on would mean guessing its end.
            PayloadTooLargeError: it is over the limit; not a byte of it was read.
            RequestTimeoutError: the client stalls.
            ValidationError: the client closed the connection before the end.
        """
        if "Transfer-Encoding" in self.headers:
            msg = "A body in chunks is not taken. Send it whole, with a Content-Length header."
            raise LengthRequiredError(msg)
        if self._length > limit:
            raise body_too_large(self._length, limit)
        if self._length and "100-continue" in self._listed("Expect"):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body: bytes = self.rfile.read(self._length)
        except TimeoutError:
            raise _stalled() from None
        if len(body) < self._length:
            msg = (
                f"The body ended after {len(body):,} bytes; Content-Length says {self._length:,}. "
                "Send all of it."
            )
            raise ValidationError(msg)
        self._unread = False
        return body

    def refuse(self, error: AppError) -> None:
        """Answer with a failure and close: where the next request would begin is unknown."""
        self.close_connection = True
        request = HttpRequest(self.command or "-", "refused", {})
        self.respond(handle(request, lambda r: failure(error, r.request_id)))

    def respond(self, response: HttpResponse) -> None:
        """Send a response."""
        self._send(response.status, response.headers, response.whole_body())

    def _send(self, status: int, headers: Mapping[str, str | Sequence[str]], body: bytes) -> None:
        """Send a response in one write; the connection closes if the body was not read."""
        fields: list[tuple[str, str]] = [("Date", self.date_time_string())]
        for name, value in headers.items():
            fields += [(name, one) for one in ([value] if isinstance(value, str) else value)]
        if status not in _NO_BODY:
            fields.append(("Content-Length", str(len(body))))
        self.close_connection = self.close_connection or self._unread
        if self.close_connection:
            fields.append(("Connection", "close"))
        elif self.request_version == "HTTP/1.0":
            fields.append(("Connection", "keep-alive"))
        phrase = self.responses.get(status, ("",))[0]
        head = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in fields)]
        sent = "".join(f"{line}\r\n" for line in head).encode("latin-1") + b"\r\n"
        self.wfile.write(sent if self.command == "HEAD" else sent + body)


def _stalled() -> RequestTimeoutError:
    return RequestTimeoutError("The rest of the request did not come. Send it again, whole.")


TakeOver = Callable[[RequestHandler], bool]
"""Answers a request by itself and returns true, or false to leave it to the ``App``.

It runs when the head has been read. It has ``read_body``, ``respond`` and ``refuse``; to stream, it
writes to ``wfile``, and from then on must not raise: a second answer would follow the first.
"""


class HttpServer(ThreadedHTTPServer):
    """Takes bursts of connections, and logs as all of the service does."""

    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002  the base class's
        """Log a crash of a connection's thread."""
        log.error("a connection of the local server crashed", exc_info=True)  # noqa: LOG014  called while handling it


class Server(LocalDevServer):
    """The server that ``chalice local`` runs."""

    def __init__(
        self,
        app_object: Chalice,
        config: Config,
        host: str,
        port: int,
        *,
        handle_early: TakeOver | None = None,
    ) -> None:
        handler = partial(RequestHandler, handle_early=handle_early)
        super().__init__(app_object, config, host, port, handler, HttpServer)

    def serve_forever(self) -> None:
        """Answer requests, and run due work in the background, as a schedule does on AWS."""
        schedules.run_in_background()
        super().serve_forever()


def install(*, handle_early: TakeOver | None = None) -> None:
    """Have ``chalice local`` run our server; Chalice's other commands never make one."""
    server = partial(Server, handle_early=handle_early)
    chalice.local.LocalDevServer = server  # type: ignore[assignment,misc]
