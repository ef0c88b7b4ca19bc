"""An HTTP client that repeats calls until a response decides them, and at times hangs up before."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from threading import Lock
from typing import Any, NamedTuple

from infra.local.stack import HOST

ATTEMPTS = 12
SECONDS = 40
PAUSE_SECONDS = 0.3
NO_ANSWER = 599
"""Status of a request whose connection ended before its response."""
UNANSWERED = frozenset({"idempotency_in_progress", "in_progress", "rate_limited"})
"""Codes of refusals after which the same call may succeed."""


class Answer(NamedTuple):
    """Status and ``data`` of a response."""

    status: int
    data: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.status < 300  # noqa: PLR2004  the status classes of HTTP

    @property
    def code(self) -> str:
        """The code of an error, or ""."""
        return str(self.data.get("code", ""))

    @property
    def decided(self) -> bool:
        """Whether the response shows the outcome of the call."""
        return self.status < 500 and self.code not in UNANSWERED  # noqa: PLR2004  as above


class Tally:
    """Counts responses, for all clients."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.faces: Counter[str] = Counter()
        self._lock = Lock()

    def count(self, kind: str) -> None:
        """Count ``request``, ``error`` (a 5xx or none), ``refusal`` (a 4xx) or ``left``."""
        with self._lock:
            self.kinds[kind] += 1

    def answered(self, status: int, code: str) -> None:
        """Count a response."""
        self.count("request")
        self.count_refusal(status, code)

    def count_refusal(self, status: int, code: str) -> None:
        """Count a response as an error or a refusal, if it is one."""
        label = code if status == NO_ANSWER else f"{status} {code}"
        if status >= 500:  # noqa: PLR2004  as above
            self.count("error")
        elif status >= 400:  # noqa: PLR2004  as above
            self.count("refusal")
        if status >= 400:  # noqa: PLR2004  as above
            with self._lock:
                self.codes[label] += 1

    def face(self, name: str) -> None:
        """Count a piece of work, by the face of the service that it uses."""
        with self._lock:
            self.faces[name] += 1


class Client:
    """A caller with a key, on one kept-alive connection."""

    def __init__(self, port: int, key: str, tally: Tally) -> None:
        self._port, self._key, self._tally = port, key, tally
        self._connection = HTTPConnection(HOST, port, timeout=SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def once(
        self,
        method: str,
        *,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return its response, or ``NO_ANSWER``."""
        try:
            self._send(self._connection, method, path=path, body=body, headers=headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            # A failed connection cannot be used again. ``http.client`` opens a new one for the
            # next request.
            self._tally.answered(NO_ANSWER, f"no answer ({type(error).__name__})")
            return Answer(NO_ANSWER, {})
        document = json.loads(content) if content.startswith(b"{") else {}
        data = document.get("data", document)
        self._tally.answered(answer.status, data.get("code", ""))
        return Answer(answer.status, data)

    def leave(self, method: str, *, path: str, body: object, headers: Mapping[str, str]) -> None:
        """Send a request and hang up before its response."""
        connection = HTTPConnection(HOST, self._port, timeout=SECONDS)
        with suppress(OSError):
            self._send(connection, method, path=path, body=body, headers=headers)
        connection.close()
        self._tally.count("left")

    def settle(self, method: str, *, path: str, body: object, key: str, leaves: bool) -> Answer:
        """Repeat a write with one idempotency key until it is decided.

        With ``leaves``, the client first hangs up on the same call. The last response is returned
        if no attempt was decided.
        """
        headers = {"Idempotency-Key": key}
        if leaves:
            self.leave(method, path=path, body=body, headers=headers)
        return self._repeat(lambda: self.once(method, path=path, body=body, headers=headers))

    def read(self, path: str) -> Answer:
        """Repeat a read until a response decides."""
        return self._repeat(lambda: self.once("GET", path=path))

    def tool(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Repeat a call of a tool until it is decided, with an ``idempotencyKey`` for a write."""
        params = {"name": name, "arguments": arguments}
        rpc_request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self._repeat(
            lambda: self._unwrap_tool_answer(self.once("POST", path="/api/mcp", body=rpc_request))
        )

    def _unwrap_tool_answer(self, answer: Answer) -> Answer:
        """Return the result of a tool as a response of the REST API would be."""
        if not answer.ok or "result" not in answer.data:
            return answer
        result = json.loads(answer.data["result"]["content"][0]["text"])
        tool_answer = Answer(result.get("httpStatus", 200), result.get("data", result))
        self._tally.count_refusal(tool_answer.status, tool_answer.code)
        return tool_answer

    @staticmethod
    def _repeat(attempt: Any) -> Answer:  # noqa: ANN401  a function
        for number in range(ATTEMPTS):
            answer: Answer = attempt()
            if answer.decided:
                break
            time.sleep(PAUSE_SECONDS * min(number + 1, 5))
        return answer

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        *,
        path: str,
        body: object,
        headers: Mapping[str, str] | None,
    ) -> None:
        content = None if body is None else json.dumps(body)
        fixed = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        connection.request(method, path, content, {**fixed, **(headers or {})})
