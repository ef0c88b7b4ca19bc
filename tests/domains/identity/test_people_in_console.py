"""Accounts, their workspaces and the members of a workspace, as the console shows them."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.principals import PLATFORM
from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, call_console, call_operator
from tests.support.keyed import keyed

pytestmark = [pytest.mark.store, pytest.mark.usefixtures("database")]


def make_account(email: str = "ada@example.com", **more: str) -> str:
    """Create an account, and return its id."""
    account = call_operator("create_account", email=email, password="long enough", **more)
    account_id: str = account["accountId"]
    return account_id


def make_workspace(owner: str, **more: str) -> str:
    """Create a workspace, and return its id."""
    workspace = call_operator("create_workspace", owner=owner, **{"name": "Bakery", **more})
    workspace_id: str = workspace["workspaceId"]
    return workspace_id


def join(workspace_id: str, email: str, role: str = "member") -> None:
    call_operator("add_member", workspaceId=workspace_id, email=email, role=role)


class TestGetAccount:
    def test_account_is_shown_inside_and_outside_a_workspace(self, time: Time) -> None:
        account = make_account(name="Ada", role="admin")
        time.pass_by(days=1)
        call_operator("set_password", email="ada@example.com", password="longer still")
        for place in (PLATFORM, make_workspace("ada@example.com")):
            response = call_console(place, "get_account", account_id=account, membership="account")
            assert response["account"] == {
                "id": account,
                "email": "ada@example.com",
                "name": "Ada",
                "role": "admin",
                "language": None,
                "createdAt": "2027-01-15T12:00:00.000Z",
            }

    def test_unknown_account_is_not_found(self) -> None:
        with pytest.raises(NotFoundError):
            call_console(PLATFORM, "get_account", account_id="nobody")


class TestListMembers:
    def list_members(self, workspace_id: str) -> Any:
        return call_console(workspace_id, "list_members", membership="member")["members"]

    def test_members_are_listed_in_the_order_of_joining(self, time: Time) -> None:
        owner, home = make_account(name="Ada"), make_workspace("ada@example.com")
        member_ids = [make_account(f"m{n}@example.com", name=f"M{n}") for n in (1, 2)]
        for name, role in (("m2", "manager"), ("m1", "member")):
            time.pass_by(days=1)
            join(home, f"{name}@example.com", role)
        assert self.list_members(home) == [
            {
                "accountId": account,
                "name": name,
                "email": f"{email}@example.com",
                "role": role,
                "joinedAt": f"2027-01-{day}T12:00:00.000Z",
                "resourceId": None,
            }
            for account, name, email, role, day in (
                (owner, "Ada", "ada", "owner", 15),
                (member_ids[1], "M2", "m2", "manager", 16),
                (member_ids[0], "M1", "m1", "member", 17),
            )
        ]

    def test_member_list_follows_role_changes_and_removal(self) -> None:
        make_account()
        home = make_workspace("ada@example.com")
        make_account("bob@example.com")
        for role in ("member", "manager"):
            join(home, "bob@example.com", role)
            assert [member["role"] for member in self.list_members(home)] == ["owner", role]
        call_operator("remove_member", workspaceId=home, email="bob@example.com")
        assert [member["role"] for member in self.list_members(home)] == ["owner"]

    def test_member_list_takes_two_requests(self, new_owner: Callable[..., Owner]) -> None:
        home = new_owner().workspace.id
        with metering() as usage:
            self.list_members(home)
        assert usage.calls == ["Query", "BatchGetItem"]

    def test_operator_can_list_members(self, new_owner: Callable[..., Owner]) -> None:
        home = new_owner().workspace.id
        assert call_operator("list_members", workspaceId=home)["members"] == self.list_members(home)
        with pytest.raises(NotFoundError, check=keyed("workspace")):
            call_operator("list_members", workspaceId="nobody")
