"""Concurrent charges of one wallet never exceed the balance, and no affordable charge fails."""

import time as real_time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any

import pytest
from botocore.exceptions import ClientError

from chalicelib.core import deadline
from chalicelib.core.errors import AppError, UnavailableError
from chalicelib.domains.billing.flows import charging, wallet_transactions
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.engine.connection import connection
from tests.conftest import run_concurrently
from tests.domains.billing import books
from tests.domains.billing.test_charging import limit, money, top_up
from tests.support.effort import slow_but_for

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database", "slow_clock")]

TERMS = Terms("acc", "ws", "bot", "Europe/Moscow", Prices(10**6, 10**6), "model")
MANY = 200
SECONDS_IN_FLIGHT = 0.004
"""Approximate duration of a DynamoDB transaction."""


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slowed clock, for a test database that shares two cores with all its callers."""
    monkeypatch.setattr(deadline, "monotonic", lambda: real_time.monotonic() / 20)


def outcome(act: Callable[[], Any]) -> str:
    """Return "" for a success, otherwise the error code."""
    try:
        act()
    except AppError as error:
        return error.code
    return ""


@contextmanager
def rejecting_overlaps() -> Iterator[Counter[str]]:
    """Reject a transaction that writes a wallet while another one does, as DynamoDB does.

    Development databases run transactions one by one and never reject them. Yields the numbers of
    transactions sent and rejected.
    """
    client, mutex = connection().client, Lock()
    send, in_flight, seen = client._make_api_call, set[str](), Counter[str]()

    def wallets(request: dict[str, Any]) -> set[str]:
        writes = [write for item in request["TransactItems"] for write in item.values()]
        keys = (write.get("Key") or write.get("Item") or {} for write in writes)
        return {key["pk"]["S"] for key in keys if key["pk"]["S"].count("#") == 1} & {"A#acc"}

    def call(name: str, request: dict[str, Any]) -> Any:
        if name != "TransactWriteItems":
            return send(name, request)
        wallet_keys = wallets(request)
        with mutex:
            seen["sent"] += 1
            if wallet_keys & in_flight:
                seen["rejected"] += 1
                raise rejection(len(request["TransactItems"]))
            in_flight.update(wallet_keys)
        try:
            real_time.sleep(SECONDS_IN_FLIGHT)
            return send(name, request)
        finally:
            with mutex:
                in_flight.difference_update(wallet_keys)

    client._make_api_call = call
    try:
        yield seen
    finally:
        client._make_api_call = send


def rejection(count: int) -> ClientError:
    reasons = [{"Code": "None"}] * (count - 1) + [{"Code": "TransactionConflict"}]
    error = {"Code": "TransactionCanceledException", "Message": "cancelled"}
    return ClientError(
        {"Error": error, "CancellationReasons": reasons},  # type: ignore[typeddict-unknown-key]
        "TransactWriteItems",
    )


def test_money_for_three_full_holds_admits_three_of_two_hundred_requests() -> None:
    top_up(3 * 110 + 73)  # The remainder is too small for a request.

    def act(number: int) -> str:
        return outcome(lambda: spend(number))

    def spend(number: int) -> None:
        hold = charging.reserve(TERMS, f"r{number}", 10, max_output_tokens=100)
        assert hold.amount == 110
        charging.settle(hold, TokenUsage(10, 100))

    assert Counter(run_concurrently(MANY, act)) == {"": 3, "insufficient_balance": MANY - 3}
    assert money() == (73, 0)
    books.audit("acc", "ws", "bot")


def test_a_limit_of_three_full_holds_admits_three_of_two_hundred_requests() -> None:
    top_up(10**6)
    limit(monthly=3 * 110 + 73)

    def act(number: int) -> str:
        return outcome(lambda: charging.reserve(TERMS, f"r{number}", 10, max_output_tokens=100))

    assert Counter(run_concurrently(MANY, act)) == {"": 3, "limit_monthly": MANY - 3}
    books.audit("acc", "ws", "bot")


def charge(number: int) -> str:
    def act() -> None:
        hold = charging.reserve(TERMS, f"r{number}", 10, max_output_tokens=100)
        settled = charging.settle(hold, TokenUsage(10, number % 100))
        assert (settled.cost, settled.adopted) == (10 + number % 100, False)

    return outcome(act)


def check_charges(count: int) -> None:
    cost = sum(10 + number % 100 for number in range(count))
    assert money() == (10**6 - cost, 0)
    assert budgets.budget("ws", agent_id="bot").monthly_used == cost
    entries = Counter(entry.kind for entry in ledger.entries("acc"))
    assert entries == {"topup": 1, "reserve": count, "settle": count}
    books.audit("acc", "ws", "bot")


@pytest.mark.slow
def test_two_hundred_concurrent_requests_are_all_served_and_charged_once() -> None:
    top_up(10**6)
    with rejecting_overlaps() as seen:
        assert Counter(run_concurrently(MANY, charge)) == {"": MANY}
    assert seen == {"sent": 2 * MANY}  # Requests of one process wait for each other.
    check_charges(MANY)


@pytest.mark.parametrize("count", slow_but_for([20], [20, 100]))
def test_requests_of_separate_processes_are_all_served_and_charged_once(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Separate processes do not wait for each other. They get conflicts and retry."""
    monkeypatch.setattr(wallet_transactions, "_alone_with_wallet", lambda _: nullcontext())
    top_up(10**6)
    with rejecting_overlaps() as seen:
        assert Counter(run_concurrently(count, charge)) == {"": count}
    assert seen["rejected"] > 0
    check_charges(count)


def test_a_wallet_that_stays_busy_is_a_503_within_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top_up(10**6)
    now = [0.0]
    monkeypatch.setattr(deadline, "monotonic", lambda: now[0])
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("chalicelib.core.retry.sleep", pause)
    client = connection().client
    send = client._make_api_call

    def call(name: str, request: dict[str, Any]) -> Any:
        if name == "TransactWriteItems":
            raise rejection(len(request["TransactItems"]))
        return send(name, request)

    monkeypatch.setattr(client, "_make_api_call", call)
    with pytest.raises(UnavailableError):
        charging.reserve(TERMS, "r", 10, max_output_tokens=100)
    assert 15 <= sum(pauses) < 16.5
    assert max(pauses) <= 1.5
