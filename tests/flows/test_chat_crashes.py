"""A chat whose process dies between any two of its steps: its job brings it to an end, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event
from typing import Any

import pytest

from chalicelib.flows import chat_answer
from chalicelib.gateways import llm
from chalicelib.gateways.llm import Usage
from chalicelib.rules.chat import count_input, count_tokens
from chalicelib.store import connection, ledger
from chalicelib.transports import schedules
from tests.conftest import Api, Owner, Time
from tests.factories.chat import RICH, Bot, Scripted, answer_to, ask, new_bot, transcript
from tests.factories.examples import request_to

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}


class Killed(BaseException):
    """The process is gone."""


class Process:
    """Counts the writes of a process, and dies before or after one of them."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.dies_at: int | None = None
        self.after = False
        self.dead = False

    def call(self, send: Callable[[], Any], operation: str) -> Any:
        if self.dead:
            raise Killed
        if operation not in WRITES:
            return send()
        self.writes.append(operation)
        if len(self.writes) != self.dies_at:
            return send()
        if self.after:
            send()
        self.dead = True
        raise Killed


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run code in a process that dies at a write: ``with process(3, after=True) as it``."""
    stock = connection._Connection._make_api_call
    running: list[Process] = []

    def call(self: Any, operation: str, arguments: dict[str, Any]) -> Any:
        def send() -> Any:
            return stock(self, operation, arguments)

        return running[-1].call(send, operation) if running else send()

    monkeypatch.setattr(connection._Connection, "_make_api_call", call)

    @contextmanager
    def run(dies_at: int | None = None, *, after: bool = False) -> Iterator[Process]:
        it = Process()
        it.dies_at, it.after = dies_at, after
        running.append(it)
        try:
            with suppress(Killed):
                yield it
        finally:
            running.pop()

    return run


@pytest.fixture
def bot(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> Bot:
    spec = llm.resolve("claude-opus-4.1")
    monkeypatch.setattr(llm, "resolve", lambda _: spec)
    monkeypatch.setattr(llm, "chat_model_for", lambda _: Scripted(["word " * 9, Usage(50, 9)]))
    return new_bot(owner)


def check_ledger(bot: Bot) -> list[str]:
    """Check the invariants; return what became of each hold."""
    entries = list(reversed(ledger.entries(bot.account_id)))
    available = reserved = 0
    ends: dict[str, list[str]] = {}
    for entry in entries:
        reserved += int(entry.held)
        available += int(entry.amount - entry.held)
        assert int(entry.balance_after) == available >= 0
        assert reserved >= 0
        if entry.request_id:
            ends.setdefault(entry.request_id, []).append(entry.kind)
    assert bot.money == (available, reserved) == (available, 0)
    for steps in ends.values():
        assert steps[0] == "reserve"
        assert len(steps) == 2
    return [steps[1] for steps in ends.values()]


@pytest.mark.parametrize("after", [False, True], ids=["unsent", "unheard"])
def test_wherever_it_dies_the_request_is_charged_once_or_not_at_all(
    after: bool,
    bot: Bot,
    api: Api,
    time: Time,
    process: Callable[..., Any],
) -> None:
    message = "Write to ada@example.com"
    session = ask(bot, "Hi").session
    outcomes = []
    for number in count(1):
        before = len(check_ledger(bot))
        key = f"{number}"
        with process(number, after=after) as it:
            ask(bot, message, sessionId=session, key=key)
        if not it.dead:
            assert number > len(it.writes) >= 6
            break
        time.pass_by(minutes=10, seconds=1)
        schedules.run_jobs()
        ended = check_ledger(bot)[before:]
        assert len(ended) <= 1
        outcomes += ended
        if ended:
            last = transcript(api, bot)[-1]
            assert last["status"] != "partial" or last["content"]
        time.pass_by(seconds=1)
        told = ask(bot, message, sessionId=session, key=key)
        assert told.text == "word " * 9
    assert "release" in outcomes
    assert "settle" in outcomes
    assert api.get("/api/forms/collection-list")["total"] == 1
    assert bot.money[0] < RICH


def test_the_job_settles_what_was_written_down_last(
    bot: Bot, api: Api, time: Time, process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_answer, "CHECKPOINT_SECONDS", 0.01)
    monkeypatch.setattr(chat_answer, "PING_SECONDS", 0.01)
    model = Scripted(["word " * 40, Event()])
    monkeypatch.setattr(llm, "chat_model_for", lambda _: model)
    with process() as it:
        response = answer_to(request_to(bot.id, "Tell me a tale"))
        for piece in response.body:
            if transcript(api, bot)[-1]["content"]:
                break
            assert piece
        it.dead = True
        response.close()
    time.pass_by(minutes=10, seconds=1)
    schedules.run_jobs()
    sent, said = count_input(model.asked[0]), count_tokens("word " * 40)
    assert bot.money == (RICH - -(-(sent * 150_000 + said * 750_000) // 10**6), 0)
    assert check_ledger(bot) == ["settle"]
    answer = transcript(api, bot)[-1]
    assert (answer["content"], answer["status"]) == ("word " * 40, "partial")
