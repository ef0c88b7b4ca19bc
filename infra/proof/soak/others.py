"""Fake external services, which are the model's provider and the webhook's receiver.

Both run in the process of the load, on one port.
"""

import json
import socket
import time
from collections import Counter
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from infra.local.background_server import serving
from infra.local.stack import HOST
from infra.proof.soak.dice import dice

MODEL = "soak-model"
HOOK = "/hook"
WORDS = (5, 60)
"""Fewest and most words of an answer, each a token."""
WORD_SECONDS = 0.02
INPUT_TOKENS = 40
"""Reported input. It is less than the service estimates, so that the charge is never cut."""
_STATUS = {"throttled": 429, "failing": 500}


class Others:
    """Decides which requests fail, and collects the events that the receiver was sent."""

    def __init__(self) -> None:
        self.share = 0.0
        self.made: Counter[str] = Counter()
        self.model_requests = 0
        self.events: Counter[tuple[str, str]] = Counter()
        """Deliveries by type of event and id of its record."""
        self._dice = dice("others")
        self._lock = Lock()
        self._server = ThreadingHTTPServer((HOST, 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://{HOST}:{self._server.server_address[1]}"

    def running(self) -> AbstractContextManager[None]:
        """Return a context manager that serves during its block."""
        return serving(self._server)

    def answer_of_model(self) -> tuple[str | None, int]:
        """Return the fault of the next answer, or None, and its number of words."""
        with self._lock:
            self.model_requests += 1
            fault = None
            if self._dice.random() < self.share:
                fault = self._dice.choice(["throttled", "failing", "unreachable", "cut off"])
                self.made[fault] += 1
            return fault, self._dice.randint(*WORDS)

    def receive(self, event: dict[str, Any]) -> int:
        """Note an event and return the response's status.

        An event may arrive although its response is a failure.
        """
        with self._lock:
            self.events[event["type"], event["data"]["id"]] += 1
            fails = self._dice.random() < self.share
            self.made["webhook fails"] += fails
            return 500 if fails else 204


def _handler(others: Others) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with suppress(OSError):  # The service may cancel an answer.
                if self.path == HOOK:
                    self._head(others.receive(body))
                else:
                    self._answer(*others.answer_of_model())

        def _answer(self, fault: str | None, words: int) -> None:
            if fault == "unreachable":
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._head(_STATUS.get(fault or "", 200))
            if fault in _STATUS:
                return
            for number in range(words):
                if fault == "cut off" and number > words // 2:
                    return
                self._event({"choices": [{"delta": {"content": f"word{number} "}}]})
                time.sleep(WORD_SECONDS)
            self._event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": words}
            self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _head(self, status: int) -> None:
            self.send_response_only(status)
            self.send_header("Connection", "close")
            self.end_headers()

        def _event(self, data: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
            self.wfile.flush()

    return Handler
