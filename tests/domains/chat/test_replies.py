"""Replies of members to visitors, which the widget reads."""

import pytest

from chalicelib.domains.chat.store.dialogs import DIALOGS
from tests.conftest import Api, Owner, call_operator
from tests.domains.notifications.clients import ADA
from tests.factories.chat import Bot, ask, new_bot, newest_dialog, reply_to

pytestmark = pytest.mark.usefixtures("database")
READ = "/api/agents/public/replies"
visitor = Api(None)


def test_a_visitor_reads_the_replies_of_members_with_the_session(api: Api, bot: Bot) -> None:
    first = ask(bot, "Can I talk to a person?")
    session = {"agentId": bot.id, "sessionId": first.session}
    assert visitor.post(READ, session)["replies"] == []
    assert "lastReplyId" not in first.events[0]
    for text in ("Yes, what is it?", "We open at nine."):
        reply_to(bot, newest_dialog(api, bot)["id"], text)
    replies = visitor.post(READ, session)["replies"]
    assert [reply["text"] for reply in replies] == ["Yes, what is it?", "We open at nine."]
    assert replies[0]["author"]
    second = ask(bot, "Thanks", sessionId=first.session)
    assert second.events[0]["lastReplyId"] == replies[-1]["id"]


def test_a_session_reads_only_its_own_dialog(api: Api, bot: Bot, owner: Owner) -> None:
    ask(bot, "Hello")
    reply_to(bot, newest_dialog(api, bot)["id"], "Only for the first visitor")
    other_session = ask(bot, "Hi").session
    assert visitor.post(READ, {"agentId": bot.id, "sessionId": other_session})["replies"] == []
    for agent, session in ((bot.id, "x" * 43), (new_bot(owner).id, other_session)):
        answer = visitor.call_refused("POST", READ, {"agentId": agent, "sessionId": session})
        assert answer.status == 404


def test_the_latest_ten_replies_are_kept_until_the_client_is_erased(api: Api, bot: Bot) -> None:
    ask(bot, f"I am Ada, {ADA}")
    dialog = newest_dialog(api, bot)["id"]
    for number in range(12):
        reply_to(bot, dialog, f"Reply {number}")
    replies = DIALOGS.require(bot.workspace_id, record_id=dialog).replies
    assert [reply["text"] for reply in replies] == [f"Reply {number}" for number in range(2, 12)]
    call_operator("erase_client", workspaceId=bot.workspace_id, email=ADA)
    assert not DIALOGS.require(bot.workspace_id, record_id=dialog).replies
