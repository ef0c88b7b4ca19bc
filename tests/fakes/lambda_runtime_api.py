"""A server that plays Lambda's side of the Runtime API for a real runtime process.

It is as strict as Lambda (Lambda developer guide, Runtime API and Custom runtimes: response
streaming). Each invocation gets one response of the right type, in chunks, over a connection that
serves nothing else. Violations are collected in ``faults``.
"""

import base64
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from tests.support.patience import PATIENCE

BASE = "/2018-06-01/runtime"
PRELUDE_TYPE = "application/vnd.awslambda.http-integration-response"
TRAILERS = {"lambda-runtime-function-error-type", "lambda-runtime-function-error-body"}


@dataclass
class Invocation:
    """An event, and the function's response."""

    event: dict[str, Any]
    id: str = field(default_factory=lambda: str(uuid4()))
    chunks: "queue.Queue[tuple[float, bytes] | None]" = field(default_factory=queue.Queue)
    arrived: list[tuple[float, bytes]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    trailers: dict[str, str] = field(default_factory=dict)
    begun: float = 0.0
    hang_up_after: int | None = None
    """Number of chunks after which Lambda stops reading."""
    traced: bool = True
    """Whether Lambda sends the id of a trace."""
    _pending: bytes = b""
    prelude: dict[str, Any] = field(default_factory=dict)

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives, after the prelude."""
        while (chunk := self.chunks.get(timeout=PATIENCE)) is not None:
            self.arrived.append(chunk)
            if self.prelude:
                yield chunk[1]
                continue
            self._pending += chunk[1]
            head, mark, remainder = self._pending.partition(bytes(8))
            if mark:
                self.prelude = json.loads(head)
                if remainder:
                    yield remainder

    def body(self) -> bytes:
        """Wait for the whole body."""
        return b"".join(self.pieces())

    @property
    def broken_off(self) -> dict[str, Any] | None:
        """The error in the trailers, if there is one."""
        error_body = self.trailers.get("lambda-runtime-function-error-body")
        return json.loads(base64.b64decode(error_body, validate=True)) if error_body else None


class LambdaRuntimeApi(ThreadingHTTPServer):
    """The server of the Runtime API."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.waiting: queue.Queue[Invocation | None] = queue.Queue()
        self.running: dict[str, Invocation] = {}
        self.init_error: dict[str, Any] | None = None
        self.ready = threading.Event()
        self.faults: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log broken connections. Tests kill functions while they respond."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def invoke(self, event: dict[str, Any], **options: Any) -> Invocation:
        """Send an event, as a call of the function's URL does."""
        invocation = Invocation(event, **options)
        self.running[invocation.id] = invocation
        invocation.begun = time.monotonic()
        self.waiting.put(invocation)
        return invocation


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LambdaRuntimeApi
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        assert self.path == f"{BASE}/invocation/next", self.path
        self.server.ready.set()
        invocation = self.server.waiting.get()
        if invocation is None:
            self.close_connection = True
            return
        body = json.dumps(invocation.event).encode()
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", invocation.id)
        self.send_header("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1000) + 360_000))
        if invocation.traced:
            self.send_header("Lambda-Runtime-Trace-Id", f"Root=1-{invocation.id}")
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:x:1:function:chat")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        *_, subject, kind = self.path.removeprefix(BASE).split("/")
        if kind == "error":
            error_fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert error_fields["errorType"] == self.headers["Lambda-Runtime-Function-Error-Type"]
            if subject == "init":
                self.server.init_error = error_fields
                self.server.ready.set()
            else:
                invocation = self.server.running.pop(subject)
                invocation.error = error_fields
                invocation.chunks.put(None)
        else:
            self._take(self.server.running.pop(subject))
        self.send_response(202)
        self.send_header("Content-Length", "16")
        self.end_headers()
        self.wfile.write(b'{"status": "OK"}')

    def _take(self, invocation: Invocation) -> None:
        expected = {
            "content-type": PRELUDE_TYPE,
            "lambda-runtime-function-response-mode": "streaming",
            "transfer-encoding": "chunked",
        }
        for name, value in expected.items():
            if self.headers.get(name) != value:
                self.server.faults.append(f"{name} is {self.headers.get(name)}")
        announced = {
            trailer.strip().lower() for trailer in self.headers.get("trailer", "").split(",")
        }
        if announced != TRAILERS:
            self.server.faults.append(f"the trailers announced are {announced}")
        number = 0
        while size := int(self.rfile.readline(), 16):
            data = self.rfile.read(size)
            assert self.rfile.readline() == b"\r\n"
            invocation.chunks.put((time.monotonic(), data))
            number += 1
            if number == invocation.hang_up_after:
                self.close_connection = True
                invocation.chunks.put(None)
                raise ConnectionAbortedError
        while (line := self.rfile.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            invocation.trailers[name.lower()] = value
        invocation.chunks.put(None)

    def finish(self) -> None:
        super().finish()
        self.connection.close()


@dataclass
class Function:
    """A running function: its Lambda API, and its process."""

    api: LambdaRuntimeApi
    process: subprocess.Popen[bytes]
    log_file: IO[bytes]

    def log(self) -> list[dict[str, Any]]:
        """Return the lines that the process wrote to stderr so far. Each must be a JSON object."""
        self.log_file.seek(0)
        lines = [json.loads(line) for line in self.log_file.read().decode().splitlines()]
        assert all(isinstance(line, dict) for line in lines)
        return lines

    def invoke(self, event: dict[str, Any], **options: Any) -> Invocation:
        assert self.api.ready.wait(PATIENCE), "the function did not begin"
        return self.api.invoke(event, **options)


@contextmanager
def function(
    bootstrap: Path,
    environment: Mapping[str, str],
    *,
    python: str = sys.executable,
    task: Path | None = None,
) -> Iterator[Function]:
    """Run a function with its wrapper as Lambda does, in a folder outside the checkout."""
    api = LambdaRuntimeApi()
    serving = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    log_file = tempfile.TemporaryFile()  # noqa: SIM115  closed below
    process = subprocess.Popen(
        [str(bootstrap), python, "/var/runtime/bootstrap.py"],
        cwd="/",
        env={
            "PATH": os.environ["PATH"],
            "AWS_LAMBDA_RUNTIME_API": api.address,
            "AWS_LAMBDA_FUNCTION_NAME": "workspace-api-dev-chat-stream",
            "LAMBDA_TASK_ROOT": str(task or bootstrap.parent),
            "LAMBDA_RUNTIME_DIR": "/var/runtime",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
        stderr=log_file,
    )
    try:
        yield Function(api, process, log_file)
    finally:
        process.kill()
        process.wait()
        log_file.close()
        api.waiting.put(None)
        api.shutdown()
        api.server_close()
        serving.join()


def event(
    body: str | bytes = "{}",
    method: str = "POST",
    path: str = "/api/agents/public/chat-stream",
    headers: Mapping[str, str] | None = None,
    query: str = "",
) -> dict[str, Any]:
    """Return an event of a function URL (payload format 2.0).

    Bytes are base64-encoded; text is not.
    """
    encoded = isinstance(body, bytes)
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "content-type": "application/json",
            "host": "abc.lambda-url.eu-central-1.on.aws",
            "x-forwarded-for": "203.0.113.9",
            **(headers or {}),
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abc",
            "domainName": "abc.lambda-url.eu-central-1.on.aws",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.9",
                "userAgent": "curl/8",
            },
            "requestId": f"r-{uuid4()}",
            "routeKey": "$default",
            "stage": "$default",
            "time": "22/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1795348800000,
        },
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": encoded,
    }
