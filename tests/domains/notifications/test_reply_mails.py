"""Replies of members that are sent to visitors by e-mail."""

import pytest

from tests.conftest import Api, Owner
from tests.domains.notifications.clients import ADA, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.chat import Bot, ask, new_bot, newest_dialog, reply_to
from tests.factories.event_runs import run_until_idle

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def bot(owner: Owner) -> Bot:
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


def test_a_visitor_without_an_address_gets_no_mail(api: Api, bot: Bot, inbox: Inbox) -> None:
    ask(bot, "Hello")
    reply_to(bot, newest_dialog(api, bot)["id"], "Hello!")
    run_until_idle()
    assert inbox.mails == []
