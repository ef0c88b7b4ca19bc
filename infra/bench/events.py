"""Events: what they cost the calls that write, and how fast one worker sends them to webhooks.

The worker is a process of its own, as on AWS. The receivers are servers of this process.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, NamedTuple

from chalicelib.application.invoke import invoke
from chalicelib.core.clock import iso, now
from chalicelib.core.ids import new_id
from chalicelib.core.jobs import WEBHOOK_EVENTS
from chalicelib.core.operations import REGISTRY, load_all
from chalicelib.core.principals import OperatorPrincipal, VisitorPrincipal
from chalicelib.core.settings import settings
from chalicelib.engine import jobs
from chalicelib.engine.events import wake
from chalicelib.transports.schedules import EVENT_RUNNERS, EVENT_THREADS, run_event_jobs
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering
from infra.bench.leads import call, make_workspace, transactions
from infra.operator.transfer.batch_writes import BatchWriter

EVENTS = int(os.environ.get("BENCH_EVENTS", "10000"))
LEADS = 100
"""Leads that the events are about."""
SLOW_SECONDS = 2.0
EARLY = 10
"""The memory is read when a tenth of the events is delivered, and at the end."""
LOOK_SECONDS = 0.05
LATENCY_SECONDS = 0.005
"""Delay of the counted requests, so that those that are sent side by side overlap."""
LONGEST_SECONDS = 3_600.0
HOST = "127.0.0.1"
ABOUT = [
    "## Events, on DynamoDB Local",
    "",
    "Calls that write, in a workspace without a webhook and with one that receives all events. The",
    "job with the events of a call is a row of its transaction, so it takes no request. A row of a",
    "transaction costs two write units per kilobyte.",
    "",
    "| call | requests | with a webhook | waves | with a webhook | rows | with a webhook |",
    "|---|---:|---:|---:|---:|---:|---:|",
]
COLUMNS = (
    *("receiver", "delivered", "time", "a second", "median delay", "95th percentile"),
    *("memory after a tenth", "at the end"),
)
DELIVERY = [
    "",
    f"{EVENTS:,} events of {LEADS} leads are due at once in a workspace. One worker with",
    f"{EVENT_RUNNERS * EVENT_THREADS} threads sends them to a webhook that answers at once,",
    f"and then again beside one that answers after {SLOW_SECONDS:g} seconds",
    "and receives all of them, too. The delay is that of the fast webhook, from the start to",
    "the answer. Database, worker and receivers share the processors with whatever else runs",
    "on the machine, so compare the two lines. Memory is the highest of the worker until then.",
    "",
    f"| {' | '.join(COLUMNS)} |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
]


class Receiver:
    """A server that answers each event with 200 after a while, and remembers when it came."""

    def __init__(self, seconds: float, expected: int) -> None:
        """Listen on a free port."""
        self.arrivals: dict[str, float] = {}
        self.is_complete = Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(seconds)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                receiver.arrivals.setdefault(self.headers["webhook-id"], time.monotonic())
                if len(receiver.arrivals) >= expected:
                    receiver.is_complete.set()

            def log_message(self, *_: object) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_port}/"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class Sent(NamedTuple):
    """The deliveries of one measurement. Memory is in kibibytes."""

    delays: list[float]
    early_memory: int
    memory: int

    def line(self, label: str) -> str:
        """Return the line of the table."""
        count, seconds = len(self.delays), self.delays[-1]
        cells = [
            *(label, f"{count:,}", f"{seconds:.0f} s", f"{count / seconds:.0f}"),
            *(f"{self.delays[count * part // 100]:.1f} s" for part in (50, 95)),
            *(f"{memory / 1024:.0f} MB" for memory in (self.early_memory, self.memory)),
        ]
        return f"| {' | '.join(cells)} |"


def section() -> str:
    """Measure and return this section of the page."""
    load_all()
    with TemporaryDirectory() as folder, database.seeded({}, in_memory=True):
        os.environ |= {"WEBHOOKS_TO_LOOPBACK": "1", "OBJECT_STORE": f"file://{folder}"}
        settings.cache_clear()
        costs = list(_costs())
        alone = _deliver(is_slow_beside=False).line("the fast one")
        beside = _deliver(is_slow_beside=True).line("the fast one, beside the slow one")
    return "\n".join([*ABOUT, *costs, *DELIVERY, alone, beside, ""])


class Cost(NamedTuple):
    """Requests and waves of a call, and the rows of its transactions."""

    requests: int
    waves: int
    rows: int


def _costs() -> Iterator[str]:
    """Yield the lines of calls that write, without and with a webhook."""
    without = _measured_calls(is_subscribed=False)
    with_webhook = _measured_calls(is_subscribed=True)
    for label, before in without.items():
        pairs = zip(before, with_webhook[label], strict=True)
        yield f"| {label} | {' | '.join(f'{number}' for pair in pairs for number in pair)} |"


def _measured_calls(*, is_subscribed: bool) -> dict[str, Cost]:
    """Call each operation twice with new values, and return what the second call cost."""
    workspace, form = _workspace()
    if is_subscribed:
        _add_webhook(workspace, f"http://{HOST}:9/")
    resource = call(workspace, "create_resource", {"name": "Ann", "timezone": "UTC"})
    resource_id = resource["resource"]["id"]
    rules = [{"weekdays": ["mon", "tue", "wed", "thu", "fri"], "start": "08:00", "end": "20:00"}]
    call(workspace, "set_availability", {"resourceId": resource_id, "rules": rules})
    made = {"name": "Cut", "durationMin": 60, "resourceIds": [resource_id]}
    service = call(workspace, "create_service", made)["service"]["id"]
    slots = call(workspace, "get_available_slots", {"serviceId": service})["slots"]
    costs: dict[str, Cost] = {}
    for number in range(2):
        person = {"name": "Ada", "email": f"ada{number}@example.com"}
        with _counting(costs, "submit a form"):
            lead = _submit(form, person)
        with _counting(costs, "set a lead's status"):
            call(workspace, "set_lead_status", {"id": lead, "status": "in_progress"})
        with _counting(costs, "update a lead"):
            call(workspace, "update_lead", {"id": lead, "notes": "Called."})
        body = {"serviceId": service, "startAt": slots[number]["startAt"], "client": person}
        with _counting(costs, "create a booking"):
            call(workspace, "create_booking", body)
    return costs


@contextmanager
def _counting(costs: dict[str, Cost], label: str) -> Iterator[None]:
    with metering(LATENCY_SECONDS) as usage, transactions() as sizes:
        yield
    costs[label] = Cost(usage.round_trips, usage.waves, sum(sizes))


def _workspace() -> tuple[str, str]:
    """Make a workspace with a form. Returns the ids of both."""
    workspace = f"bench-events-{new_id()}"
    make_workspace(workspace)
    fields = [{"name": "name"}, {"name": "email", "type": "email"}]
    form = call(workspace, "create_form", {"title": "Bench", "fields": fields})["form"]["id"]
    return workspace, form


def _add_webhook(workspace: str, url: str) -> None:
    principal = OperatorPrincipal(workspace_id=workspace)
    body = {"workspaceId": workspace, "url": url}
    invoke(REGISTRY["create_webhook"], principal, lambda: body, request_id=new_id())


def _submit(form: str, values: dict[str, str]) -> str:
    """Submit a form, and return the lead's id."""
    body: dict[str, Any] = {"id": form, "values": values}
    visitor = VisitorPrincipal(visitor=new_id())
    reply = invoke(REGISTRY["submit_form"], visitor, lambda: body, request_id=new_id())
    lead: str = json.loads(reply.body)["data"]["id"]
    return lead


def _deliver(*, is_slow_beside: bool) -> Sent:
    """Send all events by one worker until the fast webhook has received them."""
    workspace, form = _workspace()
    leads = [
        _submit(form, {"name": f"Ada {number}", "email": f"ada{number}@example.com"})
        for number in range(LEADS)
    ]
    fast, slow = Receiver(0, EVENTS), Receiver(SLOW_SECONDS, EVENTS)
    _add_webhook(workspace, fast.url)
    if is_slow_beside:
        _add_webhook(workspace, slow.url)
    with BatchWriter() as writer:
        for number in range(EVENTS):
            event = ["lead.created", leads[number % LEADS], 1, None]
            payload = {"events": [event], "actor": "visitor", "at": iso(now())}
            job = jobs.row(WEBHOOK_EVENTS, workspace, payload)
            writer.put(jobs.JobRow, job.serialize())
    try:
        with _worker() as pid:
            begun = time.monotonic()
            end = begun + LONGEST_SECONDS
            early = _wait(fast, EVENTS // EARLY, pid, end)
            memory = _wait(fast, EVENTS, pid, end)
    finally:
        fast.close()
        slow.close()
    return Sent(sorted(at - begun for at in fast.arrivals.values()), early, memory)


def _wait(receiver: Receiver, count: int, pid: int, end: float) -> int:
    """Wait until a receiver has some events. Returns the worker's highest memory until then."""
    while len(receiver.arrivals) < count:
        if time.monotonic() > end:
            msg = f"{len(receiver.arrivals):,} of {count:,} events were delivered"
            raise TimeoutError(msg)
        time.sleep(LOOK_SECONDS)
    lines = Path("/proc", str(pid), "status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM"))


@contextmanager
def _worker() -> Iterator[int]:
    """Run a worker during a ``with`` block, and yield its process id."""
    context = get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_work, args=(ready,), daemon=True)
    process.start()
    ready.wait()
    try:
        yield int(process.pid or 0)
    finally:
        process.terminate()
        process.join()


def _work(ready: Any) -> None:  # noqa: ANN401  an event of multiprocessing has no public type
    """Run jobs of events as the developer's runner does, until the process is ended."""
    logging.getLogger("chalicelib").setLevel(logging.ERROR)
    load_all()
    jobs.oldest_due()  # connects
    ready.set()
    while True:
        run_event_jobs()
        wake.wait(LOOK_SECONDS)
