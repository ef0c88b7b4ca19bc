"""Contacts that visitors leave when the chat refuses their message."""

from dataclasses import replace

import pytest

from chalicelib.engine import limits
from tests.conftest import Api, Owner, Time, call_console
from tests.factories.chat import ask, new_bot, transcript

pytestmark = pytest.mark.usefixtures("database")
LEAVE = "/api/agents/public/contact"
visitor = Api(None)


def test_a_question_to_a_bot_without_money_becomes_a_lead(api: Api, owner: Owner) -> None:
    bot = new_bot(owner, money=0)
    assert ask(bot, "Is a table free?").status == 429
    body = {"agentId": bot.id, "message": "Is a table free?", "contact": {"email": "a@example.com"}}
    dialog = visitor.post(LEAVE, body | {"pageUrl": "https://bakery.example/?a=1"})["dialogId"]
    (lead,) = call_console(owner.workspace.id, "list_leads")["collections"]
    assert (lead["email"], lead["source"]["name"]) == ("a@example.com", "chat")
    assert [message["content"] for message in transcript(api, bot)] == ["Is a table free?"]
    stored_dialog = api.get(f"/api/agents/dialog?id={dialog}")["dialog"]
    assert (stored_dialog["leadId"], stored_dialog["pageUrl"]) == (
        lead["id"],
        "https://bakery.example/",
    )


def test_a_consent_to_a_left_contact_is_stored_with_its_text(owner: Owner) -> None:
    contact = {"email": "a@example.com", "consent": "I agree."}
    visitor.post(LEAVE, {"agentId": new_bot(owner).id, "message": "Hi", "contact": contact})
    (lead,) = call_console(owner.workspace.id, "list_leads")["collections"]
    assert lead["data"]["consent"]["label"] == "I agree."


def test_a_message_without_a_contact_is_refused(owner: Owner) -> None:
    answer = visitor.call_refused("POST", LEAVE, {"agentId": new_bot(owner).id, "message": "Hello"})
    assert answer.status == 400


def test_a_private_bot_takes_no_contact_without_its_key(owner: Owner) -> None:
    bot = new_bot(owner, is_private=True)
    body = {"agentId": bot.id, "message": "Hi", "contact": {"email": "a@example.com"}}
    assert visitor.call_refused("POST", LEAVE, body).status == 404


def test_a_visitor_leaves_twenty_contacts_a_day(
    owner: Owner, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(limits.settings(), rate_limit_scale=1)
    monkeypatch.setattr(limits, "settings", lambda: config)
    body = {"agentId": new_bot(owner).id, "message": "Hi", "contact": {"email": "a@example.com"}}
    for _ in range(20):
        time.pass_by(minutes=1)
        visitor.post(LEAVE, body)
    time.pass_by(minutes=1)
    response = visitor.call_refused("POST", LEAVE, body)
    assert (response.status, response.data["code"]) == (429, "rate_limited")
    visitor.post(LEAVE, body | {"agentId": new_bot(owner).id})
    time.pass_by(hours=24)
    visitor.post(LEAVE, body)
