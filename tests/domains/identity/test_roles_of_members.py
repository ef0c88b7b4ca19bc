"""Role changes, removals and departures of a workspace's members."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.core.errors import AppError, ConflictError, ForbiddenError, NotFoundError
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from tests.conftest import Owner, run_concurrently
from tests.factories.console_forms import read_rows
from tests.factories.oauth import GRANT, connect
from tests.factories.people import Account

KEY = {"name": "Laptop", "scopes": ["crm:read"]}
ROLES = ("owner", "manager", "member")


@pytest.fixture
def role_accounts(owner: Owner) -> dict[str, Account]:
    """An account of each role, and one that is not a member."""
    owner_account = accounts.get(owner.workspace.owner_id)
    members = {"owner": Account(owner_account.id, owner_account.email)}
    for name in ("manager", "member", "other-manager", "other-member"):
        members[name] = Account.create(name)
        members[name].joins(owner.workspace.id, name.rpartition("-")[2])
    return members | {"stranger": Account.create("stranger")}


def is_refused(call: Callable[[], Any]) -> bool:
    """Whether a call is refused and changes nothing."""
    rows_before = read_rows()
    try:
        call()
    except (ConflictError, ForbiddenError, NotFoundError):
        assert read_rows() == rows_before
        return True
    return False


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize("target", ["owner", "other-manager", "other-member", "stranger"])
def test_only_the_owner_changes_roles(
    workspace: str, role_accounts: dict[str, Account], caller: str, target: str
) -> None:
    for role in ("manager", "member"):
        arguments = {"email": role_accounts[target].email, "role": role}
        was_refused = is_refused(
            partial(role_accounts[caller].call, workspace, "set_member_role", **arguments)
        )
        assert was_refused is (caller != "owner" or target in {"owner", "stranger"})
        if not was_refused:
            assert role_accounts[target].role_in(workspace) == role


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize("target", ["owner", "other-manager", "other-member", "stranger"])
def test_members_remove_members_of_lower_roles(
    workspace: str, role_accounts: dict[str, Account], caller: str, target: str
) -> None:
    may = (caller, target) in {
        ("owner", "other-manager"),
        ("owner", "other-member"),
        ("manager", "other-member"),
    }
    email = role_accounts[target].email
    remove = partial(role_accounts[caller].call, workspace, "remove_member", email=email)
    assert is_refused(remove) is not may

    if may:
        assert role_accounts[target].role_in(workspace) is None


@pytest.mark.parametrize("role", ROLES)
def test_everyone_but_the_owner_can_leave(
    workspace: str, role_accounts: dict[str, Account], role: str
) -> None:
    assert is_refused(lambda: role_accounts[role].call(workspace, "leave_workspace")) is (
        role == "owner"
    )
    assert role_accounts[role].role_in(workspace) == ("owner" if role == "owner" else None)


@pytest.mark.parametrize("end", ["demoted", "removed", "left"])
def test_keys_and_apps_end_with_the_role(
    owner: Owner, workspace: str, role_accounts: dict[str, Account], end: str
) -> None:
    owner_account, manager = role_accounts["owner"], role_accounts["manager"]
    manager.call(workspace, "create_key", **KEY)
    manager.call(workspace, "grant_access", **GRANT)
    owner_account.call(workspace, "create_key", **KEY)
    connect(owner.workspace)
    match end:
        case "demoted":
            owner_account.call(workspace, "set_member_role", email=manager.email, role="member")
        case "removed":
            owner_account.call(workspace, "remove_member", email=manager.email)
        case "left":
            manager.call(workspace, "leave_workspace")
    assert {key.account_id for key in api_keys.live(workspace)} == {owner_account.id}
    live_apps = connections.live(workspace)
    assert {connection.account_id for connection in live_apps} == {owner_account.id}


def test_removal_does_not_reveal_whether_an_account_exists(
    workspace: str, role_accounts: dict[str, Account]
) -> None:
    failures = set()
    for email in (role_accounts["stranger"].email, "nobody@example.com"):
        with pytest.raises(NotFoundError) as caught:
            role_accounts["manager"].call(workspace, "remove_member", email=email)
        failures.add(caught.value.message)
    assert len(failures) == 1


@pytest.mark.store
def test_manager_cannot_remove_a_just_promoted_member(
    workspace: str, role_accounts: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    member, stage, promoted = role_accounts["member"], memberships.stage_removal, []

    def late(*args: Any) -> Any:
        if not promoted:
            promoted.append(True)
            member.joins(workspace, "manager")
        return stage(*args)

    monkeypatch.setattr(memberships, "stage_removal", late)
    with pytest.raises(ForbiddenError):
        role_accounts["manager"].call(workspace, "remove_member", email=member.email)
    assert member.role_in(workspace) == "manager"


@pytest.mark.store
def test_just_demoted_manager_cannot_remove_members(
    workspace: str, role_accounts: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, stage, demoted = role_accounts["manager"], memberships.stage_removal, []

    def late(*args: Any) -> Any:
        if not demoted:
            demoted.append(True)
            manager.joins(workspace, "member")
        return stage(*args)

    monkeypatch.setattr(memberships, "stage_removal", late)
    with pytest.raises(ForbiddenError):
        manager.call(workspace, "remove_member", email=role_accounts["member"].email)
    assert role_accounts["member"].role_in(workspace) == "member"


@pytest.mark.store
def test_concurrent_removal_and_promotion_leave_no_partial_member(
    workspace: str, role_accounts: dict[str, Account]
) -> None:
    owner_account, member = role_accounts["owner"], role_accounts["member"]

    def act(turn: int) -> None:
        try:
            if turn % 2:
                owner_account.call(workspace, "set_member_role", email=member.email, role="manager")
            else:
                owner_account.call(workspace, "remove_member", email=member.email)
        except AppError:
            pass

    run_concurrently(4, act)
    account_ids = [member.account.id for member in workspaces.members(workspace)]
    assert member.role_in(workspace) is None
    assert member.id not in account_ids
