"""Emails with the links of invitations."""

import hashlib
import re
from typing import Any

import pytest

from chalicelib.core.errors import NotFoundError
from chalicelib.core.jobs import JOB_HANDLERS
from chalicelib.domains.identity.rules.job_kinds import MAIL_INVITATION
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError
from tests.conftest import Owner, Time, call_console, call_operator
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.people import accept_as_new, look_at

pytestmark = pytest.mark.usefixtures("database")
IVY = "ivy@example.com"


def invite(owner: Owner, email: str = IVY) -> Any:
    return call_operator("invite_member", workspaceId=owner.workspace.id, email=email)


def messages_to(inbox: Inbox, email: str = IVY) -> list[Any]:
    run_until_idle()
    return [message for message in inbox.mails if message["To"] == email]


def token_in(message: Any) -> str:
    """Return the token of the link in an email."""
    return re.findall(r"/invitations/(\S+)", text_of(message))[0]


def mail_states(owner: Owner) -> list[Any]:
    """Return the state of each invitation's email in the list."""
    rows = call_console(owner.workspace.id, "list_invitations")["invitations"]
    return [(row["mail"], row["mailReason"]) for row in rows]


def test_invitation_is_emailed_with_its_link(inbox: Inbox, owner: Owner) -> None:
    invitation = invite(owner)
    assert (invitation["isMailed"], invitation["mail"]) == (False, "waiting")
    (message,) = messages_to(inbox)
    assert mail_states(owner) == [("sent", None)]
    assert owner.workspace.name in message["Subject"]
    assert message["From"].startswith(f"{owner.workspace.name} via ")
    token = token_in(message)
    assert token in text_of(message, "html")
    assert token not in invitation["url"]
    assert look_at(token) == look_at(invitation["url"].rpartition("/")[2])


def test_the_job_has_neither_the_link_nor_the_address(inbox: Inbox, owner: Owner) -> None:
    invitation = invite(owner)
    (job,) = [
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == MAIL_INVITATION
    ]
    assert job.payload == {"invitationId": invitation["id"]}


def test_link_is_only_shown_without_a_mail_provider(owner: Owner) -> None:
    assert invite(owner)["isMailed"] is False
    assert not [
        e for e in jobs.read_workspace_jobs(owner.workspace.id) if e.kind == MAIL_INVITATION
    ]


def test_revoked_or_replaced_invitation_is_not_emailed(inbox: Inbox, owner: Owner) -> None:
    invite(owner)
    second = invite(owner)
    (message,) = messages_to(inbox)
    assert look_at(token_in(message))["email"] == second["email"]


def test_expired_invitation_is_not_emailed(inbox: Inbox, owner: Owner, time: Time) -> None:
    invite(owner)
    time.pass_by(days=8)
    assert messages_to(inbox) == []


def test_suppressed_address_gets_no_email(
    inbox: Inbox, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_gate, "is_suppressed", lambda address, *_: address == IVY)
    invite(owner)
    invite(owner, "ivo@example.com")
    assert messages_to(inbox) == []
    assert ("withheld", "by_bounce") in mail_states(owner)
    assert len(messages_to(inbox, "ivo@example.com")) == 1


def test_address_gets_five_emails_an_hour_and_the_sixth_later(
    inbox: Inbox, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
) -> None:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    for _ in range(6):
        last = invite(owner, "ivy+tag@example.com")
        run_until_idle()
    assert len(messages_to(inbox, "ivy+tag@example.com")) == 5
    assert mail_states(owner) == [("waiting", "by_address")]
    time.pass_by(hours=1)
    assert len(messages_to(inbox, "ivy+tag@example.com")) == 6
    assert look_at(last["url"].rpartition("/")[2])["email"] == "ivy+tag@example.com"
    monkeypatch.undo()
    reload_settings()


def test_repeated_job_sends_no_second_email(
    inbox: Inbox, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite(owner)
    (job,) = [
        job for job in jobs.read_workspace_jobs(owner.workspace.id) if job.kind == MAIL_INVITATION
    ]
    sent_ids: list[str] = []
    monkeypatch.setattr(mail, "send", lambda message: sent_ids.append(message.id))
    for _ in range(2):
        JOB_HANDLERS[MAIL_INVITATION](job)
    assert len(sent_ids) == 1


def test_delayed_email_is_sent_later(
    inbox: Inbox, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: object) -> None:
        raise MailDelayedError("busy")

    invite(owner)
    with monkeypatch.context() as while_busy:
        while_busy.setattr(mail, "send", busy)
        assert messages_to(inbox) == []
        assert mail_states(owner) == [("waiting", "by_server")]
    time.pass_by(minutes=2)
    assert len(messages_to(inbox)) == 1


def test_forged_token_of_an_emailed_link_is_unknown(inbox: Inbox, owner: Owner) -> None:
    invitation = call_operator(
        "invite_member", workspaceId=owner.workspace.id, email="ivy@example.com"
    )
    shown_token = invitation["url"].rpartition("/")[2]
    place = hashlib.sha256(shown_token.encode()).hexdigest()
    for token in (f"{place}.", f"{place}.{'A' * 22}", f"{place}.{shown_token[:22]}", "."):
        with pytest.raises(NotFoundError):
            look_at(token)


def test_emailed_link_proves_the_address(inbox: Inbox, owner: Owner) -> None:
    call_operator("invite_member", workspaceId=owner.workspace.id, email="ivy@example.com")
    run_until_idle()
    (invitation,) = [message for message in inbox.mails if message["To"] == "ivy@example.com"]
    joined = accept_as_new(text_of(invitation).partition("/invitations/")[2].split()[0])
    assert accounts.get(joined["accountId"]).is_proved
    run_until_idle()
    assert len([message for message in inbox.mails if message["To"] == "ivy@example.com"]) == 1
