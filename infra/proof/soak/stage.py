"""Start the database, the fake services and the service under test."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server
from typing import IO, Any, NamedTuple

from chalicelib.core.settings import settings
from chalicelib.engine import connection, tables
from infra.local import dynamodb, supervisor, workarounds
from infra.local.data_dir import DataDir
from infra.local.stack import HOST, REAL_AWS, ROOT, LocalStack
from infra.proof.soak.others import Others
from infra.proof.soak.service import CONTROL

START_SECONDS = 120
ALLOCATOR = {"MALLOC_ARENA_MAX": "1"}
"""Settings of glibc. By default, it keeps freed memory separate for many threads. The memory of the
development server then grows without a leak. On Lambda, a process handles one request at a time."""
SECONDS_OF_DATABASE = 60
"""The read timeout of this process, which makes the workspaces and checks them, without faults."""
JOBS_SECONDS = 900
"""The longest time of a request that runs jobs."""


class Service(NamedTuple):
    """The running process under test."""

    port: int
    pid: int
    temporary: Path
    log: Path

    def control(self, **settings: float) -> dict[str, Any]:
        """Send a request to the soak's own route."""
        return control(self.port, **settings)

    def logged(self, level: str) -> list[dict[str, Any]]:
        """Return the records of a level in the log."""
        mark = f'"level": "{level}"'
        with self.log.open() as lines:
            return [json.loads(line) for line in lines if line.startswith("{") and mark in line]


def control(port: int, **settings: float) -> dict[str, Any]:
    """Send a request to the soak's own route at a port."""
    http = HTTPConnection(HOST, port, timeout=JOBS_SECONDS)
    try:
        http.request("POST", CONTROL, json.dumps(settings))
        state: dict[str, Any] = json.loads(http.getresponse().read())
        return state
    finally:
        http.close()


@contextmanager
def database(folder: Path, others: Others) -> Iterator[LocalStack]:
    """Run DynamoDB Local in memory, and set the environment of this process to use it."""
    with create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    stack = LocalStack(port, DataDir(folder), None)
    server = dynamodb.start(None, in_memory=True)
    try:
        for name in REAL_AWS:
            os.environ.pop(name, None)
        environment = {
            "RATE_LIMIT_SCALE": "1000000",
            "LLM_PROVIDER": "openai",
            "LLM_BASE_URL": f"{others.url}/v1",
            "LLM_API_KEY": "local",
            "PHOTO_SOURCE": "off",
            "BARCODE_SOURCES": "off",
        }
        os.environ.update(stack.environment(server.endpoint) | environment)
        settings.cache_clear()
        connection.READ_SECONDS = SECONDS_OF_DATABASE
        logging.getLogger("chalicelib").setLevel(logging.ERROR)
        tables.ensure_tables()
        workarounds.apply(in_memory=True)
        yield stack
    finally:
        server.stop()


@contextmanager
def service(stack: LocalStack) -> Iterator[Service]:
    """Run the process under test, with a temporary folder of its own."""
    temporary, log = stack.data.path / "tmp", stack.data.log
    temporary.mkdir(parents=True)
    with log.open("wb") as output:
        process = supervisor.spawn(
            str(stack.data.path),
            [sys.executable, "-m", "infra.proof.soak.service"],
            env={**os.environ, **ALLOCATOR, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
            output=output,
        )
        try:
            yield Service(stack.port, _pid(stack.port, process, output), temporary, log)
        finally:
            supervisor.stop(process)


def _pid(port: int, process: Any, output: IO[bytes]) -> int:  # noqa: ANN401  a generic class
    """Wait until the service responds, and return the id of its process.

    Raises:
        RuntimeError: it does not start.
    """
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return int(control(port)["pid"])
        except OSError:
            time.sleep(0.1)
    msg = f"The service did not start:\n{Path(output.name).read_text()[-3000:]}"
    raise RuntimeError(msg)
