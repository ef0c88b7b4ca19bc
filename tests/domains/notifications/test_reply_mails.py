"""Replies of members that are sent to visitors by e-mail."""

import pytest

from chalicelib.domains.mails.flows import mail_gate
from tests.conftest import Api, Owner, call_console
from tests.domains.notifications.clients import ADA, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.chat import Bot, ask, new_bot, newest_dialog, reply_to
from tests.factories.event_runs import run_until_idle
from tests.factories.examples import Things

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def bot(owner: Owner, things: Things) -> Bot:  # things first: both change the balance
    return new_bot(owner)


def test_a_reply_is_mailed_to_an_address_from_the_chat_without_the_visitors_text(
    api: Api, bot: Bot, inbox: Inbox
) -> None:
    ask(bot, f"Win at evil.example! {ADA}")
    reply_to(bot, newest_dialog(api, bot)["id"], "We open at nine.\nSee you!")
    run_until_idle()
    (message,) = mails_to(inbox)
    assert "replied to you" in str(message["Subject"])
    assert "We open at nine.\r\nSee you!" in text_of(message)
    assert "evil.example" not in str(message)


def said(bot: Bot, dialog_id: str) -> str:
    """Return what the console says of the e-mail with a reply."""
    who = {"account_id": bot.account_id}
    return str(
        call_console(bot.workspace_id, "get_dialog_details", **who, id=dialog_id)["replyMail"]
    )


def test_a_member_reads_whether_a_reply_is_mailed(
    api: Api, bot: Bot, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(bot, f"I am at {ADA}")
    dialog = newest_dialog(api, bot)["id"]
    assert said(bot, dialog) == "sent"
    monkeypatch.setattr(mail_gate, "is_suppressed", lambda *_: True)
    assert said(bot, dialog) == "none"
    reply_to(bot, dialog, "Hello!")
    run_until_idle()
    assert mails_to(inbox) == []


def test_a_visitor_without_an_address_gets_no_mail(api: Api, bot: Bot, inbox: Inbox) -> None:
    ask(bot, "Hello")
    assert said(bot, newest_dialog(api, bot)["id"]) == "none"
    reply_to(bot, newest_dialog(api, bot)["id"], "Hello!")
    run_until_idle()
    assert inbox.mails == []
