"""A fake chat server for browser tests. A test defines each answer byte by byte."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from chalicelib.transports import routes, widget
from chalicelib.transports.http import HttpRequest
from tests.support.patience import PATIENCE

STREAM = "/api/agents/public/chat-stream"
EVENTS = "/api/public/widget-event"
AGENTS = "/api/public/agents/"
REPLIES = "/api/agents/public/replies"
CONTACT = "/api/agents/public/contact"
ACTIONS = "/api/agents/public/actions/"
CANCEL = "/api/public/bookings/cancel"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CUT = "cut"
"""The connection breaks, as opposed to a stream that ends."""

Step = bytes | Event | str
"""A step of an answer: bytes to send, an event to wait for, or ``CUT``."""


def event(**fields: object) -> bytes:
    """Return an event in the service's format."""
    return f"data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


def start(session: str = "s-1") -> bytes:
    return event(type="start", sessionId=session)


def chunk(text: str) -> bytes:
    return event(type="chunk", content=text)


DONE = event(type="done", usage={"inputTokens": 3, "outputTokens": 5, "totalTokens": 8})


def saying(*texts: str, session: str = "s-1") -> list[Step]:
    """Return a complete answer."""
    return [start(session), *map(chunk, texts), DONE]


@dataclass(frozen=True)
class Refusal:
    """An answer that is not a stream."""

    status: int
    code: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """An answer to a decision on a card."""

    status: int
    data: Mapping[str, Any]


@dataclass
class Question:
    """A received request for an answer."""

    key: str
    raw: bytes
    visitor_left: Event = field(default_factory=Event)
    """Set if the browser disconnected before the end of the answer."""

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class FakeChat:
    """The server's planned answers and received requests."""

    url: str
    agents: dict[str, Any] = field(default_factory=dict)
    """Public settings by bot. A number is the status of a failure."""
    answers: deque[Sequence[Step] | Refusal] = field(default_factory=deque)
    questions: list[Question] = field(default_factory=list)
    decisions: deque["Decision | Refusal | str"] = field(default_factory=deque)
    """Answers to decisions on cards, and to cancelled bookings. ``CUT`` sends none."""
    decided: list[tuple[str, Any]] = field(default_factory=list)
    """Paths and bodies of these requests."""
    replies: list[dict[str, str]] = field(default_factory=list)
    """Replies of the business to the visitor."""
    contacts: list[Any] = field(default_factory=list)
    """Contacts that visitors left after a refusal."""
    events: list[Any] = field(default_factory=list)
    types: set[str] = field(default_factory=set)
    """The content types of received events."""
    pages: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """Pages of the server's own origin, with their headers."""

    def will(self, *answers: Sequence[Step] | Refusal) -> None:
        """Set the next answers."""
        self.answers.extend(answers)

    def will_decide(self, *answers: "Decision | Refusal | str") -> None:
        """Set the next answers to decisions."""
        self.decisions.extend(answers)

    @property
    def stages(self) -> list[str]:
        return [event["stage"] for event in self.events]


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"

    def do_OPTIONS(self) -> None:
        allowed = {
            "Access-Control-Allow-Methods": "POST",
            "Access-Control-Allow-Headers": "content-type, idempotency-key",
        }
        self._send(204, b"", allowed)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == routes.WIDGET_PATH:
            answer = widget.script(HttpRequest("GET", path, {}))
            assert isinstance(answer.body, bytes)
            self._send(200, answer.body, answer.headers)
        elif path.startswith(AGENTS):
            agent = self.server.chat.agents.get(path.removeprefix(AGENTS), 404)
            if isinstance(agent, int):
                self._refuse(Refusal(agent, "not_found"))
            else:
                self._json(200, {"status": True, "agent": agent})
        elif path in self.server.chat.pages:
            html, headers = self.server.chat.pages[path]
            self._send(200, html.encode(), {"Content-Type": "text/html", **headers})
        else:
            self._refuse(Refusal(404, "not_found"))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == EVENTS:
            self.server.chat.types.add(self.headers["Content-Type"])
            self.server.chat.events.append(json.loads(body))
            self._json(200, {"status": True})
            return
        if self.path == REPLIES:
            self._json(200, {"status": True, "replies": self.server.chat.replies})
            return
        if self.path == CONTACT:
            self.server.chat.contacts.append(json.loads(body))
            self._json(200, {"status": True, "dialogId": "0" * 26})
            return
        if self.path.startswith(ACTIONS) or self.path == CANCEL:
            self._decide(json.loads(body))
            return
        assert self.path == STREAM
        assert self.headers["Content-Type"] == "application/json"
        question = Question(self.headers["Idempotency-Key"], body)
        self.server.chat.questions.append(question)
        answer = self.server.chat.answers.popleft()
        if isinstance(answer, Refusal):
            self._refuse(answer)
        else:
            self._stream(answer, question)

    def _decide(self, body: object) -> None:
        self.server.chat.decided.append((self.path, body))
        answer = self.server.chat.decisions.popleft()
        if isinstance(answer, str):  # A browser itself repeats a request without a first byte.
            self._send(200, b"", {"Content-Length": "9"})
            self.close_connection = True
        elif isinstance(answer, Refusal):
            self._refuse(answer)
        else:
            self._json(answer.status, answer.data)

    def _stream(self, answer: Sequence[Step], question: Question) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for step in answer:
                if step == CUT:
                    self.close_connection = True
                    return
                if isinstance(step, Event):
                    self._wait(step)
                elif isinstance(step, bytes):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(step), step))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            question.visitor_left.set()
            self.close_connection = True

    def _wait(self, until: Event) -> None:
        """Send ``: ping`` while waiting, to detect whether the browser is still connected."""
        for _ in range(int(PATIENCE * 20)):
            if until.wait(0.05):
                return
            self.wfile.write(b"8\r\n: ping\n\n\r\n")

    def _refuse(self, refusal: Refusal) -> None:
        data = {"status": False, "message": "Said to programs.", "code": refusal.code}
        headers = {"Access-Control-Expose-Headers": "retry-after", **refusal.headers}
        self._json(refusal.status, data, headers)

    def _json(self, status: int, data: object, headers: Mapping[str, str] = NO_HEADERS) -> None:
        kind = {"Content-Type": "application/json"}
        self._send(status, json.dumps({"data": data}).encode(), {**kind, **headers})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        every = {"Access-Control-Allow-Origin": "*", "Content-Length": str(len(body))}
        for name, value in {**every, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    chat: FakeChat

    def handle_error(self, *_: object) -> None:
        """Do not log browsers that disconnect."""


@contextmanager
def serving_chat() -> Iterator[FakeChat]:
    """Run a server."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.chat = FakeChat(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.chat
        server.shutdown()
        thread.join()
