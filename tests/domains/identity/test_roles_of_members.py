"""Changes of roles, removal and leaving, as people of the workspace do it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.core.errors import AppError, ConflictError, ForbiddenError, NotFoundError
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.store import accounts, api_keys, connections, workspaces
from tests.conftest import Owner, all_rows, run_concurrently
from tests.factories.oauth import GRANT, connect
from tests.factories.people import Account

KEY = {"name": "Laptop", "scopes": ["crm:read"]}
ROLES = ("owner", "manager", "member")


@pytest.fixture
def home(owner: Owner) -> str:
    return owner.workspace.id


@pytest.fixture
def people(owner: Owner) -> dict[str, Account]:
    """A person of each role, and a stranger."""
    boss = accounts.get(owner.workspace.owner_id)
    members = {"owner": Account(boss.id, boss.email)}
    for name in ("manager", "member", "other-manager", "other-member"):
        members[name] = Account.made(name)
        members[name].joins(owner.workspace.id, name.rpartition("-")[2])
    return members | {"stranger": Account.made("stranger")}


def is_refused(call: Callable[[], Any]) -> bool:
    """Whether a call is refused and changes nothing."""
    rows_before = all_rows()
    try:
        call()
    except (ConflictError, ForbiddenError, NotFoundError):
        assert all_rows() == rows_before
        return True
    return False


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize("target", ["owner", "other-manager", "other-member", "stranger"])
def test_only_the_owner_changes_roles(
    home: str, people: dict[str, Account], caller: str, target: str
) -> None:
    for role in ("manager", "member"):
        arguments = {"email": people[target].email, "role": role}
        was_refused = is_refused(partial(people[caller].call, home, "set_member_role", **arguments))
        assert was_refused is (caller != "owner" or target in {"owner", "stranger"})
        if not was_refused:
            assert people[target].role_in(home) == role


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize("target", ["owner", "other-manager", "other-member", "stranger"])
def test_members_remove_members_of_lower_roles(
    home: str, people: dict[str, Account], caller: str, target: str
) -> None:
    may = (caller, target) in {
        ("owner", "other-manager"),
        ("owner", "other-member"),
        ("manager", "other-member"),
    }
    email = people[target].email
    assert is_refused(lambda: people[caller].call(home, "remove_member", email=email)) is not may
    if may:
        assert people[target].role_in(home) is None


@pytest.mark.parametrize("role", ROLES)
def test_everyone_but_the_owner_can_leave(home: str, people: dict[str, Account], role: str) -> None:
    assert is_refused(lambda: people[role].call(home, "leave_workspace")) is (role == "owner")
    assert people[role].role_in(home) == ("owner" if role == "owner" else None)


@pytest.mark.parametrize("end", ["demoted", "removed", "left"])
def test_keys_and_apps_end_with_the_role(
    owner: Owner, home: str, people: dict[str, Account], end: str
) -> None:
    boss, manager = people["owner"], people["manager"]
    manager.call(home, "create_key", **KEY)
    manager.call(home, "grant_access", **GRANT)
    boss.call(home, "create_key", **KEY)
    connect(owner.workspace)
    match end:
        case "demoted":
            boss.call(home, "set_member_role", email=manager.email, role="member")
        case "removed":
            boss.call(home, "remove_member", email=manager.email)
        case "left":
            manager.call(home, "leave_workspace")
    assert {key.account_id for key in api_keys.live(home)} == {boss.id}
    assert {connection.account_id for connection in connections.live(home)} == {boss.id}


def test_removal_does_not_reveal_whether_an_account_exists(
    home: str, people: dict[str, Account]
) -> None:
    failures = set()
    for email in (people["stranger"].email, "nobody@example.com"):
        with pytest.raises(NotFoundError) as caught:
            people["manager"].call(home, "remove_member", email=email)
        failures.add(caught.value.message)
    assert len(failures) == 1


@pytest.mark.store
def test_manager_cannot_remove_a_just_promoted_member(
    home: str, people: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    member, stage, promoted = people["member"], memberships.stage_removal, []

    def late(*args: Any) -> Any:
        if not promoted:
            promoted.append(True)
            member.joins(home, "manager")
        return stage(*args)

    monkeypatch.setattr(memberships, "stage_removal", late)
    with pytest.raises(ForbiddenError):
        people["manager"].call(home, "remove_member", email=member.email)
    assert member.role_in(home) == "manager"


@pytest.mark.store
def test_just_demoted_manager_cannot_remove_members(
    home: str, people: dict[str, Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, stage, demoted = people["manager"], memberships.stage_removal, []

    def late(*args: Any) -> Any:
        if not demoted:
            demoted.append(True)
            manager.joins(home, "member")
        return stage(*args)

    monkeypatch.setattr(memberships, "stage_removal", late)
    with pytest.raises(ForbiddenError):
        manager.call(home, "remove_member", email=people["member"].email)
    assert people["member"].role_in(home) == "member"


@pytest.mark.store
def test_concurrent_removal_and_promotion_leave_no_partial_member(
    home: str, people: dict[str, Account]
) -> None:
    boss, member = people["owner"], people["member"]

    def act(turn: int) -> None:
        try:
            if turn % 2:
                boss.call(home, "set_member_role", email=member.email, role="manager")
            else:
                boss.call(home, "remove_member", email=member.email)
        except AppError:
            pass

    run_concurrently(4, act)
    account_ids = [member.account.id for member in workspaces.members(home)]
    assert member.role_in(home) is None
    assert member.id not in account_ids
