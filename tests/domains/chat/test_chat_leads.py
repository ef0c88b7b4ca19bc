"""Leads from chats."""

from typing import Any

import pytest

from chalicelib.core import clock, plans
from chalicelib.core.clock import iso
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.engine import visitors
from tests.conftest import Api, Time
from tests.domains.chat.helpers import stats
from tests.factories.chat import Bot, answer_to, ask, newest_dialog
from tests.factories.examples import FORM, request_to, submit

pytestmark = pytest.mark.usefixtures("database")


class TestLeads:
    def leads(self, api: Api) -> Any:
        return api.get("/api/forms/collection-list")["collections"]

    def test_an_email_or_phone_makes_one_lead_per_dialog(self, api: Api, bot: Bot) -> None:
        reply = ask(bot, "Hi", pageUrl="https://a.example/x?y=1")
        assert self.leads(api) == []
        text = "Please write to Ada@Example.com."
        ask(bot, text, sessionId=reply.session)
        ask(bot, "or call 8 (495) 123-45-67!", sessionId=reply.session)
        (lead,) = self.leads(api)
        assert (lead["email"], lead["phone"]) == ("Ada@example.com", "+74951234567")
        assert (lead["status"], lead["formId"], lead["data"]) == ("new", None, {"message": text})
        assert lead["source"]["name"] == "chat"
        assert lead["source"]["page"] == "https://a.example/x"
        dialog = newest_dialog(api, bot)
        assert (lead["dialogId"], dialog["leadId"]) == (dialog["id"], lead["id"])
        client = api.get(f"/api/clients/{lead['clientId']}")["client"]
        assert (client["email"], client["phone"]) == ("Ada@example.com", None)
        assert client["leadsCount"] == 1
        assert stats(api, bot)["leads"] == 1
        crm = api.get("/api/crm/stats")
        assert (crm["created"], crm["bySource"]) == (1, [{"source": "chat", "count": 1}])

    def test_the_widgets_form_names_the_visitor(self, api: Api, bot: Bot) -> None:
        contact = {"name": "Ada", "phone": "8 495 123-45-67"}
        reply = ask(bot, "My name is Ada, 8 495 123-45-67", contact=contact)
        later_contact = {"email": "ada@example.com", "name": "Somebody"}
        ask(bot, "And my mail", contact=later_contact, sessionId=reply.session)
        (lead,) = self.leads(api)
        assert (lead["name"], lead["phone"]) == ("Ada", "+74951234567")
        assert lead["email"] == "ada@example.com"
        (client,) = api.get("/api/clients/list")["clients"]
        assert (client["name"], client["phone"], client["email"]) == ("Ada", "+74951234567", None)

    def test_a_consent_is_stored_with_its_text_and_time(
        self, api: Api, bot: Bot, time: Time
    ) -> None:
        text = "I agree to the processing of my contact details."
        reply = ask(bot, "ada@example.com")
        later_contact = {"email": "ada@example.com", "consent": text}
        ask(bot, "Here it is", contact=later_contact, sessionId=reply.session)
        before = iso(clock.now())
        time.pass_by(minutes=1)
        ask(bot, "Once more", contact=later_contact, sessionId=reply.session)
        (lead,) = self.leads(api)
        assert lead["data"]["consent"] == {"label": text, "at": before}

    def test_an_invalid_form_is_refused_by_field(self, bot: Bot) -> None:
        response = answer_to(request_to(bot.id, "Hi", contact={"email": "nobody"}))
        assert response.status == 400
        assert b'"contact.email"' in response.whole_body()

    def test_a_lead_from_a_chat_can_be_processed(self, api: Api, bot: Bot) -> None:
        ask(bot, "ada@example.com")
        (lead,) = self.leads(api)
        body = {"id": lead["id"], "data": {"city": "Tver"}, "notes": "Call"}
        updated_lead = api.post("/api/forms/collection-update", body)["lead"]
        assert updated_lead["data"] == {"message": "ada@example.com", "city": "Tver"}
        body = {"id": lead["id"], "status": "completed"}
        assert api.post("/api/forms/collection-status", body)["lead"]["status"] == "completed"
        assert api.get("/api/crm/stats")["byStatus"]["completed"] == 1

    @pytest.mark.parametrize(
        "text", ["Price 10 000 000?", "Order 2027-01-15 12:30", "me@home", "@ada", "1234567"]
    )
    def test_other_numbers_and_at_signs_make_no_lead(self, text: str, api: Api, bot: Bot) -> None:
        ask(bot, text)
        assert self.leads(api) == []

    def test_a_visitor_uses_only_a_share_of_the_plans_leads(
        self, api: Api, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The attack: each dialog with another address makes a lead that counts."""
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 8)
        monkeypatch.setattr(lead_quota, "LEAST_SHARE", 2)
        form = api.post("/api/forms/create", FORM)["form"]["id"]

        def over(ip: str, email: str) -> bool:
            ask(bot, f"I am {email}", ip=ip)
            (lead,) = [row for row in self.leads(api) if row["email"] == email]
            return bool(lead["overQuota"])

        client_ip = "203.0.113.9"
        visitor = visitors.visitor_hash(client_ip)
        first = submit(form, visitor, name="Eve", email="e0@example.com")
        over_quota = [over(client_ip, f"e{number}@example.com") for number in (1, 2, 3)]
        assert over_quota == [False, True, True]
        last = submit(form, visitor, name="Eve", email="e4@example.com")
        marks = {lead["id"]: lead["overQuota"] for lead in self.leads(api)}
        assert (marks[first], marks[last]) == (False, True)
        network = [over(f"2001:db8:0:{n}::1", f"n{n}@example.com") for n in range(6)]
        assert network == [False] * 4 + [True] * 2
        assert not over("203.0.113.10", "ada@example.com")

    def test_a_lead_beyond_the_plan_is_stored_and_marked(
        self, api: Api, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(plans.LEADS_A_MONTH, "business", 0)
        assert ask(bot, "ada@example.com").events[-1]["type"] == "done"
        (lead,) = self.leads(api)
        assert (lead["email"], lead["overQuota"]) == ("ada@example.com", True)
        assert stats(api, bot)["leads"] == 1
