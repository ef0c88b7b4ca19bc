"""Workarounds for differences between DynamoDB Local and DynamoDB."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from time import sleep
from types import SimpleNamespace

import pytest

from chalicelib.core import deadline, retry
from chalicelib.core.errors import ConcurrentUpdateError
from chalicelib.engine import connection
from infra.local import workarounds

EVENT = "dynamodb.TransactWriteItems"


@pytest.mark.parametrize("end", ["after-call", "after-call-error"])
def test_a_process_sends_one_transaction_at_a_time(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    handlers = defaultdict[str, list[Callable[[], None]]](list)
    events = SimpleNamespace(register=lambda name, handler: handlers[name].append(handler))
    client = SimpleNamespace(meta=SimpleNamespace(events=events))
    monkeypatch.setattr(workarounds, "connection", lambda: SimpleNamespace(client=client))
    workarounds.apply(in_memory=True)
    begin, open_calls, highest_counts = Barrier(8), list[int](), list[int]()

    def send(number: int) -> None:
        begin.wait()
        for handler in handlers[f"before-call.{EVENT}"]:
            handler()
        open_calls.append(number)
        highest_counts.append(len(open_calls))
        open_calls.remove(number)
        for handler in handlers[f"{end}.{EVENT}"]:
            handler()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    assert max(highest_counts) == 1
    assert len(highest_counts) == 8


def test_a_process_retries_one_contended_change_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in (
        (retry, "turn"),
        (retry, "HIGH_CONTENTION_SECONDS"),
        (deadline, "REQUEST_SECONDS"),
        (connection, "READ_SECONDS"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(retry, "sleep", lambda _: None)
    workarounds.be_patient()
    begin, open_retries, highest_counts = Barrier(8), list[int](), list[int]()

    def change(number: int) -> int:
        attempts = count()

        def attempt() -> int:
            if next(attempts) == 0:
                begin.wait()
                raise ConcurrentUpdateError
            open_retries.append(number)
            for _ in range(20):  # Other threads run, unless they wait.
                sleep(0)
            highest_counts.append(len(open_retries))
            open_retries.remove(number)
            return number

        return retry.retry_on_conflict(attempt, retry.high_contention)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(change, range(8))) == list(range(8))
    assert highest_counts == [1] * 8
