"""An account's money: credited and adjusted once a key, read by its owner and nobody else."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import AppError, ConflictError
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import SessionPrincipal
from chalicelib.flows.invoke import invoke
from chalicelib.store import accounts, audit, ledger
from tests.conftest import Owner, Time, as_operator, at_once

pytestmark = pytest.mark.store


@pytest.fixture
def email(owner: Owner) -> str:
    found: str = accounts.get(owner.workspace.owner_id).email
    return found


def change(operation: str, email: str, kopecks: int, key: str, reason: str = "Paid") -> Any:
    """Credit or adjust."""
    return as_operator(operation, account=email, kopecks=kopecks, reason=reason, idempotencyKey=key)


def code_of(*arguments: Any) -> str:
    """Change what must be refused; return the code."""
    with pytest.raises(AppError) as caught:
        change(*arguments)
    return caught.value.code


def balance(email: str) -> tuple[int, int, int]:
    found = as_operator("get_balance", account=email)
    return found["available"], found["reserved"], found["entries"]


class TestCredit:
    def test_adds_to_what_there_is(self, email: str, owner: Owner) -> None:
        assert balance(email) == (0, 0, 0)
        assert change("credit", email, 500, "a") == {
            "accountId": owner.workspace.owner_id,
            "balance": 500,
        }
        assert change("credit", email, 250, "b")["balance"] == 750
        assert balance(email) == (750, 0, 2)

    def test_under_the_same_key_answers_the_same_for_good(self, email: str, time: Time) -> None:
        first = change("credit", email, 500, "a")
        change("credit", email, 1, "b")
        time.pass_by(days=1000)
        assert change("credit", email, 500, "a") == first
        assert balance(email) == (501, 0, 2)

    def test_under_the_same_key_with_something_else_is_a_mistake(
        self, email: str, owner: Owner
    ) -> None:
        change("credit", email, 500, "a")
        as_operator("create_account", email="other@example.com", password="long enough")
        assert code_of("credit", email, 501, "a") == "idempotency_mismatch"
        assert code_of("credit", "other@example.com", 500, "a") == "idempotency_mismatch"
        assert balance("other@example.com") == (0, 0, 0)
        assert change("adjust", email, 500, "a")["balance"] == 1000

    def test_of_many_at_once_under_one_key_happens_once(self, email: str) -> None:
        answers = at_once(8, lambda _: change("credit", email, 500, "a"))
        assert answers == [answers[0]] * 8
        assert balance(email) == (500, 0, 1)

    def test_of_many_at_once_adds_all(self, email: str) -> None:
        balances = at_once(8, lambda n: change("credit", email, 10**n, f"{n}")["balance"])
        assert max(balances) == 11_111_111
        assert len(set(balances)) == 8
        assert balance(email) == (11_111_111, 0, 8)

    @pytest.mark.parametrize("kopecks", [0, -1, 10**11 + 1])
    def test_refuses_what_is_no_payment(self, email: str, kopecks: int) -> None:
        assert code_of("credit", email, kopecks, "a") == "validation_error"

    def test_is_in_the_accounts_audit_log(self, email: str, owner: Owner) -> None:
        change("credit", email, 500, "a")
        (record,) = audit.latest(owner.workspace.owner_id)
        assert (record.operation, record.actor) == ("credit", "operator")
        assert record.resources == [f"account:{owner.workspace.owner_id}"]


class TestAdjust:
    def test_goes_both_ways_but_never_below_nothing(self, email: str) -> None:
        assert code_of("adjust", email, -1, "a") == "conflict"
        assert change("adjust", email, 100, "b")["balance"] == 100
        assert code_of("adjust", email, -101, "c") == "conflict"
        assert change("adjust", email, -100, "d")["balance"] == 0
        assert code_of("adjust", email, 0, "e") == "validation_error"

    def test_of_many_at_once_leaves_nothing_below_nothing(self, email: str) -> None:
        change("credit", email, 250, "a")

        def act(number: int) -> bool:
            try:
                return bool(change("adjust", email, -100, f"{number}"))
            except ConflictError:
                return False

        assert sum(at_once(6, act)) == 2
        assert balance(email) == (50, 0, 3)


def test_the_ledger_is_read_newest_first(email: str) -> None:
    for number in range(12):
        change("credit", email, number + 1, f"{number}")
    entries = as_operator("list_ledger", account=email)["entries"]
    assert [entry["id"] for entry in entries] == [str(n) for n in range(12, 0, -1)]
    assert entries[0] == {
        "id": "12",
        "kind": "topup",
        "amount": 12,
        "held": 0,
        "balanceAfter": 78,
        "requestId": None,
        "agentId": None,
        "at": entries[0]["at"],
    }
    assert as_operator("list_ledger", account=email, limit=2)["entries"] == entries[:2]
    row = ledger.entries(accounts.by_email(email).id, 1)[0]
    assert row.reason == "Paid"


class TestSession:
    """Of the console."""

    def read(self, operation: str, account_id: str, **arguments: Any) -> Any:
        principal = SessionPrincipal(account_id=account_id, workspace_id="w", membership="member")
        reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
        return json.loads(reply.body)["data"]

    def test_reads_its_own_account(self, email: str, owner: Owner) -> None:
        change("credit", email, 500, "a")
        own = owner.workspace.owner_id
        for arguments in ({}, {"account": email}):
            assert self.read("get_balance", own, **arguments)["available"] == 500
            assert len(self.read("list_ledger", own, **arguments)["entries"]) == 1

    def test_reads_nobody_elses(self, email: str) -> None:
        made = as_operator("create_account", email="eve@example.com", password="long enough")
        assert self.read("get_balance", made["accountId"])["available"] == 0
        for operation in ("get_balance", "list_ledger"):
            with pytest.raises(AppError) as caught:
                self.read(operation, made["accountId"], account=email)
            assert caught.value.status == 404


class TestDemoBalance:
    """Of development: money to try bots with."""

    def test_comes_with_each_new_workspace_where_one_is_set(
        self, email: str, read_anew: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        as_operator("create_workspace", owner=email, name="Without")
        assert balance(email) == (0, 0, 0)
        monkeypatch.setenv("DEMO_BALANCE", "700")
        read_anew()
        for number in (1, 2):
            as_operator("create_workspace", owner=email, name="With")
            assert balance(email) == (700 * number, 0, number)
