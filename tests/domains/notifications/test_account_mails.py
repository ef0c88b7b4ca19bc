"""Tests of the one e-mail that an account gets before its address is proved."""

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError, UnauthorizedError
from chalicelib.core.principals import PLATFORM
from chalicelib.domains.identity.store import accounts, console_sessions
from tests.conftest import PASSWORD, Api, Owner, call_console, call_operator
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.console import begun
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import FORM, submit
from tests.factories.people import accept_as_new, look_at

pytestmark = pytest.mark.usefixtures("database")


class TestAnUnprovedAccount:
    """Attack in which an owner invites any address, and takes the link from the console."""

    VICTIM = "ceo@bank.example"

    @pytest.fixture
    def account(self, inbox: Inbox, owner: Owner) -> str:
        invitation = call_operator(
            "invite_member", workspaceId=owner.workspace.id, email=self.VICTIM
        )
        joined = accept_as_new(invitation["url"].rpartition("/")[2])
        return str(joined["accountId"])

    def mails(self, inbox: Inbox) -> list[Any]:
        run_until_idle()
        return [message for message in inbox.mails if message["To"] == self.VICTIM]

    def test_unproved_account_gets_one_email_without_user_content(
        self, account: str, inbox: Inbox, owner: Owner, api: Api
    ) -> None:
        call_console(
            owner.workspace.id,
            "set_notifications",
            account_id=account,
            membership="member",
            choices=[{"kind": "lead", "mail": True, "telegram": False}],
        )
        (proof,) = self.mails(inbox)
        assert "/account/proof/" in text_of(proof)
        assert owner.workspace.name not in text_of(proof)
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        for number in range(3):
            submit(form, name="Your account is blocked", email=f"a{number}@example.com")
        request = {"account_id": account, "membership": "account"}
        call_console(owner.workspace.id, "request_proof", **request)
        assert len(self.mails(inbox)) == 1

    def test_account_gets_messages_after_its_address_is_proved(
        self, account: str, inbox: Inbox, owner: Owner, api: Api
    ) -> None:
        (proof,) = self.mails(inbox)
        token = text_of(proof).partition("/account/proof/")[2].split()[0]
        caller = {"account_id": account, "membership": "member"}
        assert not accounts.get(account).is_proved
        call_console(owner.workspace.id, "prove_email", **caller, token=token)
        assert accounts.get(account).is_proved
        choice = {"kind": "lead", "mail": True, "telegram": False}
        call_console(owner.workspace.id, "set_notifications", **caller, choices=[choice])
        form = api.post("/api/forms/create", FORM)["form"]["id"]
        submit(form, name="Ada", email="a@example.com")
        assert len(self.mails(inbox)) == 2

    def test_address_is_not_proved_by_another_reader_of_the_link(
        self, account: str, inbox: Inbox, owner: Owner
    ) -> None:
        (proof,) = self.mails(inbox)
        token = text_of(proof).partition("/account/proof/")[2].split()[0]
        with pytest.raises(NotFoundError):
            call_console(
                PLATFORM,
                "prove_email",
                account_id=owner.workspace.owner_id,
                membership="account",
                token=token,
            )
        assert not accounts.get(account).is_proved

    def test_unproved_account_is_lost_to_the_owner_of_the_address(
        self, account: str, inbox: Inbox, new_owner: Callable[..., Owner]
    ) -> None:
        other = new_owner()
        session = begun(self.VICTIM, PASSWORD)
        self.mails(inbox)
        inbox.clear()
        call_operator("invite_member", workspaceId=other.workspace.id, email=self.VICTIM)
        (invitation,) = self.mails(inbox)
        token = text_of(invitation).partition("/invitations/")[2].split()[0]
        assert look_at(token)["hasAccount"] is False
        joined = accept_as_new(token, "The real one", "a password of the real one")
        assert joined["accountId"] == account
        assert accounts.get(account).is_proved
        row = console_sessions.find(session)
        assert row is None or row.epoch != accounts.get(account).session_epoch
        with pytest.raises(UnauthorizedError):
            begun(self.VICTIM, PASSWORD)
        assert begun(self.VICTIM, "a password of the real one")
