"""Tests of account balances, which the operator changes and the owner reads."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.errors import AppError, ConflictError
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import Role, SessionPrincipal
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import accounts
from chalicelib.engine import audit
from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, call_console, call_operator, run_concurrently
from tests.factories.examples import Things

pytestmark = pytest.mark.store


@pytest.fixture
def email(owner: Owner) -> str:
    address: str = accounts.get(owner.workspace.owner_id).email
    return address


def change(operation: str, email: str, kopecks: int, key: str, reason: str = "Paid") -> Any:
    """Credit or adjust a balance."""
    return call_operator(
        operation, account=email, kopecks=kopecks, reason=reason, idempotencyKey=key
    )


def refusal_code(*arguments: Any) -> str:
    """Make a change that must be refused, and return the error code."""
    with pytest.raises(AppError) as caught:
        change(*arguments)
    return caught.value.code


def balance(email: str) -> tuple[int, int, int]:
    response = call_operator("get_balance", account=email)
    return response["available"], response["reserved"], response["entries"]


class TestCredit:
    def test_a_credit_adds_to_the_balance(self, email: str, owner: Owner) -> None:
        assert balance(email) == (0, 0, 0)
        assert change("credit", email, 500, "a") == {
            "accountId": owner.workspace.owner_id,
            "balance": 500,
        }
        assert change("credit", email, 250, "b")["balance"] == 750
        assert balance(email) == (750, 0, 2)

    def test_repeating_a_key_always_returns_the_first_response(
        self, email: str, time: Time
    ) -> None:
        first = change("credit", email, 500, "a")
        change("credit", email, 1, "b")
        time.pass_by(days=1000)
        assert change("credit", email, 500, "a") == first
        assert balance(email) == (501, 0, 2)

    def test_a_key_with_other_arguments_is_refused(self, email: str, owner: Owner) -> None:
        change("credit", email, 500, "a")
        call_operator("create_account", email="other@example.com", password="long enough")
        assert refusal_code("credit", email, 501, "a") == "idempotency_mismatch"
        assert refusal_code("credit", "other@example.com", 500, "a") == "idempotency_mismatch"
        assert balance("other@example.com") == (0, 0, 0)
        assert change("adjust", email, 500, "a")["balance"] == 1000

    def test_concurrent_credits_with_one_key_happen_once(self, email: str) -> None:
        answers = run_concurrently(8, lambda _: change("credit", email, 500, "a"))
        assert answers == [answers[0]] * 8
        assert balance(email) == (500, 0, 1)

    def test_concurrent_credits_all_count(self, email: str) -> None:
        balances = run_concurrently(8, lambda n: change("credit", email, 10**n, f"{n}")["balance"])
        assert max(balances) == 11_111_111
        assert len(set(balances)) == 8
        assert balance(email) == (11_111_111, 0, 8)

    @pytest.mark.parametrize("kopecks", [0, -1, 10**11 + 1])
    def test_an_invalid_payment_is_refused(self, email: str, kopecks: int) -> None:
        assert refusal_code("credit", email, kopecks, "a") == "validation_error"

    def test_a_credit_is_in_the_accounts_audit_log(self, email: str, owner: Owner) -> None:
        change("credit", email, 500, "a")
        (record,) = audit.latest(owner.workspace.owner_id)
        assert (record.operation, record.actor) == ("credit", "operator")
        assert record.resources == [f"account:{owner.workspace.owner_id}"]


class TestAdjust:
    def test_an_adjustment_may_lower_the_balance_but_not_below_zero(self, email: str) -> None:
        assert refusal_code("adjust", email, -1, "a") == "conflict"
        assert change("adjust", email, 100, "b")["balance"] == 100
        assert refusal_code("adjust", email, -101, "c") == "conflict"
        assert change("adjust", email, -100, "d")["balance"] == 0
        assert refusal_code("adjust", email, 0, "e") == "validation_error"

    def test_concurrent_adjustments_do_not_go_below_zero(self, email: str) -> None:
        change("credit", email, 250, "a")

        def act(number: int) -> bool:
            try:
                return bool(change("adjust", email, -100, f"{number}"))
            except ConflictError:
                return False

        assert sum(run_concurrently(6, act)) == 2
        assert balance(email) == (50, 0, 3)


def test_the_ledger_is_read_newest_first(email: str) -> None:
    for number in range(12):
        change("credit", email, number + 1, f"{number}")
    entries = call_operator("list_ledger", account=email)["entries"]
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
    assert call_operator("list_ledger", account=email, limit=2)["entries"] == entries[:2]
    row = ledger.entries(accounts.require_by_email(email).id, 1)[0]
    assert row.reason == "Paid"


class TestSession:
    """Balances in the console."""

    def read(self, operation: str, account_id: str, **arguments: Any) -> Any:
        principal = SessionPrincipal(account_id=account_id, workspace_id="w", membership=Role.OWNER)
        reply = invoke(REGISTRY[operation], principal, lambda: arguments, request_id="r")
        return json.loads(reply.body)["data"]

    def test_a_session_reads_its_own_account(self, email: str, owner: Owner) -> None:
        change("credit", email, 500, "a")
        account_id = owner.workspace.owner_id
        for arguments in ({}, {"account": email}):
            assert self.read("get_balance", account_id, **arguments)["available"] == 500

    def test_a_session_does_not_read_another_account(self, email: str) -> None:
        account = call_operator("create_account", email="eve@example.com", password="long enough")
        assert self.read("get_balance", account["accountId"])["available"] == 0
        with pytest.raises(AppError) as caught:
            self.read("get_balance", account["accountId"], account=email)
        assert caught.value.status == 404


class TestStatement:
    """The ledger of the signed-in account, page by page, with descriptions."""

    def read(self, owner: Owner, **arguments: Any) -> Any:
        who = {"account_id": owner.workspace.owner_id}
        return call_console(owner.workspace.id, "get_statement", **who, **arguments)

    def chat(self, owner: Owner, agent_id: str) -> None:
        """Charge a request with 10 input and 30 output tokens, at one kopeck each."""
        place = owner.workspace
        prices = Prices(10**6, 10**6)
        terms = Terms(place.owner_id, place.id, agent_id, place.timezone, prices, "large-model")
        charging.settle(
            charging.reserve(terms, new_id(), 10, max_output_tokens=100), TokenUsage(10, 30)
        )

    def test_each_entry_describes_its_purpose(
        self, email: str, owner: Owner, things: Things
    ) -> None:
        entry_count = self.read(owner)["entries"]
        change("credit", email, 500, "a", "Invoice 7")
        self.chat(owner, things.agent)
        statement = self.read(owner)
        settled, reserved, paid = statement["lines"][:3]
        assert (statement["reserved"], statement["entries"]) == (0, entry_count + 3)
        assert statement["available"] == settled["balanceAfter"]
        assert (paid["kind"], paid["amount"], paid["reason"]) == ("topup", 500, "Invoice 7")
        assert (paid["agentName"], paid["model"], paid["inputTokens"]) == (None, None, None)
        assert (reserved["kind"], reserved["held"], reserved["model"]) == ("reserve", 110, None)
        assert settled | {"requestId": "r", "at": "t", "id": "n", "balanceAfter": 0} == {
            "id": "n",
            "kind": "settle",
            "amount": -40,
            "held": -110,
            "balanceAfter": 0,
            "requestId": "r",
            "agentId": things.agent,
            "agentName": "Baker",
            "reason": None,
            "model": "large-model",
            "inputTokens": 10,
            "outputTokens": 30,
            "segments": None,
            "at": "t",
        }

    def test_the_next_page_starts_where_the_last_one_ended(self, email: str, owner: Owner) -> None:
        for number in range(7):
            change("credit", email, number + 1, f"{number}")
        pages, cursor = [], None
        while True:
            statement = self.read(owner, limit=3, before=cursor)
            assert (statement["available"], statement["entries"]) == (28, 7)
            pages.append([entry["id"] for entry in statement["lines"]])
            cursor = statement["next"]
            if cursor is None:
                break
        assert pages == [["7", "6", "5"], ["4", "3", "2"], ["1"]]
        older = call_operator("list_ledger", account=email, before=3)["entries"]
        assert [entry["id"] for entry in older] == ["2", "1"]

    def test_bots_of_former_workspaces_are_not_named(
        self, owner: Owner, things: Things, new_owner: Callable[..., Owner]
    ) -> None:
        self.chat(owner, things.agent)
        elsewhere = new_owner().workspace.id
        statement = call_console(elsewhere, "get_statement", account_id=owner.workspace.owner_id)
        assert statement["lines"][0]["agentId"] == things.agent
        assert statement["lines"][0]["agentName"] is None

    def test_a_statement_takes_three_requests(self, owner: Owner, things: Things) -> None:
        with metering() as usage:
            self.read(owner)
        assert sorted(usage.calls) == ["BatchGetItem", "GetItem", "Query"]
