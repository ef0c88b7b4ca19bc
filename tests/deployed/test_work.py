"""The queue and the schedule run jobs on a deployed stage, also after a kill."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from infra.local.supervisor import command_line
from tests.deployed.conftest import EVENTS, JOBS, Owner, Stage, balance, eventually, say
from tests.factories.chat import read_events

CONTROL = "workspace-dev-control"
SLOWLY = "Tell me slowly what you sell."
"""The emulator's model takes minutes for this question."""


@contextmanager
def receiver(received: list[tuple[bytes, dict[str, str]]]) -> Iterator[str]:
    """A receiver of webhooks on this machine. Yields its URL."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((body, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            say(f"  the receiver got {self.path}")

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/events"
        server.shutdown()


@pytest.fixture
def _no_schedule(stage: Stage) -> Iterator[None]:
    """Turn the schedule of the events off, so that only the queue runs them."""
    rules = stage.client("events")
    rules.disable_rule(Name=f"{EVENTS}-event")
    yield
    rules.enable_rule(Name=f"{EVENTS}-event")


@pytest.mark.usefixtures("_no_schedule")
def test_the_queue_runs_the_function_that_sends_a_signed_webhook(
    stage: Stage, owner: Owner
) -> None:
    received: list[tuple[bytes, dict[str, str]]] = []
    with receiver(received) as url:
        words = ("--workspace", owner.workspace, "--url", url, "--types", "lead.created")
        webhook = stage.admin("create-webhook", *words, WEBHOOKS_TO_LOOPBACK="1")
        fields = [{"name": "phone", "label": "Phone", "type": "phone", "required": True}]
        form = owner.api.post("/api/forms/create", {"title": "Call me", "fields": fields})["form"]
        stage.api(None).post(
            form["submitUrl"].removeprefix(stage.result["baseUrl"]), {"phone": "+7 495 123-45-67"}
        )
        eventually(lambda: received)
        stage.admin("delete-webhook", "--webhook", webhook["webhookId"])
    body, headers = received[0]
    event = Webhook(webhook["secret"]).verify(body, headers)
    assert event["type"] == "lead.created"


def processes(stage: Stage, module: str) -> list[int]:
    """Return the processes of the emulator's functions that run a module."""
    return [
        int(folder.name)
        for folder in Path("/proc").glob("[0-9]*")
        if module in command_line(int(folder.name))
        and os.getpgid(int(folder.name)) == stage.emulator.pid
    ]


def bring_forward(stage: Stage, kind: str) -> None:
    """Make the jobs of a kind due. Their keys begin with the time: ``<time>#<kind>#<id>``."""
    table = stage.client("dynamodb")
    for page in table.get_paginator("scan").paginate(TableName=CONTROL):
        for row in page["Items"]:
            if row.get("kind") == {"S": kind}:
                key = {name: row[name] for name in ("pk", "sk")}
                now = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
                sooner = row | {"sk": {"S": f"{now}#{row['sk']['S'].partition('#')[2]}"}}
                table.put_item(TableName=CONTROL, Item=sooner)
                table.delete_item(TableName=CONTROL, Key=key)
                say(f"  {kind} of {row['sk']['S']} is due")


def test_schedule_refunds_a_chat_whose_function_was_killed(stage: Stage, owner: Owner) -> None:
    bot, old_balance = owner.bot(), balance(stage)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(stage.chat(bot, SLOWLY)))
    asking.start()
    eventually(lambda: balance(stage)["reserved"])
    (running,) = processes(stage, "chalicelib.transports.chat.stream_runtime")
    os.kill(running, signal.SIGKILL)
    asking.join()
    held_balance = balance(stage)
    assert answers[0].status_code == 502
    assert held_balance["reserved"] > 0
    assert held_balance["available"] == old_balance["available"] - held_balance["reserved"]
    bring_forward(stage, "settle-hold")
    # EventBridge runs the function within a minute, and nothing else does.
    eventually(lambda: not balance(stage)["reserved"], pause=5)
    assert balance(stage)["available"] == old_balance["available"]
    assert any("oldestSeconds" in line for line in stage.log_lines(JOBS))
    second_answer = stage.chat(bot, "What do you sell?")
    assert [*read_events(second_answer.content)][-1]["type"] == "done"
    say(f"  {json.dumps(held_balance)} became {json.dumps(balance(stage))}")
