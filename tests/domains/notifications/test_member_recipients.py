"""Messages to members when processes are killed and responses are lost.

Every committed change is reported at least once. No other change is reported.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core import retry
from chalicelib.engine import jobs
from chalicelib.engine.connection import connection
from tests.conftest import Api, Time
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things, submit
from tests.fakes.dynamodb_faults import TIMES, closed
from tests.support.effort import matrix, slow_but_for

pytestmark = pytest.mark.usefixtures("database")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
STEP = 3
every_third_write = pytest.mark.parametrize("first", slow_but_for([1], range(1, STEP + 1)))
"""A fault at every third write, beginning with the first. The slow tests have the others."""
LEASE = jobs.LEASE + timedelta(seconds=1)


class Killed(BaseException):
    """The process ends between two lines."""


def kill(_http: Any, _parsed: dict[str, Any]) -> None:
    raise Killed


@contextmanager
def failing_write(number: int, fault: Callable[..., None], when: str) -> Iterator[list[str]]:
    """Apply a fault to the write with this number; after a kill, to all requests that follow.

    Yields the writes that were begun.
    """
    seen: list[str] = []

    def hits(name: str) -> bool:
        return name in WRITES and len(seen) == number

    def begin_write(model: Any, **_: Any) -> None:
        if fault is kill and (len(seen) > number or (len(seen) == number and when == "after")):
            raise Killed
        if model.name in WRITES:
            seen.append(model.name)
        if when == "before" and hits(model.name):
            fault(None, {})

    def end_write(model: Any, **_: Any) -> None:
        if when == "after" and hits(model.name):
            fault(None, {})

    events = connection().client.meta.events
    events.register_first("before-call.dynamodb", begin_write)
    events.register_first("after-call.dynamodb", end_write)
    try:
        yield seen
    finally:
        events.unregister("before-call.dynamodb", begin_write)
        events.unregister("after-call.dynamodb", end_write)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts of requests follow each other without a pause."""
    monkeypatch.setattr(retry, "sleep", lambda _: None)


def names_of_leads(api: Api) -> list[str]:
    rows = api.get("/api/forms/collection-list?size=100")["collections"]
    return [lead["name"] for lead in rows]


@every_third_write
@matrix("fault, when", [kill, closed], TIMES)
def test_every_committed_lead_is_reported_whichever_write_fails(
    lead_inbox: Inbox,
    things: Things,
    api: Api,
    time: Time,
    fault: Callable[..., None],
    when: str,
    first: int,
) -> None:
    for number in itertools.count(first, STEP):
        name = f"Ada {number}"
        with failing_write(number, fault, when) as seen, suppress(Killed):
            submit(things.form, name=name, email=f"ada{number}@example.com")
            run_until_idle()
        time.now += LEASE
        run_until_idle()
        is_committed = name in names_of_leads(api)
        assert (f"New lead: {name}" in lead_inbox.subjects) == is_committed, (number, seen)
        if len(seen) < number:
            break
        time.pass_by(minutes=11)
    # Emit, the jobs of all members and of one with their leases, the window, and the deletions.
    assert number > 6


@every_third_write
@matrix("fault, when", [kill, closed], TIMES)
def test_held_back_messages_are_reported_whichever_write_fails(
    lead_inbox: Inbox,
    things: Things,
    time: Time,
    fault: Callable[..., None],
    when: str,
    first: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chalicelib.domains.notifications.store.windows.MOST", 1)
    for number in itertools.count(first, STEP):
        time.pass_by(minutes=11)
        for _ in range(2):
            submit(things.form, name="Ada", email="ada@example.com")
        count_before = len(lead_inbox.mails)
        with failing_write(number, fault, when) as seen, suppress(Killed):
            run_until_idle()
            time.pass_by(minutes=11)
            run_until_idle()
        time.pass_by(minutes=11)
        run_until_idle()
        new = lead_inbox.subjects
        assert len(new) >= count_before + 2, (number, seen)
        assert any("1 more" in subject or "2 more" in subject for subject in new)
        for path in lead_inbox.folder.glob("*.eml"):
            path.unlink()
        if len(seen) < number:
            break
    assert number > 10
