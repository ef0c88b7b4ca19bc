"""The life of the links of invitations."""

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.domains.identity.store import invitations, workspaces
from chalicelib.domains.identity.store.invitations import InvitationRow
from chalicelib.engine.conditional_updates import update_if
from tests.conftest import Time, all_rows, call_operator
from tests.domains.identity.helpers import is_unknown_link, joined
from tests.factories.people import Account, accept_as_new, invite, look_at, read_rows

IVY = "ivy@example.com"


class TestLink:
    def test_only_a_hash_of_the_link_is_stored(
        self, workspace: str, owner_account: Account
    ) -> None:
        token = invite(owner_account, workspace, IVY)
        assert len(token) == 43
        assert token not in str(all_rows())
        assert "url" not in str(owner_account.call(workspace, "list_invitations"))

    def test_a_link_works_for_seven_days(
        self, workspace: str, owner_account: Account, time: Time
    ) -> None:
        token = invite(owner_account, workspace, IVY)
        time.pass_by(days=7, seconds=-1)
        invitation = look_at(token)
        assert invitation["expiresAt"] == "2027-01-22T12:00:00.000Z"
        assert (invitation["email"], invitation["role"]) == (IVY, "member")
        assert invitation["hasAccount"] is False
        time.pass_by(seconds=1)
        assert is_unknown_link(token)
        assert owner_account.call(workspace, "list_invitations")["invitations"] == []

    def test_a_link_works_once(self, workspace: str, owner_account: Account) -> None:
        token = invite(owner_account, workspace, IVY)
        accept_as_new(token)
        assert is_unknown_link(token)
        assert owner_account.call(workspace, "list_invitations")["invitations"] == []

    def test_a_revoked_link_does_not_work(
        self, workspace: str, owner_account: Account, manager: Account
    ) -> None:
        token = invite(owner_account, workspace, IVY, "manager")
        (invitation,) = owner_account.call(workspace, "list_invitations")["invitations"]
        manager.call(workspace, "revoke_invitation", id=invitation["id"])
        assert is_unknown_link(token)
        with pytest.raises(NotFoundError):
            manager.call(workspace, "revoke_invitation", id=invitation["id"])

    def test_a_new_link_for_an_address_ends_the_earlier_one(
        self, workspace: str, owner_account: Account
    ) -> None:
        first = invite(owner_account, workspace, IVY)
        second = invite(owner_account, workspace, IVY, "manager")
        assert is_unknown_link(first)
        assert look_at(second)["role"] == "manager"
        assert len(owner_account.call(workspace, "list_invitations")["invitations"]) == 1

    @pytest.mark.parametrize("token", ["", "x", "A" * 43, "é" * 43, "A" * 100, "../", "%00"])
    def test_other_tokens_are_unknown_links(self, database: None, token: str) -> None:
        with pytest.raises(NotFoundError):
            look_at(token)

    @pytest.mark.parametrize("loss", ["removed", "demoted", "disabled"])
    def test_a_link_ends_with_the_right_of_its_inviter(
        self, workspace: str, manager: Account, owner_account: Account, loss: str
    ) -> None:
        token = invite(manager, workspace, IVY)
        match loss:
            case "removed":
                manager.is_removed_from(workspace)
            case "demoted":
                manager.joins(workspace, "member")
            case "disabled":
                call_operator("disable_account", email=manager.email)
        assert is_unknown_link(token)
        (invitation,) = owner_account.call(workspace, "list_invitations")["invitations"]
        assert invitation["works"] is False
        assert IVY not in joined(workspace)

    @pytest.mark.parametrize("loss", ["removed", "demoted"])
    def test_ended_link_is_not_revived_by_a_promotion(
        self, workspace: str, manager: Account, owner_account: Account, loss: str
    ) -> None:
        token = invite(manager, workspace, IVY)
        if loss == "removed":
            manager.is_removed_from(workspace)
        else:
            manager.joins(workspace, "member")
        manager.joins(workspace, "manager")
        assert is_unknown_link(token)
        (invitation,) = owner_account.call(workspace, "list_invitations")["invitations"]
        assert invitation["works"] is False
        assert look_at(invite(manager, workspace, IVY))["role"] == "member"

    def test_a_role_that_is_set_again_ends_no_link(self, workspace: str, manager: Account) -> None:
        token = invite(manager, workspace, IVY)
        manager.joins(workspace, "manager")
        assert look_at(token)["role"] == "member"

    def test_link_without_a_term_works_until_its_inviter_loses_the_right(
        self, workspace: str, manager: Account
    ) -> None:
        """Rows of earlier releases have no term."""
        token = invite(manager, workspace, IVY)
        for row in (
            workspaces.membership(manager.id, workspace_id=workspace),
            next(iter(invitations.open_ones(workspace))),
        ):
            assert row is not None
            attribute = "inviter_term" if isinstance(row, InvitationRow) else "term"
            assert update_if(row, [getattr(type(row), attribute).remove()], type(row).pk.exists())
        assert look_at(token)["role"] == "member"
        manager.joins(workspace, "member")
        manager.joins(workspace, "manager")
        assert is_unknown_link(token)

    def test_reading_an_invitation_changes_nothing(
        self, workspace: str, owner_account: Account
    ) -> None:
        token, rows_before = invite(owner_account, workspace, IVY), None
        for _ in range(3):
            rows_before = rows_before or read_rows()
            look_at(token)
        assert read_rows() == rows_before
