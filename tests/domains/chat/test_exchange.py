"""Tests that a job ends each chat exactly once if its process dies between two steps."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event
from time import monotonic
from typing import Any

import pytest

from chalicelib.domains.billing.store import ledger
from chalicelib.domains.chat.flows import stream_answer
from chalicelib.engine import connection
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ProviderUsage, Reasoning
from chalicelib.gateways.llm.messages import ToolCall, count_tokens
from chalicelib.transports import scheduled_functions
from chalicelib.transports.http import HttpResponse
from tests.conftest import Api, Owner, Time
from tests.factories.chat import (
    RICH,
    Bot,
    ScriptedModel,
    answer_to,
    ask,
    new_bot,
    propose_booking,
    read_events,
    transcript,
)
from tests.factories.examples import Things, request_to
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

Scripts = Callable[..., ScriptedModel]

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}


class Killed(BaseException):
    """The simulated end of the process."""


class Process:
    """Counts the writes of a process, and ends the process before or after one write."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.dies_at: int | None = None
        self.after_write = False
        self.dead = False

    def call(self, send: Callable[[], Any], operation: str) -> Any:
        if self.dead:
            raise Killed
        if operation not in WRITES:
            return send()
        self.writes.append(operation)
        if len(self.writes) != self.dies_at:
            return send()
        if self.after_write:
            send()
        self.dead = True
        raise Killed


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run code in a process that dies at a write: ``with dying(3, after_write=True) as it``."""
    stock = connection._Connection._make_api_call
    running: list[Process] = []

    def call(self: Any, operation: str, arguments: dict[str, Any]) -> Any:
        def send() -> Any:
            return stock(self, operation, arguments)

        return running[-1].call(send, operation) if running else send()

    monkeypatch.setattr(connection._Connection, "_make_api_call", call)

    @contextmanager
    def run(dies_at: int | None = None, *, after_write: bool = False) -> Iterator[Process]:
        it = Process()
        it.dies_at, it.after_write = dies_at, after_write
        running.append(it)
        try:
            with suppress(Killed):
                yield it
        finally:
            running.pop()

    return run


@pytest.fixture
def bot(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> Bot:
    spec = llm.resolve("claude-opus-4.1", tenant="w")
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
    monkeypatch.setattr(
        llm, "chat_model_for", lambda _: ScriptedModel(["word " * 9, ProviderUsage(50, 9)])
    )
    return new_bot(owner)


@pytest.fixture
def set_script(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    """Set the bot's model to a scripted one."""

    def set_(*steps: Any) -> ScriptedModel:
        model = ScriptedModel(steps)
        monkeypatch.setattr(llm, "chat_model_for", lambda _: model)
        return model

    return set_


def check_ledger(bot: Bot) -> list[str]:
    """Check the ledger's invariants, and return the outcome of each hold."""
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


@pytest.mark.parametrize("after_write", [False, True], ids=["unsent", "unheard"])
def test_a_crash_at_any_step_charges_at_most_once(
    after_write: bool,
    bot: Bot,
    api: Api,
    time: Time,
    dying: Callable[..., Any],
) -> None:
    message = "Write to ada@example.com"
    session = ask(bot, "Hi").session
    outcomes = []
    for number in count(1):
        ledger_length = len(check_ledger(bot))
        key = f"{number}"
        with dying(number, after_write=after_write) as it:
            ask(bot, message, sessionId=session, key=key)
        if not it.dead:
            assert number > len(it.writes) >= 6
            break
        ended = recover(bot, time)[ledger_length:]
        assert len(ended) <= 1
        outcomes += ended
        if ended:
            last = transcript(api, bot)[-1]
            assert last["status"] != "partial" or last["content"]
        time.pass_by(seconds=1)
        reply = ask(bot, message, sessionId=session, key=key)
        assert reply.text == "word " * 9
    assert "release" in outcomes
    assert "settle" in outcomes
    assert api.get("/api/forms/collection-list")["total"] == 1
    assert bot.money[0] < RICH


def recover(bot: Bot, time: Time) -> list[str]:
    """Run the job that ends the answers of dead processes. Return the ledger's entries."""
    time.pass_by(minutes=10, seconds=1)
    scheduled_functions.run_jobs()
    return check_ledger(bot)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("after_write", [False, True], ids=["unsent", "unheard"])
def test_a_crash_in_an_answer_with_tools_charges_finished_calls_once(
    after_write: bool,
    things: Things,  # before the bot: both change the balance
    bot: Bot,
    api: Api,
    set_script: Scripts,
    time: Time,
    dying: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = llm.resolve("x", tenant="w")._replace(takes_tools=True)
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
    bot.change(capabilities=["slots", "booking"])
    day = {"firstDay": "2027-03-02", "lastDay": "2027-03-02"}
    find = ToolCall("1", "find_free_times", json.dumps({"service": "Tasting", **day}))
    propose = ToolCall("2", "propose_booking", '{"slotId": "1"}')
    usage = ProviderUsage(900, 9)
    model = set_script("Wait.", find, usage, propose, usage, "Confirm it.", ProviderUsage(50, 9))
    bookings = api.get("/api/bookings/list")["pagination"]["total"]
    outcomes = []
    for number in count(1):
        ledger_length, (money, _), requests = len(check_ledger(bot)), bot.money, len(model.inputs)
        with dying(number, after_write=after_write) as it:
            reply = ask(bot, "A tasting?", key=f"{number}", features=["actions"])
        if not it.dead:
            assert number > len(it.writes) >= 10
            assert "action" in {event["type"] for event in reply.events}
            break
        ended = recover(bot, time)[ledger_length:]
        assert len(ended) <= 1
        outcomes += ended
        if (finished := len(model.inputs) - requests - 1) > 0:
            assert ended == ["settle"]
            cost = finished * (900 * 150_000 + 9 * 750_000)
            assert money - bot.money[0] >= -(-cost // 10**6)
    assert {"release", "settle"} <= set(outcomes)
    assert api.get("/api/bookings/list")["pagination"]["total"] == bookings


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("after_write", [False, True], ids=["unsent", "unheard"])
def test_a_confirmation_repeated_after_a_crash_is_carried_out_once(
    after_write: bool, things: Things, bot: Bot, api: Api, time: Time, dying: Callable[..., Any]
) -> None:
    place = (bot.id, things.service, things.resource)
    for number in count(1):
        start = datetime(2027, 3, 2, 6, tzinfo=UTC) + timedelta(minutes=30 * number)
        session, proposal = propose_booking(*place, start)
        path = f"/api/agents/public/actions/{proposal.id}"
        body = {"sessionId": session, "decision": "confirm"}
        bookings_before = api.get("/api/bookings/list")["pagination"]["total"]
        with dying(number, after_write=after_write) as it:
            api.post(path, body)
        response = api.post(path, body)
        assert response["state"] == "done"
        assert api.post(path, body) == response
        assert api.get("/api/bookings/list")["pagination"]["total"] == bookings_before + 1
        if not it.dead:
            assert number > len(it.writes) >= 2
            break


NEVER = 10_000.0


@pytest.fixture
def no_timer(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Disable checkpoints by time. Pings are sent immediately, and nothing is read ahead."""
    monkeypatch.setattr(stream_answer, "CHECKPOINT_SECONDS", NEVER)
    monkeypatch.setattr(stream_answer, "FIRST_PAUSE", NEVER)
    monkeypatch.setattr(stream_answer, "PING_SECONDS", 0.01)
    monkeypatch.setattr(stream_answer, "USAGE_SECONDS", 0.0)
    return monkeypatch


class Crash:
    """A chat whose process dies once its answer has the checkpoint that a test waits for."""

    def __init__(self, bot: Bot, api: Api, run: Callable[..., Any]) -> None:
        self.bot, self.api, self.run = bot, api, run
        self.shown = ""

    def when(self, recorded: Callable[[str], bool]) -> None:
        """Read an answer until its checkpoint is as expected, then end the process."""
        with self.run() as it:
            response = answer_to(request_to(self.bot.id, "Tell me a tale"))
            try:
                self._read(response, recorded)
            finally:
                it.dead = True
                response.close()

    def _read(self, response: HttpResponse, recorded: Callable[[str], bool]) -> None:
        until = monotonic() + PATIENCE
        for raw in response.body:
            assert isinstance(raw, bytes)
            self.shown += "".join(event.get("content", "") for event in read_events(raw))
            if recorded(transcript(self.api, self.bot)[-1]["content"]):
                return
            assert monotonic() < until, "the checkpoint did not come"
        pytest.fail("the answer ended")

    def settled(self, time: Time) -> dict[str, Any]:
        """Let the job end the exchange. Return the answer as the dialog stores it."""
        time.pass_by(minutes=10, seconds=1)
        scheduled_functions.run_jobs()
        assert check_ledger(self.bot) == ["settle"]
        return transcript(self.api, self.bot)[-1]


@pytest.fixture
def crash(bot: Bot, api: Api, dying: Callable[..., Any]) -> Crash:
    return Crash(bot, api, dying)


def cost(model: ScriptedModel, output_tokens: int) -> int:
    """Return the price in kopecks of a question and this many output tokens."""
    return -(-(model.input_tokens * 150_000 + output_tokens * 750_000) // 10**6)


def test_the_first_words_shown_get_a_checkpoint_immediately(
    bot: Bot, crash: Crash, set_script: Scripts, time: Time, no_timer: pytest.MonkeyPatch
) -> None:
    model = set_script("Once upon ", Event())
    crash.when(bool)
    answer = crash.settled(time)
    assert (answer["content"], answer["status"]) == ("Once upon ", "partial")
    assert bot.money == (RICH - cost(model, 2), 0)


def test_words_before_a_pause_of_the_model_get_a_checkpoint_by_time(
    bot: Bot, crash: Crash, set_script: Scripts, time: Time, no_timer: pytest.MonkeyPatch
) -> None:
    no_timer.setattr(stream_answer, "CHECKPOINT_SECONDS", 0.01)
    no_timer.setattr(stream_answer, "FIRST_PAUSE", 0.01)
    model = set_script(*["word "] * 20, Event())
    crash.when(lambda text: text == "word " * 20)
    assert crash.shown == crash.settled(time)["content"] == "word " * 20
    assert bot.money == (RICH - cost(model, 20), 0)


def test_two_hundred_tokens_shown_get_a_checkpoint_without_waiting(
    bot: Bot, crash: Crash, set_script: Scripts, time: Time, no_timer: pytest.MonkeyPatch
) -> None:
    model = set_script("Once ", *["word " * 20] * 20, Event())
    # The first checkpoint holds what was sent until its thread began: one piece, or several.
    crash.when(lambda text: count_tokens(text) >= stream_answer.CHECKPOINT_TOKENS)
    text = crash.settled(time)["content"]
    assert crash.shown.startswith(text)
    assert bot.money == (RICH - cost(model, count_tokens(text)), 0)


def test_unsent_words_are_in_no_checkpoint(
    bot: Bot, crash: Crash, set_script: Scripts, time: Time, no_timer: pytest.MonkeyPatch
) -> None:
    model = set_script(*["word "] * 20, Event())
    crash.when(bool)
    text = crash.settled(time)["content"]
    assert text
    assert crash.shown.startswith(text)
    assert bot.money == (RICH - cost(model, count_tokens(text)), 0)


def test_the_job_charges_reasoning_from_before_a_crash(
    bot: Bot, crash: Crash, set_script: Scripts, time: Time, no_timer: pytest.MonkeyPatch
) -> None:
    no_timer.setattr(stream_answer, "CHECKPOINT_SECONDS", 0.01)
    no_timer.setattr(stream_answer, "FIRST_PAUSE", 0.01)
    model = set_script(*[Reasoning("thus ")] * 300, "Rye.", Event())
    crash.when(bool)
    answer = crash.settled(time)
    assert (answer["content"], answer["tokens"]) == ("Rye.", 301)
    assert bot.money == (RICH - cost(model, 301), 0)
