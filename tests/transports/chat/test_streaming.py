"""``chalice local`` sends a stream as it is made, which API Gateway cannot do."""

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from threading import Event

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.transports import chalice_app
from chalicelib.transports.http import HttpRequest, HttpResponse
from infra.local.devserver import LocalRoute, chat
from tests.support.patience import PATIENCE, stretched
from tests.transports.conftest import Connection, LocalServer, Records, serving

STREAM = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
Pieces = Callable[[], Iterator[bytes]]
Stream = Callable[[Pieces], AbstractContextManager[LocalServer]]


@pytest.fixture
def serve_stream() -> Stream:
    """Serve a stream."""
    app = chalice_app.App(app_name="streams", configure_logs=False)

    def stream(pieces: Pieces) -> AbstractContextManager[LocalServer]:
        def handler(_: HttpRequest) -> HttpResponse:
            return HttpResponse(200, pieces(), {"Content-Type": "text/event-stream"})

        return serving(app, LocalRoute("/stream", handler))

    return stream


def head(connection: Connection) -> bytes:
    """Read the status line and the headers."""
    return b"".join(iter(connection.line, b"\r\n"))


def test_each_piece_arrives_before_the_next_is_made(serve_stream: Stream) -> None:
    seen = [Event(), Event()]

    def pieces() -> Iterator[bytes]:
        for number, event in enumerate(seen):
            yield b"data: %d\n\n" % number
            yield b""
            assert event.wait(PATIENCE)

    with serve_stream(pieces) as server, server.connect() as connection:
        connection.send(STREAM)
        first = head(connection)
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Transfer-Encoding: chunked\r\n" in first
        for number, event in enumerate(seen):
            assert connection.chunk() == b"data: %d\n\n" % number
            event.set()
        assert connection.chunk() == b""
        connection.send(STREAM.replace(b"/stream", b"/none"))
        assert connection.reply().status == 404


def test_an_http_1_0_client_gets_an_unframed_stream(serve_stream: Stream) -> None:
    with serve_stream(lambda: iter([b"one ", b"two"])) as server, server.connect() as connection:
        connection.send(STREAM.replace(b"1.1", b"1.0"))
        assert b"Transfer-Encoding" not in head(connection)
        assert connection.stream.read() == b"one two"


def endless(ended: Event) -> Iterator[bytes]:
    """Send data until the client disconnects."""
    try:
        while not ended.wait(0.001):
            yield b": ping\n\n"
    finally:
        ended.set()


@pytest.mark.parametrize("abruptly", [False, True])
def test_a_stream_ends_when_the_client_leaves(
    abruptly: bool, serve_stream: Stream, log_records: Records
) -> None:
    ended = Event()
    with serve_stream(partial(endless, ended)) as server:
        with server.connect() as connection:
            connection.send(STREAM)
            head(connection)
            if abruptly:
                linger = struct.pack("ii", 1, 0)
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        assert ended.wait(PATIENCE)
    assert log_records.errors == []


def test_a_stream_ends_when_the_server_stops(serve_stream: Stream) -> None:
    ended = Event()
    with serve_stream(partial(endless, ended)) as server, server.connect() as connection:
        connection.send(STREAM)
        head(connection)
        server.server.stop()
        assert ended.wait(PATIENCE)


def test_head_returns_the_headers_and_starts_no_stream(serve_stream: Stream) -> None:
    produced = []

    def pieces() -> Iterator[bytes]:
        produced.append("a piece")
        yield b"a"

    with serve_stream(pieces) as server, server.connect() as connection:
        connection.send(STREAM.replace(b"GET", b"HEAD"))
        assert b"text/event-stream" in head(connection)
        assert connection.has_ended()
    assert produced == []


@pytest.mark.parametrize("error", [RuntimeError("hush"), NotFoundError("hush")])
def test_a_stream_that_breaks_is_cut_off_without_an_end_marker(
    error: Exception, serve_stream: Stream, log_records: Records
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a"
        raise error

    with serve_stream(pieces) as server, server.connect() as connection:
        connection.send(STREAM)
        head(connection)
        assert connection.chunk() == b"a"
        assert connection.has_ended()
    assert len(log_records.errors) == 1


@pytest.fixture
def chat_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """Serve the chat's path, with a handler that the request controls."""
    monkeypatch.setenv("STREAM_HANDLER", "tests.fakes.streaming_handlers:handle")
    app = chalice_app.App(app_name="chat", configure_logs=False)
    with serving(app, *chat.ROUTES) as server:
        yield server


def request(method: bytes = b"POST", body: bytes = b"", length: int | None = None) -> bytes:
    path = b"/api/agents/public/chat-stream"
    lines = [b"%b %b HTTP/1.1" % (method, path), b"Host: x", b"Origin: https://shop.example"]
    lines += [b"Content-Type: application/json", b"Content-Length: %d" % (length or len(body))]
    return b"\r\n".join([*lines, b"", body])


class TestChat:
    def test_the_chat_streams_to_pages_of_any_origin(self, chat_server: LocalServer) -> None:
        def attempt(every: float) -> list[bool]:
            with chat_server.connect() as connection:
                connection.send(request(body=b'{"pieces": 3, "every": %f}' % every))
                headers = head(connection)
                assert b"Content-Type: text/event-stream; charset=utf-8\r\n" in headers
                assert b"Access-Control-Allow-Origin: *\r\n" in headers
                assert b"Content-Length" not in headers
                assert json.loads(connection.chunk().removeprefix(b"data: "))["ip"] == "127.0.0.1"
                received_at, in_time = 0.0, []
                for _ in range(3):
                    created_at = json.loads(connection.chunk().removeprefix(b"data: "))["at"]
                    in_time.append(
                        received_at < created_at
                    )  # The previous piece has arrived by then.
                    received_at = time.monotonic()
            return in_time

        stretched(attempt, 0.2, all)
