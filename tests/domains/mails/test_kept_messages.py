"""Messages of a test workspace are kept for a week, and never sent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import InTestWorkspaceError
from chalicelib.domains.identity.store import accounts
from chalicelib.domains.notifications.rules.who_is_told import MEMBER_KINDS
from chalicelib.gateways import mail
from chalicelib.gateways import telegram as telegram_gateway
from tests.conftest import Api, Owner, Time, call_console, call_operator
from tests.domains.notifications.clients import book
from tests.domains.notifications.helpers import link
from tests.domains.notifications.inbox import Inbox, choose
from tests.factories.console import person
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import FORM, submit
from tests.factories.salon import Salon
from tests.fakes.telegram import FakeTelegram
from tests.gateways.mail.conftest import MAIL
from tests.transports.console.forms.helpers import text

pytestmark = pytest.mark.usefixtures("database")
START = "2027-03-03T12:00:00Z"


def kept(owner: Owner) -> Any:
    return call_console(owner.workspace.id, "list_outbox")["messages"]


def lead(owner: Owner) -> None:
    form = owner.api().post("/api/forms/create", FORM)["form"]["id"]
    submit(form, name="Ada", email="ada@example.com")


def invite(owner: Owner) -> None:
    call_operator("invite_member", workspaceId=owner.workspace.id, email="ivy@example.com")


CAUSES: dict[str, tuple[Callable[[Owner], object], str]] = {
    "visitor": (lambda owner: book(Salon.opened(owner.api()), START), "ada@example.com"),
    "key": (lambda owner: Salon.opened(owner.api()).book(START), "ada@example.com"),
    "lead": (lead, "owner"),
    "invitation": (invite, "ivy@example.com"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_no_mail_of_a_test_workspace_is_sent(cause: str, inbox: Inbox, tester: Owner) -> None:
    inbox.clear()
    happens, recipient = CAUSES[cause]
    happens(tester)
    run_until_idle()
    assert inbox.mails == []
    if recipient == "owner":
        recipient = accounts.get(tester.workspace.owner_id).email
    messages = [message for message in kept(tester) if message["recipient"] == recipient]
    assert {message["channel"] for message in messages} == {"mail"}
    assert all(message["subject"] for message in messages)
    assert all(message["text"] is None for message in messages) is (cause == "invitation")


def test_a_message_to_telegram_is_kept(inbox: Inbox, tester: Owner, telegram: FakeTelegram) -> None:
    link(tester, 7)
    account_id = tester.workspace.owner_id
    choose(tester, account_id, "owner", **{kind: ["telegram"] for kind in MEMBER_KINDS})
    said = len(telegram.texts)
    lead(tester)
    run_until_idle()
    messages = kept(tester)
    places = {(each["channel"], each["recipient"], each["subject"]) for each in messages}
    assert places == {("telegram", "7", None)}
    assert all(each["text"] for each in messages)
    assert (len(telegram.texts), inbox.mails) == (said, [])


def test_messages_of_other_workspaces_are_sent(inbox: Inbox, owner: Owner, api: Api) -> None:
    inbox.clear()
    Salon.opened(api).book(START)
    run_until_idle()
    assert inbox.mails
    assert kept(owner) == []


def test_a_message_is_kept_for_seven_days(inbox: Inbox, tester: Owner, time: Time) -> None:
    CAUSES["key"][0](tester)
    run_until_idle()
    time.pass_by(days=6)
    assert kept(tester)
    time.pass_by(days=1)
    assert kept(tester) == []


def test_mails_of_a_test_workspace_count_for_no_budget_of_an_address(
    inbox: Inbox, tester: Owner, owner: Owner
) -> None:
    salon = Salon.opened(tester.api())
    for number in range(30):
        salon.book(f"2027-03-{number // 8 + 1:02}T{6 + number % 8:02}:00:00Z")
    run_until_idle()
    inbox.clear()
    Salon.opened(owner.api()).book(START)
    run_until_idle()
    assert [str(message["To"]) for message in inbox.mails if "ada" in str(message["To"])]


def test_the_gateways_refuse_what_a_test_workspace_would_send(
    inbox: Inbox, tester: Owner, telegram: FakeTelegram
) -> None:
    with pytest.raises(InTestWorkspaceError):
        mail.send(replace(MAIL, origin=tester.workspace.id))
    with pytest.raises(InTestWorkspaceError):
        telegram_gateway.send(7, "Hi", origin=tester.workspace.id)
    assert (inbox.mails, telegram.texts) == ([], [])


def test_the_console_shows_the_messages(inbox: Inbox, tester: Owner) -> None:
    CAUSES["key"][0](tester)
    run_until_idle()
    page = person(tester).get(f"/console/w/{tester.workspace.slug}/outbox")
    assert "ada@example.com" in text(page)
