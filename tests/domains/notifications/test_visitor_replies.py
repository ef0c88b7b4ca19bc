"""Replies of members to visitors, which the widget reads and which are sent by e-mail."""

import pytest

from chalicelib.domains.chat.store.dialogs import DIALOGS
from tests.conftest import Api, Owner, call_console, call_operator
from tests.domains.notifications.clients import ADA, mails_to
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.chat import Bot, ask, new_bot
from tests.factories.event_runs import run_until_idle

pytestmark = pytest.mark.usefixtures("database")
READ = "/api/agents/public/replies"
visitor = Api(None)


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


def dialog_of(api: Api, bot: Bot) -> str:
    (dialog, *_) = api.get(f"/api/agents/dialogs?agentId={bot.id}")["dialogs"]
    return str(dialog["id"])


def reply_to(bot: Bot, dialog: str, text: str) -> None:
    call_console(
        bot.workspace_id, "reply_to_visitor", account_id=bot.account_id, id=dialog, text=text
    )


def test_a_visitor_reads_the_replies_of_members_with_the_session(api: Api, bot: Bot) -> None:
    first = ask(bot, "Can I talk to a person?")
    session = {"agentId": bot.id, "sessionId": first.session}
    assert visitor.post(READ, session)["replies"] == []
    assert "lastReplyId" not in first.events[0]
    for text in ("Yes, what is it?", "We open at nine."):
        reply_to(bot, dialog_of(api, bot), text)
    replies = visitor.post(READ, session)["replies"]
    assert [reply["text"] for reply in replies] == ["Yes, what is it?", "We open at nine."]
    assert replies[0]["author"]
    second = ask(bot, "Thanks", sessionId=first.session)
    assert second.events[0]["lastReplyId"] == replies[-1]["id"]


def test_a_session_reads_only_its_own_dialog(api: Api, bot: Bot, owner: Owner) -> None:
    ask(bot, "Hello")
    reply_to(bot, dialog_of(api, bot), "Only for the first visitor")
    other_session = ask(bot, "Hi").session
    assert visitor.post(READ, {"agentId": bot.id, "sessionId": other_session})["replies"] == []
    for agent, session in ((bot.id, "x" * 43), (new_bot(owner).id, other_session)):
        answer = visitor.call_refused("POST", READ, {"agentId": agent, "sessionId": session})
        assert answer.status == 404


def test_the_latest_ten_replies_are_kept_until_the_client_is_erased(api: Api, bot: Bot) -> None:
    ask(bot, f"I am Ada, {ADA}")
    dialog = dialog_of(api, bot)
    for number in range(12):
        reply_to(bot, dialog, f"Reply {number}")
    replies = DIALOGS.require(bot.workspace_id, dialog).replies
    assert [reply["text"] for reply in replies] == [f"Reply {number}" for number in range(2, 12)]
    call_operator("erase_client", workspaceId=bot.workspace_id, email=ADA)
    assert not DIALOGS.require(bot.workspace_id, dialog).replies


def test_a_reply_is_mailed_to_an_address_from_the_chat_without_the_visitors_text(
    api: Api, bot: Bot, inbox: Inbox
) -> None:
    ask(bot, f"Win at evil.example! {ADA}")
    reply_to(bot, dialog_of(api, bot), "We open at nine.\nSee you!")
    run_until_idle()
    (message,) = mails_to(inbox)
    assert "replied to you" in str(message["Subject"])
    assert "We open at nine.\r\nSee you!" in text_of(message)
    assert "evil.example" not in str(message)


def test_a_visitor_without_an_address_gets_no_mail(api: Api, bot: Bot, inbox: Inbox) -> None:
    ask(bot, "Hello")
    reply_to(bot, dialog_of(api, bot), "Hello!")
    run_until_idle()
    assert inbox.mails == []
