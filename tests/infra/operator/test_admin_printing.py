"""The operator's commands print tables on a terminal and JSON for programs."""

import json
from typing import Any

import pytest

from infra.operator import printing
from tests.conftest import Owner, call_operator
from tests.factories.operator import Operator


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as on a terminal."""
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def account(operator: Operator) -> str:
    """An account with some money."""
    operator.create_account("ann@example.com")
    words = ("--kopecks", "5000", "--reason", "a gift", "--idempotency-key", "1")
    operator.run("credit", "--account", "ann@example.com", *words)
    return "ann@example.com"


def command_output(operator: Operator, *words: str) -> str:
    """Run a command that must succeed, and return its whole output."""
    result = operator.invoke(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_terminal_shows_a_table_with_the_fields_of_the_result(
    operator: Operator, account: str, terminal: None
) -> None:
    table = command_output(operator, "balance", "--account", account)
    assert [line.split() for line in table.splitlines()][1:] == [
        ["available", "5000"],
        ["reserved", "0"],
        ["entries", "1"],
    ]
    assert "a gift" not in table


def test_a_terminal_shows_json_when_it_is_asked_for(
    operator: Operator, account: str, terminal: None
) -> None:
    printed = json.loads(command_output(operator, "balance", "--account", account, "--json"))
    assert printed["available"] == 5000


def test_a_pipe_gets_one_json_object(operator: Operator, account: str) -> None:
    assert operator.run("ledger", "--account", account)["entries"][0]["kind"] == "topup"


def entry(
    number: int, kind: str, amount: int, held_amount: int, request: str | None
) -> dict[str, Any]:
    """Return an entry of a ledger."""
    return {
        "id": str(number),
        "kind": kind,
        "amount": amount,
        "held": held_amount,
        "balanceAfter": 1000 - number,
        "requestId": request,
        "agentId": request and "bot",
        "at": f"2027-01-15T12:00:0{number}.000Z",
    }


def test_a_table_of_the_ledger_has_one_row_for_each_answer() -> None:
    entries = [
        entry(5, "reserve", 0, 40, "b"),
        entry(4, "settle", -7, -30, "a"),
        entry(3, "adjust", -1, 0, None),
        entry(2, "reserve", 0, 30, "a"),
        entry(1, "topup", 1000, 0, None),
    ]
    rows = printing.one_row_an_answer({"entries": entries})["entries"]
    columns = [(row["kind"], row["amount"], row["held"], row["balanceAfter"]) for row in rows]
    assert columns == [
        ("reserve", 0, 40, 995),
        ("settle", -7, 0, 996),
        ("adjust", -1, 0, 997),
        ("topup", 1000, 0, 999),
    ]


@pytest.mark.parametrize("option", ["--account", "--email"])
def test_an_account_is_named_by_the_same_option_everywhere(
    option: str, operator: Operator, owner: Owner
) -> None:
    operator.run("create-account", option, "bob@example.com", "--password", "long enough")
    home = operator.run("create-workspace", "--account", "bob@example.com", "--name", "Mill")
    call_operator("create_account", email="eve@example.com", password="long enough")
    member = ("--workspace", home["workspaceId"], option, "eve@example.com")
    assert operator.run("add-member", *member)["role"] == "member"
    assert operator.run("remove-member", *member)
    assert operator.run("disable-account", option, "eve@example.com")
