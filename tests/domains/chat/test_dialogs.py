"""Tests of how dialogs are listed and read."""

import json

import pytest

from chalicelib.core.ids import new_id
from tests.conftest import Api, Time
from tests.domains.chat.helpers import GET, LIST, list_dialogs
from tests.factories.chat import Bot, ask, new_bot, newest_dialog

pytestmark = pytest.mark.usefixtures("database")


class TestList:
    def test_dialogs_are_listed_newest_first_with_all_filters(
        self, api: Api, bot: Bot, time: Time
    ) -> None:
        reply = ask(
            bot, "Do you sell RYE bread? Ёж", channel="widget", pageUrl="https://a.example/x?t=1"
        )
        (first,) = list_dialogs(api, bot)
        time.pass_by(days=1)
        ask(bot, "Call me: ada@example.com", channel="page")
        second, _ = list_dialogs(api, bot)
        assert list_dialogs(api, bot) == [second, first]
        assert list_dialogs(api, bot, channel="widget") == [first]
        assert list_dialogs(api, bot, channel="api") == []
        assert list_dialogs(api, bot, hasLead="true") == [second]
        assert list_dialogs(api, bot, hasLead="false") == [first]
        lead = newest_dialog(api, bot)["leadId"]
        assert list_dialogs(api, bot, leadId=lead) == [second]
        assert list_dialogs(api, bot, leadId=new_id()) == []
        assert list_dialogs(api, bot, search="rye") == [first]
        assert list_dialogs(api, bot, search="еж") == [first]
        assert list_dialogs(api, bot, search="rye", hasLead="true") == []
        assert list_dialogs(api, bot, to="2027-01-15") == [first]
        assert list_dialogs(api, bot, **{"from": "2027-01-16"}) == [second]
        ask(bot, "Still there?", sessionId=reply.session)
        assert list_dialogs(api, bot, **{"from": "2027-01-16"}) == [second, first]
        assert list_dialogs(api, bot, search="still there") == [first]

    def test_a_listed_dialog_shows_its_outcome(self, api: Api, bot: Bot, time: Time) -> None:
        reply = ask(bot, "How much is\nrye bread?", channel="widget")
        time.pass_by(minutes=1)
        more = ask(bot, "And cakes?", sessionId=reply.session)
        dialog = newest_dialog(api, bot)
        assert dialog["agentId"] == bot.id
        assert (dialog["channel"], dialog["leadId"]) == ("widget", None)
        assert dialog["messagesCount"] == 4
        assert dialog["preview"].startswith("How much is rye bread?")
        assert dialog["tokens"] == reply.usage["totalTokens"] + more.usage["totalTokens"]
        assert dialog["startedAt"] == "2027-01-15T12:00:00.000Z"
        assert dialog["lastMessageAt"] == "2027-01-15T12:01:00.000Z"
        assert reply.session not in json.dumps(dialog)

    def test_the_search_covers_the_first_two_kilobytes(self, api: Api, bot: Bot) -> None:
        reply = ask(bot, "а" * 900)
        ask(bot, "needle " + "x" * 2000, sessionId=reply.session)
        ask(bot, "haystack", sessionId=reply.session)
        assert len(list_dialogs(api, bot, search="needle")) == 1
        assert list_dialogs(api, bot, search="haystack") == []

    def test_another_bots_dialogs_are_not_listed(self, api: Api, bot: Bot) -> None:
        other = new_bot(bot.owner, money=0)
        ask(bot, "Hi")
        assert list_dialogs(api, other) == []
        assert api.call_refused("GET", f"{LIST}?agentId={new_id()}").status == 404
        assert api.call_refused("GET", LIST).status == 400


class TestGet:
    def test_messages_are_returned_unchanged(self, api: Api, bot: Bot) -> None:
        reply = ask(bot, " How much\nis rye? ", pageUrl="https://a.example/x?token=1#y")
        dialog = newest_dialog(api, bot)
        response = api.get(f"{GET}?id={dialog['id']}")
        assert response["dialog"] == {
            "id": dialog["id"],
            "agentId": bot.id,
            "channel": "api",
            "leadId": None,
            "pageUrl": "https://a.example/x",
            "startedAt": dialog["startedAt"],
            "handoverAt": None,
            "handoverReason": None,
        }
        question, answer = response["messages"]
        assert (question["role"], answer["role"]) == ("user", "assistant")
        assert (question["content"], answer["content"]) == (" How much\nis rye? ", reply.text)
        assert (question["tokens"], answer["tokens"]) == (
            reply.usage["inputTokens"],
            reply.usage["outputTokens"],
        )
        assert (question["status"], answer["status"]) == ("ok", "ok")

    def test_messages_are_paged(self, api: Api, bot: Bot) -> None:
        reply = ask(bot, "one")
        ask(bot, "two", sessionId=reply.session)
        path = f"{GET}?id={newest_dialog(api, bot)['id']}"
        messages = api.get(path)["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant"] * 2
        assert api.get(f"{path}&offset=1&limit=2")["messages"] == messages[1:3]
        assert api.get(f"{path}&offset=4")["messages"] == []
        for query in ("limit=0", "limit=501", "offset=-1"):
            assert api.call_refused("GET", f"{path}&{query}").status == 400

    def test_another_bots_dialog_is_not_found(self, api: Api, bot: Bot) -> None:
        ask(bot, "Hi")
        path = f"{GET}?id={newest_dialog(api, bot)['id']}"
        assert api.call_refused("GET", f"{path}&agentId={new_id()}").status == 404
        assert api.get(f"{path}&agentId={bot.id}")["messages"]

    def test_a_dialog_too_long_for_one_response_is_413(
        self, api: Api, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask(bot, "Hi")
        monkeypatch.setattr("chalicelib.domains.chat.operations.dialogs.MAX_ANSWER_BYTES", 5)
        path = f"{GET}?id={newest_dialog(api, bot)['id']}"
        response = api.call_refused("GET", path)
        assert (response.status, response.data["key"]) == (413, "dialog")
        assert api.get(f"{path}&limit=1")["messages"]
