"""External services as real HTTP servers on loopback, which can fail in many ways."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.patience import PATIENCE

HUGE = 100 * 2**20


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request.

    Header names are in lower case. Of repeated parameters, the last one is kept.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


Misbehaviour = Callable[["_Handler"], None]


class JsonServer:
    """A fake service whose JSON responses are defined by subclasses.

    ``breaks`` replaces the response with a misbehaviour. ``requests`` are the received requests.
    The server runs in a ``with`` block and is reached at ``url``.
    """

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.sent = 0
        """Bytes that ``huge`` sent before the client disconnected."""
        self.hung_up = Event()
        self.breaks: Misbehaviour | None = None
        self.released = Event()
        """Set when the server closes, so that no delayed response outlives the server."""
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self

    def answer(self, request: ReceivedRequest) -> tuple[int, Any]:
        """Return the status and the JSON for a request."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server. Later connections are refused."""
        if not self.released.is_set():
            self.released.set()
            self._http.shutdown()
            self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    owner: JsonServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log clients that disconnect. Tests make them do so."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        owner, parts = self.server.owner, urlsplit(self.path)
        request = ReceivedRequest(
            self.command,
            parts.path,
            {name: values[-1] for name, values in parse_qs(parts.query).items()},
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(int(self.headers.get("Content-Length") or 0)),
        )
        owner.requests.append(request)
        if owner.breaks:
            with suppress(OSError):
                owner.breaks(self)
            return
        status, body = owner.answer(request)
        self.reply(status, json.dumps(body).encode())

    do_POST = do_DELETE = do_GET  # noqa: N815  as http.server calls them

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as it is called
        pass


# Misbehaviours, for ``breaks``.
def status(code: int, **headers: str) -> Misbehaviour:
    """Respond with an error status: ``status(429, Retry_After="7")``."""
    return lambda handler: handler.reply(code, b'{"detail": "no"}', **headers)


def body(raw: bytes, code: int = 200) -> Misbehaviour:
    """Respond with these bytes."""
    return lambda handler: handler.reply(code, raw)


def silent(handler: _Handler) -> None:
    """Accept the request and never respond."""
    handler.server.owner.released.wait(PATIENCE)


def drip(raw: bytes = b"HTTP/1.1 200 OK\r\n") -> Misbehaviour:
    """Send ``raw`` at one byte per hundredth of a second, so that no read times out."""

    def misbehave(handler: _Handler) -> None:
        handler.wfile.write(raw)
        while not handler.server.owner.released.wait(0.01):
            handler.wfile.write(b"x")

    return misbehave


def huge(handler: _Handler) -> None:
    """Start an array of 100 megabytes without declaring its length."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
    owner = handler.server.owner
    try:
        while owner.sent < HUGE:
            owner.sent += handler.wfile.write(b"0," * 2**15)
    finally:
        owner.hung_up.set()


def cut_off(handler: _Handler) -> None:
    """Declare a longer body than is sent, and disconnect."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"status": 1')
    handler.connection.shutdown(socket.SHUT_RDWR)


GARBAGE: list[bytes] = [
    b"",
    b"<html>It works!</html>",
    b"null",
    b"[]",
    b"17",
    b'"text"',
    b"{}",
    b"\xff\xfe\x00",
    b'{"status": 1',
    b"[" * 100_000,
    b"9" * 10_000,
]
"""Bodies that no service should return: not JSON, or JSON of a wrong type."""
