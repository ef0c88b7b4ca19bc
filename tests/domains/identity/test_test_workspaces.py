"""Test workspaces: who makes them, their keys, their limits, and that they cost nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import ids, test_workspaces
from chalicelib.core.errors import ConflictError, InTestWorkspaceError
from chalicelib.core.test_workspaces import is_test
from chalicelib.domains.billing.store import ledger
from chalicelib.domains.identity.store import accounts, api_keys, workspaces
from chalicelib.engine import indexing
from chalicelib.lib import tokens
from infra.bench.dynamodb.usage import metering
from infra.operator.transfer.rewriting import NewIds, is_id
from tests.conftest import Api, Owner, call_console, call_operator, run_concurrently
from tests.factories.chat import ask, new_bot
from tests.factories.people import Account


@pytest.fixture
def tests_of(owner: Owner) -> Callable[..., Any]:
    """Return a function that creates a test workspace of the owner, as the console does."""
    account = Account(owner.workspace.owner_id, accounts.get(owner.workspace.owner_id).email)

    def make(name: str = "Tests") -> Any:
        return account.call("platform", "create_test_workspace", "account", name=name)

    return make


def test_an_account_makes_at_most_three_test_workspaces(tests_of: Callable[..., Any]) -> None:
    made = [tests_of(f"Tests {number}") for number in range(3)]
    assert {workspace["plan"] for workspace in made} == {"test"}
    assert all(is_test(workspace["workspaceId"]) for workspace in made)
    with pytest.raises(ConflictError):
        tests_of("Tests 4")


def test_concurrent_calls_make_at_most_three_test_workspaces(
    owner: Owner, tests_of: Callable[..., Any]
) -> None:
    def make(_: int) -> bool:
        try:
            return bool(tests_of())
        except ConflictError:
            return False

    assert sum(run_concurrently(5, make)) == 3
    assert len(workspaces.owned_tests(owner.workspace.owner_id)) == 3


def test_the_operator_makes_a_test_workspace(owner: Owner) -> None:
    email = accounts.get(owner.workspace.owner_id).email
    made = call_operator(
        "create_workspace", owner=email, name="Tests", plan="enterprise", isTest=True
    )
    assert (is_test(made["workspaceId"]), made["plan"]) == (True, "test")


def test_a_plan_turns_no_workspace_into_another_kind(tester: Owner) -> None:
    with pytest.raises(InTestWorkspaceError):
        call_operator("set_plan", workspaceId=tester.workspace.id, plan="business")


def test_a_test_key_begins_differently_and_works_there_only(api: Api, tester: Owner) -> None:
    token = tester.token()
    assert token.startswith("svc_test_")
    listed = Api(token).get("/api/workspaces/list")
    assert listed["activeWorkspaceId"] == tester.workspace.id
    assert {each["id"]: each["isTest"] for each in listed["workspaces"]}[tester.workspace.id]
    assert Api(token).get("/api/workspace")["workspace"]["isTest"] is True
    assert api.get("/api/workspace")["workspace"]["isTest"] is False
    masked = call_console(tester.workspace.id, "list_keys")["keys"][0]["masked"]
    assert masked == f"svc_test_…{token[-4:]}"


@pytest.mark.parametrize("prefix", [tokens.PREFIX, tokens.TEST_PREFIX])
def test_a_key_of_one_kind_is_refused_in_a_workspace_of_the_other(
    prefix: str, owner: Owner, tester: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tester if prefix == tokens.PREFIX else owner
    monkeypatch.setattr(api_keys, "prefix_for", lambda _: prefix)
    token = other.token()
    monkeypatch.undo()
    assert Api(token).call("GET", "/api/workspace").status == 401


def test_a_call_with_a_test_key_sends_no_further_request(owner: Owner, tester: Owner) -> None:
    counts = []
    for each in (owner, tester):
        api = each.api()
        api.get("/api/products/list")
        with metering() as usage:
            api.get("/api/products/list")
        counts.append([request.operation for request in usage.requests])
    assert counts[0] == counts[1]


def test_a_full_noun_of_a_test_workspace_takes_no_further_record(
    owner: Owner, tester: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MAX_RECORDS", 2)
    products = [{"name": f"Bread {number}", "price": 100} for number in range(3)]
    api = tester.api()
    made = [api.post("/api/products/create", body)["product"]["id"] for body in products[:2]]
    refusal = api.call("POST", "/api/products/create", products[2])
    assert (refusal.status, refusal.data["code"]) == (409, "test_workspace")
    categories = [{"name": f"Category {number}"} for number in range(3)]
    for body in categories[:2]:
        api.post("/api/categories/create", body)
    refusal = api.call("POST", "/api/categories/create", categories[2])
    assert (refusal.status, refusal.data["key"]) == (409, "too_many_records")
    api.post("/api/products/update", {"id": made[0], "name": "Rye bread"})
    api.post("/api/products/delete", {"id": made[1]})
    api.post("/api/products/create", products[2])
    for body in products:
        owner.api().post("/api/products/create", body)


def test_a_chat_is_answered_by_the_demo_model_for_nothing(
    tester: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PROVIDER", "bedrock")
    bot = new_bot(tester, model="claude-opus-4.1", money=0)
    answer = ask(bot, "How much is rye bread?")
    assert (answer.status, bool(answer.text)) == (200, True)
    assert (bot.money, bot.kinds) == ((0, 0), [])
    assert ledger.entries(bot.account_id) == []


def test_a_draft_is_made_by_the_demo_model(tester: Owner) -> None:
    draft = tester.api().post("/api/products/ai-fill", {"name": "Rye bread"})
    assert draft["draft"]["name"] == "Rye bread"


def test_a_site_of_a_test_workspace_gets_no_domain(tester: Owner) -> None:
    api = tester.api()
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]
    body = {"id": site, "domain": "www.example.com"}
    refusal = api.call("POST", "/api/projects/set-domain", body)
    assert (refusal.status, refusal.data["code"]) == (409, "test_workspace")
    api.post("/api/projects/set-domain", {**body, "domain": None})


def test_the_balance_is_not_topped_up_in_a_test_workspace(tester: Owner) -> None:
    with pytest.raises(InTestWorkspaceError):
        call_console(
            tester.workspace.id,
            "start_top_up",
            account_id=tester.workspace.owner_id,
            amount=10_000,
        )


def test_a_copy_of_a_test_workspace_is_one() -> None:
    of_test, other = test_workspaces.new_id(), ids.new_id()
    copied = NewIds(b"seed", {of_test, other})
    assert (is_id(of_test), is_test(copied.new_id(of_test))) == (True, True)
    assert not is_test(copied.new_id(other))
