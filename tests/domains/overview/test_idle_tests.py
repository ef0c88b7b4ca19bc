"""A test workspace that nobody uses is emptied, after a notice to its owner."""

import pytest

from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time, call_console
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox
from tests.factories.event_runs import run_until_idle

NOTICE = "Тестовое пространство очистится через семь дней"
PRODUCT = {"name": "Rye", "price": 1}


def pass_by(time: Time, **length: float) -> None:
    time.pass_by(**length)
    run_jobs()
    run_until_idle()


def products(owner: Owner) -> int:
    return int(call_console(owner.workspace.id, "list_products")["total"])


@pytest.fixture
def key(owner: Owner, tester: Owner, inbox: Inbox) -> Api:  # noqa: F811  made before
    api = owner.api()
    # The owner would be told that nobody can read it.
    for calendar in api.get("/api/busy-calendars")["busyCalendars"]:
        api.post("/api/busy-calendars/delete", {"id": calendar["id"]})
    return tester.api()


@pytest.fixture
def idle(inbox: Inbox, tester: Owner, key: Api, time: Time) -> Owner:  # noqa: F811  the fixture
    """A test workspace with a product that nobody has used for 24 days."""
    key.post("/api/products/create", PRODUCT)
    run_jobs()
    run_until_idle()
    inbox.clear()
    pass_by(time, days=24)
    return tester


def test_the_owner_is_told_seven_days_before(
    idle: Owner,
    inbox: Inbox,  # noqa: F811  the fixture
    time: Time,
) -> None:
    assert inbox.subjects == [NOTICE]
    pass_by(time, days=6)
    assert products(idle) == 1
    pass_by(time, days=2)
    assert products(idle) == 0
    pass_by(time, days=40)
    assert inbox.subjects == [NOTICE]


def test_a_call_with_a_key_keeps_it(
    idle: Owner,
    key: Api,
    inbox: Inbox,  # noqa: F811  the fixture
    time: Time,
) -> None:
    key.get("/api/products/list")
    pass_by(time, days=10)
    assert products(idle) == 1
    pass_by(time, days=14)
    assert inbox.subjects == [NOTICE, NOTICE]
    assert products(idle) == 1


def test_a_workspace_in_use_is_kept(
    tester: Owner,
    key: Api,
    inbox: Inbox,  # noqa: F811  the fixture
    time: Time,
) -> None:
    inbox.clear()
    for number in range(4):
        key.post("/api/products/create", PRODUCT)
        pass_by(time, days=20)
        assert products(tester) == number + 1
    assert inbox.subjects == []
