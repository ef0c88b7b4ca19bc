"""Actions that a bot proposes in a chat, and the visitor's decision on them."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.domains.booking_page.flows import visitor_shares
from chalicelib.domains.chat.flows import proposal_tools
from chalicelib.domains.mails.flows import mail_gate
from chalicelib.engine.unit import UnitOfWork
from chalicelib.gateways import mail
from tests.conftest import Api, Owner, Time, call_console, run_concurrently
from tests.factories.chat import (
    Bot,
    ask,
    transcript,
)
from tests.factories.payments import MERCHANT
from tests.factories.proposals import (
    ADA,
    ASKED,
    END,
    FEATURES,
    FIND,
    actions,
    book,
    bookings,
    call,
    card,
    decide,
    path,
    proposed,
    refuse_decision,
)
from tests.transports.chat.endpoint.conftest import Script

pytestmark = [
    pytest.mark.store,
    pytest.mark.usefixtures("database", "model_takes_tools", "all_capabilities", "monday"),
]


class TestBookings:
    def test_a_visitor_confirms_a_card_and_has_a_booking(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        api.call("PUT", f"/api/agents/{bot.id}", {"privacyUrl": "https://example.com/privacy"})
        reply = proposed(script, bot, FIND, book(**ADA))
        shown_card = card(reply)
        assert shown_card["title"] == "Book: Haircut"
        assert {detail["label"]: detail["value"] for detail in shown_card["details"]} == {
            "When": "Friday, 27 November 2026, 10:00 (Europe/Moscow)",
            "With": "Anna",
            "Duration": "60 min",
            "Price": "1,500.50 ₽",
            "Name": "Ada Lovelace",
            "Phone": "+74951234567",
        }
        assert shown_card["fields"] == []
        assert shown_card["consent"]["url"] == "https://example.com/privacy"
        assert shown_card["expiresAt"] == "2026-11-23T09:15:00.000Z"
        assert bookings(api) == []
        decision = decide(api, reply)
        assert decision["state"] == "done"
        assert decision["message"].startswith("You are booked: Haircut, Friday, 27 November")
        assert decision["cancelToken"]
        (booking,) = bookings(api)
        assert booking["id"] == decision["booking"]["id"]
        assert (booking["source"], booking["client"]["name"]) == ("chat", "Ada Lovelace")
        assert booking["client"]["phone"] == "+74951234567"
        assert [action["state"] for action in actions(api, bot)] == ["done"]
        # The number in the message has made a client without a name.
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["phone"]) == ("Ada Lovelace", "+74951234567")
        stats = api.get(f"/api/agents/stats?agentId={bot.id}")["actions"]
        assert stats == {"toolCalls": 2, "confirmed": 1, "handovers": 0}
        calls = transcript(api, bot)[-1]["toolCalls"]
        assert [call["name"] for call in calls] == ["find_free_times", "propose_booking"]

    def test_a_card_does_not_name_the_client_of_another_dialog(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        ask(bot, "Call me at +7 495 123-45-67")
        reply = proposed(script, bot, FIND, book(**ADA))
        assert decide(api, reply)["state"] == "done"
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["phone"]) == (None, "+74951234567")

    def test_a_client_without_the_feature_gets_neither_cards_nor_tools_for_them(
        self, bot: Bot, haircut: str, script: Script
    ) -> None:
        model = script(FIND, END, book(**ADA), END, "No.", END)
        reply = ask(bot, ASKED)
        assert {event["type"] for event in reply.events} == {"start", "chunk", "done"}
        assert "propose_booking" not in model.tool_names[0]
        assert model.inputs[2][-1].results[0].is_error

    @pytest.mark.parametrize(
        ("question", "field", "advice"),
        [
            ("A haircut, please.", "contact", "Enter your e-mail address"),
            (ASKED, None, "Write your e-mail address in the chat"),
        ],
    )
    def test_a_card_beyond_the_share_offers_a_link_by_email_or_to_leave_contacts(
        self,
        bot: Bot,
        api: Api,
        owner: Owner,
        haircut: str,
        script: Script,
        monkeypatch: pytest.MonkeyPatch,
        question: str,
        field: str | None,
        advice: str,
    ) -> None:
        call_console(owner.workspace.id, "set_booking_page", phone="+7 495 000-00-00")
        no_share = replace(visitor_shares.UNPROVED, max_requests=0)
        monkeypatch.setattr(visitor_shares, "UNPROVED", no_share)
        monkeypatch.setattr(mail, "is_on", lambda: True)
        monkeypatch.setattr(mail, "takes", lambda _: True)
        reply = proposed(script, bot, FIND, book(**ADA), question=question)
        values = {"name": "Ada", "contact": "+7 916 123-45-67"}
        refusal = refuse_decision(api, reply, values=values)
        assert (refusal.status, refusal.data["reason"]) == (429, "connection")
        assert (refusal.data["byMail"], refusal.data["field"]) == (True, field)
        message = refusal.data["message"]
        assert advice in message
        assert "leave your contact details" in message
        assert message.endswith("Or call +7 495 000-00-00")
        assert "client.email" not in message
        if field is not None:  # The card is still open, and its field takes the address.
            values["contact"] = "ada@example.com"
            body = {"sessionId": reply.session, "decision": "confirm", "values": values}
            assert api.call("POST", path(reply), body).status == 202

    def test_the_card_asks_for_what_the_visitor_has_not_written(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        invented = book(name="Grace", phone="+74957654321", email="grace@example.com")
        reply = proposed(script, bot, FIND, invented, question="A haircut, please.")
        assert [field["name"] for field in card(reply)["fields"]] == ["name", "contact"]
        assert "Grace" not in json.dumps(card(reply))
        wrong = refuse_decision(api, reply, values={"name": "Ada", "contact": "nothing"})
        assert (wrong.status, bookings(api)) == (400, [])
        assert refuse_decision(api, reply).status == 400
        decide(api, reply, values={"name": "Ada", "contact": "ada@example.com"})
        (booking,) = bookings(api)
        assert (booking["client"]["name"], booking["client"]["email"]) == ("Ada", "ada@example.com")

    @pytest.mark.parametrize(
        ("contact", "email", "phone"),
        [
            ("\u2068Chief@ёлка.рф\u2069", "Chief@ёлка.рф", None),
            ("anna9031112233@faß.de", "anna9031112233@faß.de", None),
            ("8 903 111-22-33 mob, tg @anna", None, "+79031112233"),
            ("\u202a+7 903 111\u201122\u201133\u202c", None, "+79031112233"),
        ],
    )
    def test_a_contact_on_the_card_is_taken_as_it_was_entered(
        self,
        contact: str,
        email: str | None,
        phone: str | None,
        bot: Bot,
        api: Api,
        haircut: str,
        script: Script,
    ) -> None:
        reply = proposed(script, bot, FIND, book(), question="A haircut, please.")
        decide(api, reply, values={"name": "Ada", "contact": contact})
        (booking,) = bookings(api)
        assert (booking["client"]["email"], booking["client"]["phone"]) == (email, phone)

    def test_the_card_shows_the_address_as_the_visitor_wrote_it(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        question = "I am Ada, Ada@faß.de. Book me a haircut."
        for passed, shown_email in (("ada@FAß.de", "Ada@faß.de"), ("ada@fass.de", None)):
            reply = proposed(script, bot, FIND, book(name="Ada", email=passed), question=question)
            details = {detail["label"]: detail["value"] for detail in card(reply)["details"]}
            assert details.get("E-mail") == shown_email

    @pytest.mark.parametrize(
        ("values", "field"),
        [
            ({"name": "Ada", "contact": "nothing"}, "contact"),
            ({"name": "Ada", "contact": "ada@"}, "contact"),
            ({"name": "Ada"}, "contact"),
            ({"name": "", "contact": "ada@example.com"}, "name"),
            ({"contact": "ada@example.com"}, "name"),
        ],
    )
    def test_an_error_names_the_field_of_the_card(
        self, values: dict[str, str], field: str, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(), question="A haircut, please.")
        wrong = refuse_decision(api, reply, values=values)
        assert [error["field"] for error in wrong.data["errors"]] == [field]
        assert wrong.data["message"].startswith(f"{field}: ")

    def test_values_on_the_card_do_not_replace_what_it_shows(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        decide(api, reply, values={"name": "Mallory", "contact": "m@example.com"})
        (booking,) = bookings(api)
        assert (booking["client"]["name"], booking["client"]["email"]) == ("Ada Lovelace", None)

    def test_a_proposal_whose_stored_answer_was_lost_is_made_again(
        self,
        bot: Bot,
        api: Api,
        haircut: str,
        script: Script,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        class LosesFirst(UnitOfWork):
            lost = 0

            def commit(self) -> None:
                super().commit()
                LosesFirst.lost += 1
                if LosesFirst.lost == 1:
                    raise UnavailableError

        monkeypatch.setattr(proposal_tools, "UnitOfWork", LosesFirst)
        reply = proposed(script, bot, FIND, book(**ADA), book(**ADA))
        assert decide(api, reply)["state"] == "done"
        assert len(bookings(api)) == 1

    def test_a_repeated_decision_returns_the_first_result(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        first = decide(api, reply)
        assert decide(api, reply) == first
        assert decide(api, reply, "cancel") == first
        assert len(bookings(api)) == 1

    def test_concurrent_confirmations_book_once(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        results = run_concurrently(4, lambda _: decide(api, reply))
        assert all(result == results[0] for result in results)
        assert len(bookings(api)) == 1

    def test_a_declined_action_is_not_carried_out(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        declined = decide(api, reply, "cancel")
        assert decide(api, reply) == declined
        assert (declined["state"], bookings(api)) == ("cancelled", [])

    def test_a_slot_that_is_sold_meanwhile_is_refused_with_alternatives(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        visitor = {"name": "Grace", "email": "grace@example.com"}
        start = "2026-11-27T10:00:00+03:00"
        api.post(
            "/api/public/bookings", {"serviceId": haircut, "startAt": start, "client": visitor}
        )
        sold = refuse_decision(api, reply)
        assert (sold.status, sold.data["code"]) == (409, "slot_unavailable")
        assert sold.data["alternatives"]
        assert refuse_decision(api, reply).data["code"] == "action_ended"
        assert [action["state"] for action in actions(api, bot)] == ["failed"]
        assert len(bookings(api)) == 1

    @pytest.mark.parametrize(
        "change", [{"price": 1}, {"durationMin": 30}, {"requirePayment": True}]
    )
    def test_a_changed_service_is_not_booked(
        self, change: dict[str, int], bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        call_console(bot.workspace_id, "set_merchant", **MERCHANT)
        reply = proposed(script, bot, FIND, book(**ADA))
        api.post("/api/services/update", {"id": haircut, **change})
        assert refuse_decision(api, reply).data["code"] == "changed"
        assert bookings(api) == []

    @pytest.mark.parametrize("noun", ["services", "resources"])
    def test_what_was_deleted_meanwhile_ends_the_action(
        self, noun: str, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        (gone,) = api.get(f"/api/{noun}/list")[noun]
        api.post(f"/api/{noun}/delete", {"id": gone["id"], "force": True})
        answer = refuse_decision(api, reply)
        assert (answer.status, answer.data["code"]) == (409, "action_ended")

    def test_a_service_with_payment_is_not_proposed(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        api.post("/api/services/update", {"id": haircut, "requirePayment": True})
        reply = proposed(script, bot, FIND, book(**ADA))
        assert all(event["type"] != "action" for event in reply.events)

    def test_a_service_with_payment_is_held_and_paid_by_a_link(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        call_console(bot.workspace_id, "set_merchant", **MERCHANT)
        api.post("/api/services/update", {"id": haircut, "requirePayment": True})
        reply = proposed(script, bot, FIND, book(**ADA))
        details = {detail["label"]: detail["value"] for detail in card(reply)["details"]}
        assert details["To pay now"] == details["Price"]
        assert details["Refund"] == "In full if you cancel 24 h before the start or earlier"
        assert "reserved for 30 minutes" in card(reply)["note"]
        result = decide(api, reply)
        # The zone of the salon is three hours ahead.
        until = datetime.fromisoformat(result["holdExpiresAt"]) + timedelta(hours=3)
        assert f"reserved for you until {until:%H:%M}" in result["message"]
        assert result["booking"]["status"] == "pending_payment"
        assert "/pay/" in result["paymentUrl"]
        assert "/booking/" in result["manageUrl"]
        assert result["amountDue"] == result["booking"]["price"]
        assert result["holdExpiresAt"]
        assert decide(api, reply)["paymentUrl"] == result["paymentUrl"]

    @pytest.mark.parametrize("is_suppressed", [False, True])
    def test_the_visitor_reads_if_no_mail_follows(
        self,
        is_suppressed: bool,
        bot: Bot,
        api: Api,
        haircut: str,
        script: Script,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(mail, "is_on", lambda: True)
        monkeypatch.setattr(mail_gate, "is_suppressed", lambda *_: is_suppressed)
        by_mail = book(name="Ada", email="ada@example.com")
        question = "I am Ada, ada@example.com. Book me a haircut on Friday at ten."
        result = decide(api, proposed(script, bot, FIND, by_mail, question=question))
        assert result["mail"] == ("none" if is_suppressed else "sent")
        assert ("There will be no e-mail" in result["message"]) is is_suppressed

    def test_a_time_that_was_not_named_is_not_proposed(
        self, bot: Bot, haircut: str, script: Script
    ) -> None:
        reply = proposed(script, bot, FIND, call("propose_booking", slotId="9"))
        assert all(event["type"] != "action" for event in reply.events)


class TestLifetime:
    def test_a_proposal_ends_after_a_quarter_of_an_hour(
        self, bot: Bot, api: Api, haircut: str, script: Script, time: Time
    ) -> None:
        reply = proposed(script, bot, FIND, book(**ADA))
        time.pass_by(minutes=15)
        ended = refuse_decision(api, reply)
        assert (ended.status, ended.data["code"]) == (409, "action_ended")
        assert [action["state"] for action in actions(api, bot)] == ["expired"]

    def test_a_newer_proposal_replaces_the_open_one(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        first = proposed(script, bot, FIND, book(**ADA))
        script(call("propose_booking", slotId="2", **ADA), END, "Or this?", END)
        second = ask(bot, "The second one.", sessionId=first.session, features=FEATURES)
        assert "11:00" in json.dumps(card(second))
        assert refuse_decision(api, first).data["code"] == "action_ended"
        body = {"sessionId": first.session, "decision": "confirm"}
        assert api.post(path(second), body)["state"] == "done"
        assert [action["state"] for action in actions(api, bot)] == ["replaced", "done"]

    def test_the_model_learns_the_named_times_and_the_states_of_proposals(
        self, bot: Bot, api: Api, haircut: str, script: Script, time: Time
    ) -> None:
        first = proposed(script, bot, FIND, book(**ADA))
        decide(api, first)
        model = script("Fine.", END)
        ask(bot, "And now?", sessionId=first.session, features=FEATURES)
        question = model.inputs[0][-1].content
        assert '"1": "2026-11-27T10:00 fri Anna"' in question
        assert '{"source": "proposal", "title": "Book: Haircut", "state": "done"}' in question
        time.pass_by(hours=1, minutes=1)
        ask(bot, "And now?", sessionId=first.session, features=FEATURES)
        assert "2026-11-27T10:00 fri" not in model.inputs[1][-1].content

    def test_a_time_that_is_named_again_can_be_proposed_for_another_hour(
        self, bot: Bot, haircut: str, script: Script, time: Time
    ) -> None:
        session = proposed(script, bot, FIND).session
        time.pass_by(minutes=50)
        script(FIND, END, "The same times.", END)
        ask(bot, "And now?", sessionId=session, features=FEATURES)
        time.pass_by(minutes=50)
        script(book(**ADA), END, "Please confirm.", END)
        assert card(ask(bot, "At ten.", sessionId=session, features=FEATURES))

    def test_a_replay_repeats_the_open_card_to_the_sessions_holder(
        self, bot: Bot, api: Api, haircut: str, script: Script
    ) -> None:
        session = proposed(script, bot, FIND).session
        script(book(**ADA), END, "Please confirm.", END)
        request = {"sessionId": session, "features": FEATURES, "key": "k1"}
        first = ask(bot, ASKED, **request)
        assert card(ask(bot, ASKED, **request)) == card(first)
        decide(api, first)
        assert all(event["type"] != "action" for event in ask(bot, ASKED, **request).events)


def test_a_card_speaks_the_visitors_language(
    bot: Bot, api: Api, haircut: str, script: Callable[..., Any]
) -> None:
    reply = proposed(script, bot, FIND, book(), question="Запишите меня на пятницу")
    shown_card = card(reply)
    assert (shown_card["language"], shown_card["title"]) == ("ru", "Запись: Haircut")
    assert shown_card["details"][0]["value"].startswith("пятница, 27 ноября 2026")
    assert shown_card["confirm"] == "Записаться"
    script(book(), END, "+", END)
    later = ask(bot, "+7 495 123-45-67", sessionId=reply.session, features=FEATURES)
    assert card(later)["language"] == "ru"
