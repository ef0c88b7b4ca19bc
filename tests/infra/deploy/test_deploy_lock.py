"""The lock on a stage: at any time, at most one process holds it."""

import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from threading import Event
from typing import Any

import pytest
from moto import mock_aws

from infra.deploy import lock as locks
from infra.deploy.aws.account import Account
from infra.deploy.aws.store import Store
from infra.deploy.lock import LEASE, LockedError, locked
from tests.conftest import Time
from tests.infra.conftest import REGION, run_concurrently
from tests.support.patience import PATIENCE

KEY = "state/lock.json"
numbers = count()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account("123456789012", REGION, "arn:aws:iam::123456789012:user/ops")


@pytest.fixture
def store(account: Account) -> Store:
    made = Store(account, f"locks-{next(numbers)}")
    where = {"LocationConstraint": REGION}
    account.client("s3").create_bucket(Bucket=made.bucket, CreateBucketConfiguration=where)
    return made


def held(store: Store, **change: Any) -> None:
    """Store a lock that a process on another machine holds, with some values changed."""
    with locked(store):
        holder = store.get_json(KEY)
    store.put_json(KEY, holder | {"host": "elsewhere"} | change)


def test_one_of_several_processes_gets_the_lock(store: Store) -> None:
    all_tried, tries, entered = Event(), count(1), []

    def enter() -> None:
        try:
            with locked(store):
                entered.append(store.get_json(KEY)["pid"])
                all_tried.wait(PATIENCE)
        finally:
            if next(tries) == 4:
                all_tried.set()

    outcomes = run_concurrently(*[enter] * 5)
    assert len(entered) == 1
    assert [type(each) for each in outcomes].count(LockedError) == 4


def test_lock_is_released_after_a_failure(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), locked(store):
        raise ZeroDivisionError
    assert store.get(KEY) is None


def test_refusal_names_the_holder_and_the_time(store: Store, time: Time) -> None:
    held(store, user="kim", pid=7)
    with pytest.raises(LockedError) as refused, locked(store):
        pass
    assert refused.value.message == (
        "kim on elsewhere (process 7) has been deploying this stage since "
        "2027-01-15T12:00:00+00:00. Wait for it; if it is dead, the lock lapses at "
        "2027-01-15T12:05:00+00:00, or give --break-lock."
    )


def test_lock_lapses_without_renewal(store: Store, time: Time) -> None:
    held(store)
    time.now += LEASE - timedelta(seconds=1)
    with pytest.raises(LockedError), locked(store):
        pass
    time.now += timedelta(seconds=2)
    with locked(store):
        assert store.get_json(KEY)["host"] != "elsewhere"


def test_renewed_lock_does_not_lapse(store: Store, time: Time) -> None:
    with locked(store) as lock:
        time.now += LEASE * 0.9
        lock.renew()
        time.now += LEASE * 0.9
        with pytest.raises(LockedError), locked(store):
            pass
        lock.check()


def test_lock_is_renewed_in_the_background(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "RENEW_SECONDS", 0.01)
    renewed, put = Event(), Store.put_if

    def put_if(self: Store, key: str, value: object, **condition: str) -> str | None:
        etag = put(self, key, value, **condition)
        if "IfMatch" in condition:
            renewed.set()
        return etag

    monkeypatch.setattr(Store, "put_if", put_if)
    with locked(store) as lock:
        assert renewed.wait(PATIENCE)
        lock.check()
    assert store.get(KEY) is None


def test_lock_of_an_ended_local_process_is_taken_over(store: Store) -> None:
    held(store, host=socket.gethostname(), pid=os.getpid())
    with pytest.raises(LockedError), locked(store):
        pass
    held_by_the_dead = store.get_json(KEY) | {"pid": 2**22 + 1}  # more than Linux gives out
    store.put_json(KEY, held_by_the_dead)
    with locked(store):
        assert store.get_json(KEY)["pid"] == os.getpid()


def test_lock_can_be_broken(store: Store) -> None:
    held(store)
    with locked(store, break_lock=True):
        assert store.get_json(KEY)["host"] != "elsewhere"


def test_process_that_lost_the_lock_stops_and_keeps_the_new_holders(store: Store) -> None:
    with locked(store) as lock:
        store.put_json(KEY, store.get_json(KEY) | {"host": "elsewhere", "run": "another"})
        lock.renew()
        with pytest.raises(LockedError, match="taken over by another process"):
            lock.check()
    assert store.get_json(KEY)["host"] == "elsewhere"


def test_process_that_lost_the_lock_stops_after_its_release_too(store: Store) -> None:
    with locked(store) as lock:
        store.delete(KEY)
        lock.renew()
        with pytest.raises(LockedError, match="taken over by another process"):
            lock.check()


def test_lost_answer_of_a_renewal_keeps_the_lock(
    store: Store, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Store.put_if

    def deaf(self: Store, key: str, value: object, **condition: str) -> str | None:
        put(self, key, value, **condition)
        return put(self, key, value, **condition)  # As botocore does when it has heard nothing.

    monkeypatch.setattr(Store, "put_if", deaf)
    with locked(store) as lock:
        time.pass_by(minutes=1)
        lock.renew()
        lock.check()
    assert store.get(KEY) is None
    held(store)
    with locked(store, break_lock=True) as lock:
        lock.check()
    assert store.get(KEY) is None


def test_renewal_in_progress_leaves_no_lock_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "RENEW_SECONDS", 0.01)
    landed, ending, put = Event(), Event(), Store.put_if

    def slow(self: Store, key: str, value: Any, **condition: str) -> str | None:
        if "IfMatch" not in condition or landed.is_set():
            return put(self, key, value, **condition)
        etag = put(self, key, value | {"until": "2100-01-01T00:00:00+00:00"}, **condition)
        landed.set()
        assert ending.wait(PATIENCE)
        return etag

    monkeypatch.setattr(Store, "put_if", slow)
    monkeypatch.setattr(locks.Lock, "stop", lambda lock: (lock._stop.set(), ending.set()))
    with locked(store):
        assert landed.wait(PATIENCE)
    assert store.get(KEY) is None


def test_one_of_two_processes_that_break_a_lock_gets_it(store: Store, time: Time) -> None:
    held(store)
    time.now += LEASE * 2
    test_one_of_several_processes_gets_the_lock(store)
