"""The server of ``chalice local`` in this process, and raw connections to the server."""

import json
import logging
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from threading import Thread
from typing import Any, Self

import chalice.local
import pytest
from chalice.app import Chalice
from chalice.config import Config

import app as application
from chalicelib.core import clock, logs
from infra.local import devserver
from infra.local.devserver import LocalRoute
from infra.local.devserver.server import THREADS, Server
from tests.factories.console import Person, World
from tests.support import run_clock
from tests.support.patience import PATIENCE
from tests.support.restoring import Snapshots

CONFIG = Config.create(minimum_compression_size=1024)
"""The same settings as in ``.chalice/config.json``."""
HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
CREATE = b"POST /api/projects/create HTTP/1.1\r\nHost: x\r\n"


def _refuse(constant: str) -> None:
    pytest.fail(f"{constant} is not JSON")


@dataclass
class WireReply:
    """A response, parsed strictly: data that is not valid HTTP/1.1 fails the test."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return a header that may occur at most once."""
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        assert len(values) <= 1, (name, values)
        return values[0] if values else None

    @property
    def data(self) -> dict[str, Any]:
        """The data inside the envelope."""
        content = json.loads(self.body, parse_constant=_refuse)
        assert list(content) == ["data"]
        data: dict[str, Any] = content["data"]
        return data


class Connection:
    """A raw connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.stream = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes, or as many as the server accepts."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def end_input(self) -> None:
        """Close the sending side of the connection."""
        self.socket.shutdown(socket.SHUT_WR)

    def line(self) -> bytes:
        """Read a line."""
        return self.stream.readline()

    def reply(self, *, to: str = "GET") -> WireReply:
        """Read the response to a request with this method."""
        status = re.fullmatch(rb"HTTP/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*\r\n", start := self.line())
        assert status, start
        fields = []
        while (line := self.line()) != b"\r\n":
            name, colon, value = line.decode("ascii").partition(": ")
            assert re.fullmatch(r"[A-Za-z-]+", name), line
            assert colon, line
            assert value.endswith("\r\n"), line
            fields.append((name, value[:-2]))
        reply = WireReply(int(status[1]), fields, b"")
        length = reply.header("Content-Length")
        if reply.header("Transfer-Encoding") == "chunked":
            reply.body = b"".join(iter(self.chunk, b""))
        elif reply.status in {HTTPStatus.NOT_MODIFIED, HTTPStatus.NO_CONTENT}:
            assert length is None
        else:
            assert length is not None
            if to != "HEAD":
                reply.body = self.stream.read(int(length))
                assert len(reply.body) == int(length)
        return reply

    def chunk(self) -> bytes:
        """Read a chunk of a body. The last one is empty."""
        content = self.stream.read(int(self.line(), 16))
        assert self.line() == b"\r\n"
        return content

    def has_ended(self) -> bool:
        """Whether the server has closed the connection without sending more."""
        return self.stream.read(1) == b""


@dataclass
class LocalServer:
    """A running server, and its address."""

    server: Server

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        port: int = self.server.bind_addr[1]
        return port

    @property
    def busy(self) -> int:
        """The number of connections that have a thread."""
        busy: int = THREADS - self.server.requests.idle
        return busy

    def connect(self) -> Connection:
        """Open a connection."""
        return Connection(self.port)

    def request(self, request: bytes) -> WireReply:
        """Send a request on a new connection."""
        with self.connect() as connection:
            connection.send(request)
            return connection.reply(to=request.partition(b" ")[0].decode("latin-1"))

    def healthy(self) -> bool:
        """Whether the server responds."""
        reply = self.request(b"GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return reply.status == 200 and reply.data["status"] is True


@contextmanager
def serving(app: Chalice, *routes: LocalRoute) -> Iterator[LocalServer]:
    """Serve an app as ``chalice local`` does, without scheduled jobs in the background."""
    original_server, original_class = chalice.local.LocalDevServer, type(app)
    # Chalice replaces the class of each served app with this class, and changes its bases.
    bases = chalice.local.CustomLocalChalice.__bases__
    devserver.install(routes)
    server = chalice.local.create_local_server(app, CONFIG, "127.0.0.1", 0)
    assert isinstance(server, devserver.DevServer)
    server.server.expiration_interval = 0.02  # How soon the server notices that it has to stop.
    server.server.prepare()
    thread = Thread(target=server.server.serve, name="local-server")
    thread.start()
    try:
        yield LocalServer(server.server)
    finally:
        server.shutdown()
        thread.join()
        app.__class__ = original_class
        chalice.local.CustomLocalChalice.__bases__ = bases
        chalice.local.LocalDevServer = original_server


@pytest.fixture(scope="module")
def local_server(_server: Callable[[], None]) -> Iterator[LocalServer]:
    """The whole service, served locally."""
    with serving(application.app, *devserver.ROUTES) as server:
        yield server


@pytest.fixture
def world(database: None, snapshots: Snapshots) -> World:
    """A workspace in the console with members in each role, and another workspace."""

    def make() -> World:
        with clock.using(
            lambda: datetime(2026, 1, 1, tzinfo=UTC)
        ):  # The records are older than the time that any test sets.
            world = World.create()
        with clock.using(run_clock.now):
            return world.sign_in_all()

    world: World = snapshots.once("console", make)
    return replace(world, tokens=dict(world.tokens))


@pytest.fixture
def console_owner(world: World) -> Person:
    """The owner of the workspace in the console, signed in."""
    return world.person("boss")


class Records(logging.Handler):
    """Collects log records and their formatted lines."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[logging.LogRecord] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record)
        self.lines.append(logs.JsonFormatter().format(record))

    @property
    def errors(self) -> list[str]:
        """The lines about errors."""
        return [
            line
            for record, line in zip(self.all, self.lines, strict=True)
            if record.levelno >= logging.ERROR
        ]


@pytest.fixture
def log_records() -> Iterator[Records]:
    """The log of the service during the test, instead of standard error."""
    records = Records()
    logger = logging.getLogger("chalicelib")
    handlers_before, logger.handlers[:] = list(logger.handlers), [records]
    yield records
    logger.handlers[:] = handlers_before
