"""Invitations to a workspace, from their creation to their acceptance."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import (
    AppError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnavailableError,
    ValidationError,
)
from chalicelib.domains.identity.flows import memberships
from chalicelib.domains.identity.operations import invitations as operations
from chalicelib.domains.identity.store import accounts, invitations, workspaces
from chalicelib.engine import audit
from infra.bench.dynamodb.usage import metering
from tests.conftest import PASSWORD, Owner, call_operator, run_concurrently
from tests.domains.identity.helpers import is_unknown_link, joined
from tests.factories.console import begun
from tests.factories.people import Account, accept_as_new, invite, look_at, read_rows
from tests.factories.sites import transactions_failing_after
from tests.support.keyed import keyed

IVY = "ivy@example.com"


class TestWhoMayInvite:
    @pytest.mark.parametrize(
        ("inviter", "invited", "may"),
        [
            ("owner", "manager", True),
            ("owner", "member", True),
            ("manager", "manager", False),
            ("manager", "member", True),
            ("member", "member", False),
        ],
    )
    def test_members_invite_to_roles_below_their_own(
        self, workspace: str, owner_account: Account, inviter: str, invited: str, may: bool
    ) -> None:
        person = owner_account
        if inviter != "owner":
            person = Account.create("ann")
            person.joins(workspace, inviter)
        if may:
            accept_as_new(invite(person, workspace, IVY, invited))
            assert Account(accounts.require_by_email(IVY).id, IVY).role_in(workspace) == invited
            return
        rows_before = read_rows()
        with pytest.raises(ForbiddenError):
            invite(person, workspace, IVY, invited)
        assert read_rows() == rows_before

    @pytest.mark.parametrize("role", ["owner", "account", "admin", ""])
    def test_other_roles_cannot_be_given(
        self, workspace: str, owner_account: Account, role: str
    ) -> None:
        with pytest.raises(ValidationError):
            invite(owner_account, workspace, IVY, role)

    def test_inviter_demoted_after_the_request_is_refused(
        self, workspace: str, manager: Account
    ) -> None:
        manager.joins(workspace, "member")
        with pytest.raises(ForbiddenError):
            manager.call(workspace, "invite_member", "manager", email=IVY)

    def test_a_session_invites_to_its_own_workspace_only(
        self, workspace: str, owner_account: Account, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner().workspace.id
        invitation = owner_account.call(workspace, "invite_member", email=IVY, workspaceId=other)
        token = invitation["url"].rpartition("/")[2]
        assert look_at(token)["workspace"] == workspaces.get(workspace).name
        assert invitations.open_ones(other) == []

    def test_operators_invitation_counts_as_the_owners(
        self, workspace: str, owner_account: Account
    ) -> None:
        invitation = call_operator(
            "invite_member", workspaceId=workspace, email=IVY, role="manager"
        )
        (listed_invitation,) = owner_account.call(workspace, "list_invitations")["invitations"]
        assert listed_invitation["inviter"] == accounts.get(owner_account.id).name
        assert listed_invitation["works"]
        accept_as_new(invitation["url"].rpartition("/")[2])
        assert IVY in joined(workspace)

    def test_a_member_is_not_invited_again(self, workspace: str, owner_account: Account) -> None:
        Account.create("ivy").joins(workspace, "member")
        with pytest.raises(ConflictError, check=keyed("already_member")):
            invite(owner_account, workspace, "Ivy@Example.com")

    def test_invitation_does_not_reveal_whether_an_account_exists(
        self, workspace: str, owner_account: Account
    ) -> None:
        Account.create("ivy")
        known, unknown = (
            owner_account.call(workspace, "invite_member", email=email)
            for email in (IVY, "ivo@example.com")
        )
        differ = {"id", "email", "url", "expiresAt"}
        assert {k: v for k, v in known.items() if k not in differ} == {
            k: v for k, v in unknown.items() if k not in differ
        }

    def test_open_invitations_of_a_workspace_are_limited(
        self, workspace: str, owner_account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(operations, "MAX_OPEN", 2)
        invite(owner_account, workspace, "a@example.com")
        token = invite(owner_account, workspace, "b@example.com")
        with pytest.raises(ConflictError, match="Revoke an invitation"):
            invite(owner_account, workspace, "c@example.com")
        invite(owner_account, workspace, "b@example.com")  # replaces an invitation of its own
        assert is_unknown_link(token)

    def test_concurrent_invitations_do_not_exceed_the_limit(
        self, workspace: str, owner_account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(operations, "MAX_OPEN", 2)

        def act(number: int) -> bool:
            try:
                return bool(invite(owner_account, workspace, f"p{number}@example.com"))
            except ConflictError:
                return False

        assert sum(run_concurrently(4, act)) == 2
        assert len(invitations.open_ones(workspace)) == 2


class TestAccept:
    def test_a_new_account_joins_and_is_signed_in(
        self, workspace: str, owner_account: Account
    ) -> None:
        session = accept_as_new(invite(owner_account, workspace, IVY), name="  Ivy  ")
        account = accounts.require_by_email(IVY)
        assert (account.name, account.role, account.id) == ("Ivy", "user", session["accountId"])
        assert session["slug"] == workspaces.get(workspace).slug
        assert begun(IVY, PASSWORD)
        (entry, *_) = audit.latest(workspace)
        assert entry.operation == "create_invited_account"
        assert f"account:{account.id}" in entry.resources
        assert any(resource.startswith("invitation:") for resource in entry.resources)

    def test_the_account_of_the_address_joins(self, workspace: str, owner_account: Account) -> None:
        ivy = Account.create("ivy")
        token = invite(owner_account, workspace, "IVY@example.com", "manager")
        assert look_at(token)["hasAccount"] is True
        assert ivy.accept(token)["role"] == "manager"
        assert ivy.role_in(workspace) == "manager"
        (entry, *_) = audit.latest(workspace)
        assert (entry.operation, entry.actor) == ("accept_invitation", ivy.id)

    def test_another_account_is_refused(self, workspace: str, owner_account: Account) -> None:
        thief, token = Account.create("thief"), invite(owner_account, workspace, IVY)
        rows_before = read_rows()
        with pytest.raises(ForbiddenError, match=f"is for {IVY}"):
            thief.accept(token)
        assert read_rows() == rows_before
        accept_as_new(token)

    def test_no_second_account_is_made_for_an_address(
        self, workspace: str, owner_account: Account
    ) -> None:
        token = invite(owner_account, workspace, IVY)
        Account.create("ivy")
        rows_before = read_rows()
        with pytest.raises(ConflictError):
            accept_as_new(token, password="another password")
        assert read_rows() == rows_before

    def test_existing_member_keeps_the_role(self, workspace: str, owner_account: Account) -> None:
        ivy = Account.create("ivy")
        token = invite(owner_account, workspace, IVY)
        ivy.joins(workspace, "manager")
        assert ivy.accept(token)["role"] == "manager"
        assert ivy.role_in(workspace) == "manager"
        assert is_unknown_link(token)

    @pytest.mark.parametrize("password", ["", "short", "x" * 1001])
    def test_a_bad_password_leaves_the_link_usable(
        self, workspace: str, owner_account: Account, password: str
    ) -> None:
        token = invite(owner_account, workspace, IVY)
        with pytest.raises(ValidationError):
            accept_as_new(token, password=password)
        accept_as_new(token)

    def test_acceptance_is_one_transaction(self, workspace: str, owner_account: Account) -> None:
        token = invite(owner_account, workspace, IVY)
        rows_before = read_rows()
        with transactions_failing_after(0), pytest.raises(UnavailableError):
            accept_as_new(token)
        assert read_rows() == rows_before
        with metering() as usage:
            accept_as_new(token)
        assert usage.calls.count("TransactWriteItems") == 1
        assert IVY in joined(workspace)


@pytest.mark.store
class TestAtTheSameMoment:
    def test_one_of_two_acceptances_makes_the_account(
        self, workspace: str, owner_account: Account
    ) -> None:
        token = invite(owner_account, workspace, IVY)
        sessions = list(filter(None, run_concurrently(4, lambda _: attempt(accept_as_new, token))))
        assert len(sessions) == 1
        assert joined(workspace).count(IVY) == 1
        operations = [event.operation for event in audit.latest(workspace)]
        assert operations.count("create_invited_account") == 1

    def test_one_account_that_accepts_twice_joins_once(
        self, workspace: str, owner_account: Account
    ) -> None:
        ivy, token = Account.create("ivy"), invite(owner_account, workspace, IVY)
        memberships = list(filter(None, run_concurrently(4, lambda _: attempt(ivy.accept, token))))
        assert len(memberships) == 1
        assert joined(workspace).count(IVY) == 1

    def test_two_workspaces_make_one_account_for_an_address(
        self, workspace: str, owner_account: Account, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner().workspace
        there = Account(other.owner_id, "")
        tokens = [invite(owner_account, workspace, IVY), invite(there, other.id, IVY)]
        sessions = run_concurrently(2, lambda number: attempt(accept_as_new, tokens[number]))
        assert len(list(filter(None, sessions))) == 1
        assert (IVY in joined(workspace)) is not (IVY in joined(other.id))

    def test_acceptance_and_revocation_exclude_each_other(
        self, workspace: str, owner_account: Account
    ) -> None:
        for number in range(4):
            email = f"p{number}@example.com"
            token = invite(owner_account, workspace, email)
            (invitation,) = owner_account.call(workspace, "list_invitations")["invitations"]

            def act(turn: int, token: str = token, invitation: Any = invitation) -> Any:
                if turn:
                    return attempt(accept_as_new, token)
                return attempt(
                    lambda _: owner_account.call(
                        workspace, "revoke_invitation", id=invitation["id"]
                    ),
                    token,
                )

            revoked, accepted = run_concurrently(2, act)
            assert bool(revoked) is not bool(accepted)
            assert (email in joined(workspace)) is bool(accepted)

    @pytest.mark.parametrize("loss", ["removed", "demoted"])
    def test_a_right_lost_before_the_commit_refuses_the_acceptance(
        self, workspace: str, manager: Account, loss: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        token, stage = invite(manager, workspace, IVY), memberships.stage_joining
        lost: list[bool] = []

        def late(*args: Any) -> None:
            if not lost:
                lost.append(True)
                if loss == "removed":
                    manager.is_removed_from(workspace)
                else:
                    manager.joins(workspace, "member")
            stage(*args)

        monkeypatch.setattr(memberships, "stage_joining", late)
        with pytest.raises(NotFoundError):
            accept_as_new(token)
        assert lost
        assert accounts.find_by_email(IVY) is None
        assert IVY not in joined(workspace)


def attempt(use: Callable[[str], Any], token: str) -> Any:
    try:
        return use(token)
    except AppError:
        return None
