"""The lock of a stage has one holder at any time."""

import json
import os
import socket
from collections.abc import Iterator
from itertools import count
from threading import Event
from typing import Any

import pytest
from moto import mock_aws

from infra.deploy.aws.account import Account
from infra.deploy.aws.store import Store
from infra.deploy.lock import KEY, LockedError, locked
from tests.conftest import Time
from tests.infra.conftest import REGION, run_concurrently
from tests.support.patience import PATIENCE

numbers = count()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")


@pytest.fixture
def store(account: Account) -> Store:
    new_store = Store(account, f"locks-{next(numbers)}")
    where = {"LocationConstraint": REGION}
    account.client("s3").create_bucket(Bucket=new_store.bucket, CreateBucketConfiguration=where)
    return new_store


def holder(store: Store) -> dict[str, Any]:
    """Return the record of the lock's holder."""
    body, _ = store.get(KEY) or (b"{}", "")
    lock_body: dict[str, Any] = json.loads(body)
    return lock_body


def hold(store: Store, **change: Any) -> None:
    """Have the lock held by a process of another machine, but for the changes."""
    with locked(store):
        mine = holder(store)
    store.put_if(KEY, mine | {"host": "elsewhere", "run": "another"} | change)


def test_one_of_many_deployments_gets_the_lock(store: Store) -> None:
    all_tried, tries, entered = Event(), count(1), []

    def enter() -> None:
        try:
            with locked(store):
                entered.append(holder(store)["pid"])
                all_tried.wait(PATIENCE)
        finally:
            if next(tries) == 4:
                all_tried.set()

    outcomes = run_concurrently(*[enter] * 5)
    assert len(entered) == 1
    assert [type(outcome) for outcome in outcomes].count(LockedError) == 4


def test_the_lock_is_free_after_a_failure(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), locked(store):
        raise ZeroDivisionError
    assert store.get(KEY) is None


def test_the_refusal_names_the_holder_and_how_to_take_over(store: Store, time: Time) -> None:
    hold(store, user="kim", pid=7)
    with pytest.raises(LockedError) as refusal, locked(store):
        pass
    assert refusal.value.message == (
        "kim on elsewhere (process 7) has been deploying this stage since "
        "2027-01-15T12:00:00+00:00. Wait for it; if it is dead, give --break-lock."
    )


def test_the_lock_of_an_ended_process_of_this_machine_is_taken_over(store: Store) -> None:
    hold(store, host=socket.gethostname(), pid=os.getpid())
    with pytest.raises(LockedError), locked(store):
        pass
    store.put_if(KEY, holder(store) | {"pid": 2**22 + 1})  # more than Linux gives out
    with locked(store):
        assert holder(store)["pid"] == os.getpid()


def test_the_lock_can_be_broken(store: Store) -> None:
    hold(store)
    with locked(store, break_lock=True) as lock:
        lock.check()
    assert store.get(KEY) is None


@pytest.mark.parametrize("now_free", [True, False])
def test_process_that_lost_the_lock_stops(store: Store, now_free: bool) -> None:
    with locked(store) as lock:
        store.put_if(KEY, {"run": "another"})
        if now_free:
            store.delete(KEY)
        with pytest.raises(LockedError, match="taken over by another process"):
            lock.check()
    assert bool(store.get(KEY)) is not now_free


def test_a_lost_answer_loses_no_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put = Store.put_if

    def deaf(self: Store, key: str, value: object, **condition: str) -> str | None:
        put(self, key, value, **condition)
        return put(self, key, value, **condition)  # botocore retries without an answer

    monkeypatch.setattr(Store, "put_if", deaf)
    with locked(store) as lock:
        lock.check()
    assert store.get(KEY) is None


def test_one_of_many_takes_over_the_lock_of_an_ended_process(store: Store) -> None:
    hold(store, host=socket.gethostname(), pid=2**22 + 1)
    test_one_of_many_deployments_gets_the_lock(store)
