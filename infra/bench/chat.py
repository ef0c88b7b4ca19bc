"""Latency that the chat adds to a model: before the stream begins, and for each piece of an answer.

The requests go over HTTP to the development server in this process, with DynamoDB Local in another,
in memory. Client, server and database therefore share the machine, so the fastest chat says more
about the service than the median does.
"""

import http.client
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from statistics import median, quantiles
from threading import Thread
from typing import Any, NamedTuple
from unittest.mock import patch

from chalicelib.core import clock
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.bots.store.agents import AGENTS
from chalicelib.domains.identity.store import workspaces
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import llm
from chalicelib.gateways.llm import Event, ProviderUsage, Stop, TextDelta
from infra.bench.dynamodb import database
from infra.bench.dynamodb.usage import metering

WORKSPACE = "bench-chat"
WARM_UP = 5
CHATS = 100
PIECES = 200
PIECE_SECONDS = 0.005
TARGETS = (25.0, 2.0)
"""Target milliseconds to the first event, and for each piece."""


class Exchange(NamedTuple):
    """Milliseconds to the first event, the session, and each piece with its time of arrival."""

    start_ms: float
    session: str
    arrivals: list[tuple[int, float]]


class PacedModel:
    """Model that yields pieces at a steady pace and records when it yielded each."""

    def __init__(self) -> None:
        self.sent_at: dict[int, float] = {}

    def stream(self, *_: object, **__: object) -> Iterator[Event]:
        """Yield pieces of the form ``<number> ``."""
        for number in range(PIECES):
            time.sleep(PIECE_SECONDS)
            self.sent_at[number] = time.perf_counter()
            yield TextDelta(f"{number} ")
        yield Stop("end")
        yield ProviderUsage(10, PIECES)


def section() -> str:
    """Measure and return this section of the page."""
    logging.getLogger("chalicelib").setLevel(logging.WARNING)
    with database.seeded({}, in_memory=True):
        agent_id = bot()
        with _server() as port:
            new, continued, trips = _starts(port, agent_id)
            delays = _delays(port, agent_id)
    return f"""\
## Chat, over HTTP from `make dev` on DynamoDB Local

Time from a request to its `start` event, in {CHATS} warm chats with the demo model: new dialogs \
{_spread(new)}; continued dialogs {_spread(continued)} (target: {TARGETS[0]:.0f} ms). A new dialog \
takes {trips} requests to the database before the model is called.

Time from a piece that the model yields to its arrival at the client, for {PIECES} pieces \
{PIECE_SECONDS * 1000:.0f} ms apart, while checkpoints are written: \
{_spread(delays)} (target: {TARGETS[1]:.0f} ms).
"""


def _spread(values: list[float]) -> str:
    worst = quantiles(values, n=20)[-1]
    return (
        f"{min(values):.1f} ms at least, {median(values):.1f} ms in the median, "
        f"{worst:.1f} ms at the 95th percentile"
    )


def bot() -> str:
    """Return the id of a bot whose owner has a balance. The bot is created once."""
    agent_id = "bench-bot"
    if AGENTS.find(WORKSPACE, agent_id) is None:
        owner = "bench-owner"
        row = workspaces.row(
            WORKSPACE,
            name="Bench",
            slug=WORKSPACE,
            owner_id=owner,
            plan="business",
            timezone="Europe/Moscow",
            created_at=clock.now(),
        )
        row.save()

        def stage(unit: UnitOfWork) -> None:
            unit.create(
                AGENTS.row(
                    AGENTS.partition(WORKSPACE),
                    agent_id,
                    name="Baker",
                    system_prompt="Rye bread costs 120 rubles. We open at eight.",
                    model="demo",
                )
            )
            ledger.post(unit, ledger.wallet(owner), ledger.TOPUP, amount=10**9)

        run_unit(WORKSPACE, None, stage)
    return agent_id


@contextmanager
def _server() -> Iterator[int]:
    """Run the development server and yield its port."""
    from chalice.app import Chalice  # noqa: PLC0415  only this section needs it
    from chalice.config import Config  # noqa: PLC0415

    from infra.local.devserver import DevServer  # noqa: PLC0415

    server = DevServer(Chalice("bench"), Config(), "127.0.0.1", 0).server
    server.prepare()
    thread = Thread(target=server.serve)
    thread.start()
    try:
        yield server.bind_addr[1]
    finally:
        server.stop()
        thread.join()


def _chat(port: int, agent_id: str, session: str | None = None) -> Exchange:
    body = {"agentId": agent_id, "message": "How much is rye bread?", "sessionId": session}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    started = time.perf_counter()
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/api/agents/public/chat-stream", json.dumps(body), headers)
    answer = connection.getresponse()
    if answer.status != HTTPStatus.OK:
        raise RuntimeError(answer.read().decode())
    first = _event(answer.readline())
    start_ms = (time.perf_counter() - started) * 1000
    arrivals = []
    while line := answer.readline():
        now = time.perf_counter()
        event = _event(line)
        if event.get("type") == "chunk" and event["content"].strip().isdecimal():
            arrivals.append((int(event["content"]), now))
    connection.close()
    return Exchange(start_ms, first["sessionId"], arrivals)


def _event(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line[6:]) if line.startswith(b"data: ") else {}
    return found


def _starts(port: int, agent_id: str) -> tuple[list[float], list[float], int]:
    sessions = [_chat(port, agent_id).session for _ in range(WARM_UP)]
    new = [_chat(port, agent_id).start_ms for _ in range(CHATS)]
    continued = [_chat(port, agent_id, sessions[n % WARM_UP]).start_ms for n in range(CHATS)]
    with metering() as usage:
        _chat(port, agent_id)
    reserved = usage.calls.index("TransactWriteItems")
    stored = usage.calls.index("TransactWriteItems", reserved + 1)
    return new, continued, stored + 1


def _delays(port: int, agent_id: str) -> list[float]:
    model = PacedModel()
    with patch.object(llm, "chat_model_for", lambda _: model):
        arrivals = _chat(port, agent_id).arrivals
    return [(at - model.sent_at[number]) * 1000 for number, at in arrivals]
