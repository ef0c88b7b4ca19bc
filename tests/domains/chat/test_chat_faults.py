"""Chats with a throttled database are refused within the deadline and need little memory."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from botocore.exceptions import ClientError

from chalicelib.core import deadline, retry
from chalicelib.core.errors import MAX_CAUSES
from chalicelib.domains.billing.flows import wallet_transactions
from chalicelib.domains.billing.store import ledger
from chalicelib.gateways import llm
from tests.conftest import Owner
from tests.factories.chat import RICH, Bot, ask, new_bot
from tests.fakes.dynamodb_faults import closed, conflict, failing, faulty, throttled

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]

ALWAYS = 10**9
MOST_BYTES = 5_000_000


@pytest.fixture(autouse=True)
def paused_seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the seconds spent in pauses. Each pause takes its maximum, without real waiting."""
    passed = [0.0]

    def pause(longest: float) -> None:
        passed[0] += longest

    monkeypatch.setattr(retry, "pause_up_to", pause)
    monkeypatch.setattr(deadline, "monotonic", lambda: passed[0])
    return passed


@pytest.fixture
def bot(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> Bot:
    spec = llm.resolve("claude-opus-4.1", tenant="w")
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
    return new_bot(owner)


def cancelled(reason: str) -> ClientError:
    """Return the rejection of a transaction, caused by one of its items."""
    return ClientError(
        {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "None"}, {"Code": reason}],
        },
        "TransactWriteItems",
    )


WALLET = {
    "throttled": throttled,
    "item-throttled": partial(cancelled, "ThrottlingError"),
    "conflicting": conflict,
}


@contextmanager
def little_memory() -> Iterator[None]:
    """Check that a ``with`` block needs no more memory than a request may use."""
    tracemalloc.start()
    try:
        memory_before, _ = tracemalloc.get_traced_memory()
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - memory_before < MOST_BYTES


@pytest.mark.parametrize("fault", WALLET.values(), ids=WALLET.keys())
def test_a_chat_with_a_busy_wallet_is_503_in_time_and_in_little_memory(
    fault: Callable[[], ClientError],
    bot: Bot,
    paused_seconds: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(bot, "Hi")  # imports everything that is imported once
    money_before, began = bot.money, paused_seconds[0]
    with failing("TransactWriteItems", ALWAYS, fault) as requests, little_memory():
        response = ask(bot, "Hi").answer
    assert (response.status, response.data["code"]) == (503, "unavailable")
    assert response.data["status"] is False
    assert response.headers["Retry-After"] == "2"
    assert len(requests) >= 15
    assert wallet_transactions.SECONDS <= paused_seconds[0] - began <= deadline.REQUEST_SECONDS
    assert bot.money == money_before
    (cause,) = (record.__dict__["cause"] for record in caplog.records if "cause" in vars(record))
    assert len(cause.split(" < ")) <= MAX_CAUSES
    assert ask(bot, "Hi").status == 200


def test_thirty_throttled_wallet_writes_leave_memory_unchanged(bot: Bot) -> None:
    ask(bot, "Hi")  # imports everything that is imported once
    statuses: list[int] = []
    with failing("TransactWriteItems", 30, throttled) as requests, little_memory():
        while len(requests) <= 30:
            statuses.append(ask(bot, "Hi").status)
    assert statuses[0] == 503
    assert statuses[-1] == 200


def test_a_chat_whose_rate_limit_is_throttled_is_503_in_time(
    bot: Bot, paused_seconds: list[float]
) -> None:
    with failing("UpdateItem", ALWAYS, throttled):
        response = ask(bot, "Hi").answer
    assert (response.status, response.data["code"]) == (503, "unavailable")
    assert paused_seconds[0] <= deadline.REQUEST_SECONDS
    assert bot.money == (RICH, 0)


def test_a_chat_with_an_unconfirmed_reservation_is_charged_once(bot: Bot) -> None:
    """The policy of the chat's function must allow what it reads then."""
    with faulty("TransactWriteItems", closed, "after", 1):
        assert ask(bot, "Hi").events[-1]["type"] == "done"
    spent, reserved = RICH - bot.money[0], bot.money[1]
    assert spent > 0
    assert reserved == 0
    assert bot.kinds == [ledger.TOPUP, ledger.RESERVE, ledger.SETTLE]
