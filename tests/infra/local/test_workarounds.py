"""Workarounds for differences between DynamoDB Local and DynamoDB."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import pytest

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
