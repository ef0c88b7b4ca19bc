"""Lost responses of the database while an update of Telegram is processed."""

from collections.abc import Callable

import pytest

from chalicelib.core import retry
from tests.conftest import Owner, call_console
from tests.domains.notifications.helpers import (
    LINKED,
    STOPPED,
    answer_to,
    is_linked,
    link,
    new_code,
    post,
)
from tests.fakes.dynamodb_faults import ALWAYS, FAULTS, TIMES, TRANSACTION, Fault, faulty
from tests.fakes.telegram import update

pytestmark = [
    pytest.mark.usefixtures("telegram"),
    pytest.mark.parametrize("fault", FAULTS),
    pytest.mark.parametrize("when", TIMES),
    pytest.mark.parametrize("times", [1, ALWAYS]),
]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other without a pause."""
    monkeypatch.setattr(retry, "sleep", lambda _: None)


def entries(owner: Owner, operation: str) -> int:
    """Return the number of audit log entries of an operation."""
    log = call_console(owner.workspace.id, "list_audit_log", limit=20)["entries"]
    return sum(log_entry["operation"] == operation for log_entry in log)


def test_a_chat_is_linked_once_when_telegram_repeats_the_update(
    owner: Owner, fault: Fault, when: str, times: int
) -> None:
    start = update(10**6, 7, f"/start {new_code(owner)}")
    entries_before = entries(owner, "link_telegram")
    with faulty(TRANSACTION, fault, when, times):
        assert post(start).status == (503 if times == ALWAYS else 200)
    assert answer_to(start).startswith(LINKED)
    assert is_linked(owner)
    assert entries(owner, "link_telegram") == entries_before + 1


def test_a_chat_is_stopped_once_when_telegram_repeats_the_update(
    owner: Owner, fault: Fault, when: str, times: int
) -> None:
    link(owner, 7)
    stop = update(10**6, 7, "/stop")
    with faulty(TRANSACTION, fault, when, times):
        assert post(stop).status == (503 if times == ALWAYS else 200)
    assert answer_to(stop).startswith(STOPPED)
    assert not is_linked(owner)
    assert entries(owner, "unlink_telegram") == 1


def test_a_wrong_code_counts_at_most_once_when_telegram_repeats_the_update(
    database: None,
    fault: Fault,
    when: str,
    times: int,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "0.2")  # one wrong code an hour
    reload_settings()
    wrong = update(10**6, 7, "/start wrong")
    with faulty(TRANSACTION, fault, when, times):
        post(wrong)
    assert answer_to(wrong).startswith("This code is wrong")
    assert answer_to(update(10**6 + 1, 7, "/start wrong")).startswith("Too many")
