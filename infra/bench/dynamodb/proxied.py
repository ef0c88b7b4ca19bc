"""Requests to the database of nine calls, counted by a proxy between the service and the database.

``make dev`` runs the service with its demo in a separate process. The proxy counts independently,
so its numbers check ``dynamodb_usage``. It also delays each request, and so finds for how many
requests, one after the other, a caller waits.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import date, timedelta
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, groupby
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from infra.bench.dynamodb.usage import DatabaseUsage, Request
from infra.local import dynamodb
from infra.local.background_server import serving
from infra.local.data_dir import DataDir

ROOT = Path(__file__).parents[3]
HOST = "127.0.0.1"
LATENCY = 0.05
"""Seconds by which the proxy delays responses, so that requests sent side by side overlap."""
COUNTED = 2
"""Calls whose requests are counted. The first one of all is not."""
TIMED = 4
"""Calls with a delay, and as many without, whose times are compared."""
IDLE_SECONDS = 1.0
"""Seconds without a request after which no job is running."""
STOP_SECONDS = 60
READY = "Ctrl-C stops"
"""The end of the banner of ``make dev``."""
WORKAROUND = b'"BARRIER"'
"""A key that ``make dev`` reads after each transaction (``infra.local.workarounds``)."""
TITLE = [
    "### Counted by a proxy",
    "",
    "The same for nine calls to the service of `make dev` with its demo, counted by a proxy",
    "between it and DynamoDB Local. Each call was made before. Its answers are delayed, and",
    "requests that overlap in time are one wave. The chat wakes the jobs, whose 20 or so requests",
    "are counted with it. Prices of the demo depend on the staff, which takes the chat one wave.",
    f"The last column compares the fastest of {TIMED} calls with {LATENCY * 1000:.0f} ms for each",
    "request and of as many without: by how many of these delays the response, or `start`, comes",
    "later. `make dev` reads a row after each transaction, which is a delay, too: the service",
    "itself waits for one less in each write, and for two less until `start`.",
    "",
    "| call | requests | waves | delays waited for |",
    "|---|---:|---:|---:|",
]


class Call(NamedTuple):
    """A call of the service, as a caller sends it."""

    method: str
    path: str
    body: dict[str, Any] | None = None


class CountingProxy:
    """A proxy on loopback that records when each request to the database began and ended."""

    def __init__(self, endpoint: str) -> None:
        """Listen on a free port, and forward to the endpoint."""
        self.usage = DatabaseUsage()
        proxy, host = self, urlsplit(endpoint).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                began = time.monotonic()
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # One connection for each request keeps threads of the proxy independent.
                with closing(HTTPConnection(host)) as database:
                    database.request("POST", self.path, body, dict(self.headers))
                    answer = database.getresponse()
                    content = answer.read()
                time.sleep(proxy.delay)
                if WORKAROUND not in body:
                    operation = self.headers["X-Amz-Target"].partition(".")[2]
                    proxy.usage.requests.append(Request(operation, began, time.monotonic()))
                    proxy.last_request = time.monotonic()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.delay = 0.0
        self.last_request = 0.0
        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://{HOST}:{self._server.server_address[1]}"

    def running(self) -> AbstractContextManager[None]:
        """Return a context manager that serves during its block."""
        return serving(self._server)

    @contextmanager
    def counting(self, delay: float = LATENCY) -> Iterator[DatabaseUsage]:
        """Delay and count the requests during the block, which begins when no job is running."""
        while time.monotonic() - self.last_request < IDLE_SECONDS:
            time.sleep(0.1)
        self.usage, self.delay = DatabaseUsage(), delay
        try:
            yield self.usage
        finally:
            self.delay = 0.0


class Service(NamedTuple):
    """A running service with a demo, and a key to its workspace."""

    port: int
    key: str

    def get(self, path: str) -> dict[str, Any]:
        """Return the data of a response."""
        data: dict[str, Any] = json.loads(self.send(Call("GET", path)).read())["data"]
        return data

    def send(self, call: Call) -> HTTPResponse:
        """Send a call, which must succeed, and return its response, which may not be complete."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        connection = HTTPConnection(HOST, self.port)
        body = None if call.body is None else json.dumps(call.body)
        connection.request(call.method, call.path, body, headers)
        answer = connection.getresponse()
        if answer.status != 200:  # noqa: PLR2004  OK
            raise RuntimeError(answer.read().decode())
        return answer


def table() -> str:
    """Measure the nine calls, and return them as a table."""
    database = dynamodb.start(None, in_memory=True)
    try:
        proxy = CountingProxy(database.endpoint)
        with proxy.running(), _service(proxy.endpoint) as service:
            return "\n".join([*TITLE, *_rows(proxy, service), ""])
    finally:
        database.stop()


@contextmanager
def _service(endpoint: str) -> Iterator[Service]:
    """Run ``make dev`` on a database with a demo of its own."""
    # ``make dev`` needs a fixed port, so the system chooses a free one first.
    with create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    with TemporaryDirectory() as folder, Path(folder, "output").open("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "infra", "dev"],
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name != "MAKELEVEL"},
                "PORT": str(port),
                "DATA_DIR": folder,
                "DYNAMODB_ENDPOINT": endpoint,
                "RATE_LIMIT_SCALE": "1000",
                "DEMO_WORD_SECONDS": "0.0001",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            while READY not in (output_text := Path(output.name).read_text()):
                if process.poll() is not None:
                    raise RuntimeError(output_text)
                time.sleep(0.1)
            yield Service(port, DataDir(Path(folder)).demo["key"])
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _rows(proxy: CountingProxy, service: Service) -> Iterator[str]:
    """Yield a row for each call, with the fewest requests of its runs.

    Background jobs add requests to some runs. The smallest number is the call's own.
    """
    for name, make_call in _calls(service).items():
        service.send(make_call()).read()
        counts = (_count(proxy, service, make_call()) for _ in range(COUNTED))
        requests, waves, to_start = min(counts)
        waited = _delays(proxy, service, make_call)
        yield (
            f"| {name} | {requests} | {waves}{to_start and f', {to_start} until `start`'} "
            f"| {waited:.1f} |"
        )


def _count(proxy: CountingProxy, service: Service, call: Call) -> tuple[int, int, str]:
    """Return the requests and waves of a call, and the waves until its stream starts, if any."""
    with proxy.counting() as usage:
        answer = service.send(call)
        is_stream = answer.readline().startswith(b"data:")
        to_start = DatabaseUsage(usage.requests.copy()).waves
        answer.read()
    return usage.round_trips, usage.waves, str(to_start) if is_stream else ""


def _delays(proxy: CountingProxy, service: Service, make_call: Callable[[], Call]) -> float:
    """Return by how many delays the first line of a response comes later.

    The fastest calls are compared, because other work on the machine only adds time.
    """
    seconds: dict[float, list[float]] = {0.0: [], LATENCY: []}
    for _ in range(TIMED):
        for delay, of_delay in seconds.items():
            with proxy.counting(delay):
                call, began = make_call(), time.perf_counter()
                answer = service.send(call)
                answer.readline()
                of_delay.append(time.perf_counter() - began)
                answer.read()
    return (min(seconds[LATENCY]) - min(seconds[0.0])) / LATENCY


def _calls(service: Service) -> dict[str, Callable[[], Call]]:
    """Return a function for each name that makes a call, which differs from the others."""

    def id_of(path: str, *, name: str, position: int = 0) -> str:
        object_id: str = service.get(path)[name][position]["id"]
        return object_id

    product = id_of("/api/products/list", name="products")
    form, agent = (
        id_of("/api/forms/list", name="forms", position=-1),
        id_of("/api/agents/list", name="agents"),
    )
    service_id = id_of("/api/services/list", name="services")
    # A visitor may have only two unpaid bookings.
    unpaid = {"id": service_id, "requirePayment": False}
    service.send(Call("POST", "/api/services/update", unpaid)).read()
    numbers, starts = count(1), _free_starts(service, service_id)

    def booking() -> dict[str, Any]:
        name = f"client{next(numbers)}"
        client = {"name": name, "email": f"{name}@example.com"}
        return {"serviceId": service_id, "startAt": next(starts), "client": client}

    def post(path: str, make_body: Callable[[], dict[str, Any]]) -> Callable[[], Call]:
        return lambda: Call("POST", path, make_body())

    week = f"from={_in_days(1)}&to={_in_days(7)}"
    slots = f"/api/public/services/{service_id}/slots?{week}"
    question = {"agentId": agent, "message": "How much is rye bread?"}
    return {
        "read by id": lambda: Call("GET", f"/api/products/{product}"),
        "list": lambda: Call("GET", "/api/products/list?sort=price"),
        "create": post("/api/products/create", lambda: {"name": "Rye", "price": 9900}),
        "update": post("/api/products/update", lambda: {"id": product, "price": next(numbers)}),
        "booking by key": post("/api/bookings/create", booking),
        "public slots": lambda: Call("GET", slots),
        "public booking": post("/api/public/bookings", booking),
        "form submission": post(
            f"/api/public/forms/{form}/submit",
            lambda: {"name": f"Ada {next(numbers)}", "phone": "84951234567", "consent": True},
        ),
        "whole chat, new dialog": post("/api/agents/public/chat-stream", lambda: question),
    }


def _free_starts(service: Service, service_id: str) -> Iterator[str]:
    """Yield the first start of each day."""
    for week in range(1, 13):
        days = f"from={_in_days(7 * week)}&to={_in_days(7 * week + 6)}"
        slots = service.get(f"/api/bookings/slots?serviceId={service_id}&{days}")["slots"]
        for _, of_day in groupby(slots, lambda slot: slot["startAt"][:10]):
            yield next(of_day)["startAt"]


def _in_days(days: int) -> date:
    return date.today() + timedelta(days=days)  # noqa: DTZ011  any zone
