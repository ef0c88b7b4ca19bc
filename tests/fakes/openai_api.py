"""A fake chat completions server on loopback, whose responses a test chooses."""

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from tests.support.patience import PATIENCE


@dataclass
class ReceivedRequest:
    """A received request."""

    target: str
    headers: dict[str, str]
    body: dict[str, Any]


class Wire:
    """One connection, from the server's side."""

    def __init__(self, connection: socket.socket, over: threading.Event) -> None:
        self._connection = connection
        self._over = over
        self.kept = False

    @property
    def over(self) -> bool:
        """Whether the server is about to end."""
        return self._over.is_set()

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def head(
        self, status: int = 200, kind: str = "text/event-stream", *extra: str, keep: bool = False
    ) -> None:
        self.kept = keep
        end = [] if keep else ["Connection: close"]
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", *extra, *end]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def respond(self, status: int, body: bytes, kind: str, *extra: str) -> None:
        self.head(status, kind, f"Content-Length: {len(body)}", *extra)
        self.send(body)

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self) -> None:
        """Reset the connection."""
        option = struct.pack("ii", 1, 0)
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        self._connection.close()

    def wait_for_hang_up(self, seconds: float = PATIENCE) -> bool:
        """Send nothing. Return whether the client disconnected."""
        self._connection.settimeout(0.02)
        for _ in range(int(seconds / 0.02)):
            if self._over.is_set():
                return False
            try:
                return self._connection.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                return True
        return False


Answering = Callable[[Wire, ReceivedRequest], None]


@dataclass
class OpenAiApi:
    """The server. ``answers`` are given in turn, and the last one is repeated."""

    port: int
    answers: list[Answering] = field(default_factory=list)
    asked: list[ReceivedRequest] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    connections: int = 0
    tls: ssl.SSLContext | None = None
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/v1"

    def serve(self, accepted: socket.socket) -> None:
        accepted.settimeout(PATIENCE)
        self.connections += 1
        with suppress(OSError), accepted, self._secured(accepted) as connection:
            self._open.append(connection)
            while self._answer(connection):
                pass
            connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End all responses, and kept connections."""
        self.over.set()
        for connection in self._open:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _secured(self, accepted: socket.socket) -> socket.socket:
        return self.tls.wrap_socket(accepted, server_side=True) if self.tls else accepted

    def _answer(self, connection: socket.socket) -> bool:
        """Respond to one request. Return whether another may follow."""
        request = _request(connection)
        number = len(self.asked)
        self.asked.append(request)
        answers = chain(self.answers, repeat(self.answers[-1]))
        answer = next(scripted_answer for at, scripted_answer in enumerate(answers) if at == number)
        wire = Wire(connection, self.over)
        try:
            answer(wire, request)
        except (BrokenPipeError, ConnectionResetError):
            self.hung_up.set()
            return False
        return wire.kept


def _request(connection: socket.socket) -> ReceivedRequest:
    with connection.makefile("rb") as stream:
        first = stream.readline().decode().split()
        if not first:
            raise ConnectionAbortedError  # A kept connection that the client closed.
        target = first[1]
        headers = {}
        while (line := stream.readline().decode().strip()) != "":
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return ReceivedRequest(
            target, headers, json.loads(stream.read(int(headers["content-length"])))
        )


@contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[OpenAiApi]:
    """Run the server on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api = OpenAiApi(listener.getsockname()[1], tls=tls)
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                thread = threading.Thread(target=api.serve, args=(connection,), daemon=True)
                threads.append(thread)
                thread.start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield api
        finally:
            api.close()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in [accepting, *threads]:
                thread.join(PATIENCE)


# Responses.


def event(value: Any, end: str = "\n\n") -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {text}{end}".encode()


def piece(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "choices": [],
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    }


DONE = "[DONE]"


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> Answering:
    """Respond with 200 and these bytes, each part in its own chunk."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        wire.head(200, "text/event-stream", "Transfer-Encoding: chunked")
        for part in parts:
            wire.chunk(part)
        wire.send(end)

    return answer


def saying(*texts: str, tokens: tuple[int, int] = (11, 7)) -> Answering:
    """Respond as OpenAI does: the role, the deltas, the finish reason, the usage, the end."""
    role = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": None}
    events = [role, *map(piece, texts), piece(None, "stop"), usage(*tokens), DONE]
    return chunked(*map(event, events))


def plain(*parts: bytes) -> Answering:
    """Respond with 200 and these bytes as in HTTP/1.0. The end of the connection ends the body."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        wire.head()
        for part in parts:
            wire.send(part)

    return answer


def cut(*parts: bytes) -> Answering:
    """Send these parts, and break the connection in the middle of a chunk."""
    return chunked(*parts, end=b"ff\r\ndata: {")


def refusing(status: int, body: bytes, *headers: str) -> Answering:
    return lambda wire, _: wire.respond(status, body, "application/json", *headers)


def json_document(value: Any) -> Answering:
    """Respond with one JSON document, like a server that does not stream."""
    return lambda wire, _: wire.respond(200, json.dumps(value).encode(), "application/json")


def silent(wire: Wire, _: ReceivedRequest) -> None:
    """Send nothing at all."""
    wire.wait_for_hang_up()


def silent_after(*parts: bytes) -> Answering:
    """Send these parts, then nothing."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        chunked(*parts, end=b"")(wire, request)
        if wire.wait_for_hang_up():
            raise BrokenPipeError

    return answer


def dripping(part: bytes, every: float) -> Answering:
    """Send the same part repeatedly, with short pauses."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        chunked(end=b"")(wire, request)
        while not wire.wait_for_hang_up(every) and not wire.over:
            wire.chunk(part)
        raise BrokenPipeError

    return answer


def endless(part: bytes) -> Answering:
    """Send the same part repeatedly as fast as possible."""

    def answer(wire: Wire, request: ReceivedRequest) -> None:
        chunked(end=b"")(wire, request)
        while not wire.over:
            wire.chunk(part)

    return answer
