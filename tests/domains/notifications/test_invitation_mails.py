"""Mails with the links of invitations."""

import re
from typing import Any

import pytest

from chalicelib.core.jobs import JOB_HANDLERS, MAIL_INVITATION
from chalicelib.domains.notifications.flows import mail_gate
from chalicelib.engine import jobs
from chalicelib.gateways import mail
from chalicelib.gateways.mail import MailDelayedError
from tests.conftest import Owner, Time, as_operator, in_console
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.people import look_at

pytestmark = pytest.mark.usefixtures("database")
IVY = "ivy@example.com"


def invite(owner: Owner, email: str = IVY) -> Any:
    return as_operator("invite_member", workspaceId=owner.workspace.id, email=email)


def mailed(inbox: Inbox, email: str = IVY) -> list[Any]:
    run_until_idle()
    return [each for each in inbox.mails if each["To"] == email]


def token_in(found: Any) -> str:
    """Return the token of the link in a mail."""
    return re.findall(r"/invitations/(\S+)", text_of(found))[0]


def listed(owner: Owner) -> list[Any]:
    """Return what the list of invitations says of their mails."""
    rows = in_console(owner.workspace.id, "list_invitations")["invitations"]
    return [(each["isMailed"], each["mail"], each["mailReason"]) for each in rows]


def test_an_invitation_is_mailed_with_its_link(inbox: Inbox, owner: Owner) -> None:
    made = invite(owner)
    assert (made["isMailed"], made["mail"]) == (False, "waiting")
    (found,) = mailed(inbox)
    assert listed(owner) == [(True, "sent", None)]
    assert owner.workspace.name in found["Subject"]
    assert found["From"].startswith(f"{owner.workspace.name} via ")
    token = token_in(found)
    assert token in text_of(found, "html")
    assert token not in made["url"]
    assert look_at(token) == look_at(made["url"].rpartition("/")[2])


def test_the_job_has_neither_the_link_nor_the_address(inbox: Inbox, owner: Owner) -> None:
    made = invite(owner)
    (job,) = [
        each
        for each in jobs.read_workspace_jobs(owner.workspace.id)
        if each.kind == MAIL_INVITATION
    ]
    assert job.payload == {"invitationId": made["id"]}


def test_without_mail_the_link_is_only_shown(owner: Owner) -> None:
    assert invite(owner)["isMailed"] is False
    assert not [
        e for e in jobs.read_workspace_jobs(owner.workspace.id) if e.kind == MAIL_INVITATION
    ]


def test_a_revoked_or_replaced_invitation_is_not_mailed(inbox: Inbox, owner: Owner) -> None:
    invite(owner)
    second = invite(owner)
    (found,) = mailed(inbox)
    assert look_at(token_in(found))["email"] == second["email"]


def test_an_expired_invitation_is_not_mailed(inbox: Inbox, owner: Owner, time: Time) -> None:
    invite(owner)
    time.pass_by(days=8)
    assert mailed(inbox) == []


def test_an_address_that_is_suppressed_gets_no_mail(
    inbox: Inbox, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_gate, "is_suppressed", lambda address: address == IVY)
    invite(owner)
    invite(owner, "ivo@example.com")
    assert mailed(inbox) == []
    assert (False, "withheld", "by_bounce") in listed(owner)
    assert len(mailed(inbox, "ivo@example.com")) == 1


def test_an_address_gets_five_mails_an_hour_and_the_sixth_in_the_next(
    inbox: Inbox, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch, reload_settings: Any
) -> None:
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    for _ in range(6):
        last = invite(owner, "ivy+tag@example.com")
        run_until_idle()
    assert len(mailed(inbox, "ivy+tag@example.com")) == 5
    assert listed(owner) == [(False, "waiting", "by_address")]
    time.pass_by(hours=1)
    assert len(mailed(inbox, "ivy+tag@example.com")) == 6
    assert look_at(last["url"].rpartition("/")[2])["email"] == "ivy+tag@example.com"
    monkeypatch.undo()
    reload_settings()


def test_a_job_that_runs_again_sends_nothing_more(
    inbox: Inbox, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite(owner)
    (job,) = [
        each
        for each in jobs.read_workspace_jobs(owner.workspace.id)
        if each.kind == MAIL_INVITATION
    ]
    sent: list[str] = []
    monkeypatch.setattr(mail, "send", lambda each: sent.append(each.id))
    for _ in range(2):
        JOB_HANDLERS[MAIL_INVITATION](job)
    assert len(sent) == 1


def test_a_mail_that_is_delayed_is_sent_later(
    inbox: Inbox, owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: object) -> None:
        raise MailDelayedError("busy")

    invite(owner)
    with monkeypatch.context() as while_busy:
        while_busy.setattr(mail, "send", busy)
        assert mailed(inbox) == []
        assert listed(owner) == [(False, "waiting", "by_server")]
    time.pass_by(minutes=2)
    assert len(mailed(inbox)) == 1
