"""Dialogs and statistics of bots, leads from chats, and the widget's events."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.application.invoke import invoke
from chalicelib.core import clock, plans
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.bots.store.bot_metrics import STAGES
from chalicelib.domains.chat.store.dialogs import DIALOGS
from chalicelib.domains.leads.flows import lead_quota
from chalicelib.engine import visitors
from chalicelib.engine.listing import counters
from chalicelib.engine.unit import run_unit
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError
from chalicelib.transports import scheduled_functions
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.console import access
from tests.conftest import Answer, Api, Owner, Time, all_rows, call_operator
from tests.factories.chat import Bot, ScriptedModel, answer_to, ask, new_bot, transcript
from tests.factories.examples import FORM, request_to, submit

pytestmark = pytest.mark.usefixtures("database")

LIST, GET, STATS, FUNNEL = (
    f"/api/agents/{path}" for path in ("dialogs", "dialog", "stats", "widget-stats")
)


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


def list_dialogs(api: Api, bot: Bot, **query: Any) -> list[str]:
    page = api.get(f"{LIST}?{urlencode({'agentId': bot.id, **query})}")
    assert page["total"] == len(page["dialogs"])
    return [dialog["id"] for dialog in page["dialogs"]]


def newest(api: Api, bot: Bot) -> dict[str, Any]:
    dialog: dict[str, Any] = api.get(f"{LIST}?agentId={bot.id}")["dialogs"][0]
    return dialog


def stats(api: Api, bot: Bot, **query: Any) -> Any:
    return api.get(f"{STATS}?{urlencode({'agentId': bot.id, **query})}")


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
        lead = newest(api, bot)["leadId"]
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
        dialog = newest(api, bot)
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
        dialog = newest(api, bot)
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
        path = f"{GET}?id={newest(api, bot)['id']}"
        messages = api.get(path)["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant"] * 2
        assert api.get(f"{path}&offset=1&limit=2")["messages"] == messages[1:3]
        assert api.get(f"{path}&offset=4")["messages"] == []
        for query in ("limit=0", "limit=501", "offset=-1"):
            assert api.call_refused("GET", f"{path}&{query}").status == 400

    def test_another_bots_dialog_is_not_found(self, api: Api, bot: Bot) -> None:
        ask(bot, "Hi")
        path = f"{GET}?id={newest(api, bot)['id']}"
        assert api.call_refused("GET", f"{path}&agentId={new_id()}").status == 404
        assert api.get(f"{path}&agentId={bot.id}")["messages"]

    def test_a_dialog_too_long_for_one_response_is_413(
        self, api: Api, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask(bot, "Hi")
        monkeypatch.setattr("chalicelib.domains.chat.operations.dialogs.MAX_ANSWER_BYTES", 5)
        path = f"{GET}?id={newest(api, bot)['id']}"
        response = api.call_refused("GET", path)
        assert response.status == 413
        assert "with offset and limit" in response.data["message"]
        assert api.get(f"{path}&limit=1")["messages"]


class TestStats:
    def test_statistics_count_all_events(
        self, api: Api, bot: Bot, time: Time, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reply = ask(bot, "How much is rye?", channel="widget")
        second_reply = ask(bot, "ada@example.com", sessionId=reply.session)
        broken = ScriptedModel([ModelError("unavailable", "x")])
        with monkeypatch.context() as patched:
            patched.setattr(llm, "chat_model_for", lambda _: broken)
            ask(bot, "Hi", channel="page")
        bot.limit(daily=0)
        assert ask(bot, "Hi").status == 429
        bot.limit(daily=None)
        counts = stats(api, bot)
        assert (counts["dialogs"], counts["messages"], counts["leads"]) == (2, 5, 1)
        prompt = reply.usage["inputTokens"] + second_reply.usage["inputTokens"]
        output = reply.usage["outputTokens"] + second_reply.usage["outputTokens"]
        assert counts["tokens"] == {"input": prompt, "output": output, "total": prompt + output}
        assert (counts["errors"], counts["rejected"]) == (1, {"limit": 1, "balance": 0})
        assert counts["avgFirstTokenMs"] >= 0
        assert counts["byChannel"] == {
            "widget": {"dialogs": 1, "messages": 4, "tokens": prompt + output},
            "api": {"dialogs": 0, "messages": 0, "tokens": 0},
            "page": {"dialogs": 1, "messages": 1, "tokens": 0},
            "test": {"dialogs": 0, "messages": 0, "tokens": 0},
        }
        assert len(counts["series"]) == 30
        assert counts["series"][-1] == {
            "date": "2027-01-15",
            "dialogs": 2,
            "messages": 5,
            "tokens": prompt + output,
        }

    def test_dialogs_of_members_are_not_counted_and_make_no_lead(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        request = request_to(bot.id, "Call ada@example.com", channel="test")
        token = owner.start_session()
        headers = {
            **request.headers,
            "cookie": f"{access.COOKIE}={token}",
            access.CSRF_HEADER: access.csrf_token(token),
        }
        request = replace(request, headers=headers)
        assert chat_route.serve(request, chat_stream.handle).whole_body()
        assert newest(api, bot)["channel"] == "test"
        counts = stats(api, bot)
        assert (counts["dialogs"], counts["messages"], counts["leads"]) == (0, 0, 0)
        assert counts["byChannel"]["test"]["messages"] == 2
        assert api.get("/api/forms/collection-list")["total"] == 0
        ask(bot, "Hi", channel="test")
        assert newest(api, bot)["channel"] == "api"

    @pytest.mark.parametrize(
        "query", ["from=2027-01-02&to=2027-01-01", "from=2020-01-01&to=2027-01-01", "from=x"]
    )
    def test_an_invalid_period_is_refused(self, query: str, api: Api, bot: Bot) -> None:
        for path in (STATS, FUNNEL):
            assert api.call_refused("GET", f"{path}?agentId={bot.id}&{query}").status == 400

    def test_days_are_in_the_workspaces_zone(self, api: Api, bot: Bot, time: Time) -> None:
        time.now = datetime(2027, 1, 15, 22, 0, tzinfo=UTC)  # 01:00 in Moscow
        ask(bot, "Hi")
        day = {"from": "2027-01-16", "to": "2027-01-16"}
        assert stats(api, bot, **day)["dialogs"] == 1


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
        dialog = newest(api, bot)
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


class TestErasure:
    def test_erasure_removes_messages_and_keeps_counts(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        reply = ask(bot, "My secret garden, ada@example.com", key="k", pageUrl="https://a.example/")
        ask(bot, "Roses and thorns", sessionId=reply.session)
        old, stats_before = newest(api, bot), stats(api, bot)
        erased = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="ada@example.com"
        )
        assert (erased["leads"], erased["dialogs"], erased["storedAnswers"]) == (1, 1, 1)
        stored_rows = repr(all_rows()).lower()
        for word in ("garden", "thorns", "ada@example", "a.example"):
            assert word not in stored_rows
        assert transcript(api, bot) == []
        new = newest(api, bot)
        assert (new["preview"], new["messagesCount"]) == ("", old["messagesCount"])
        assert stats(api, bot) == stats_before
        assert ask(bot, "Hi", sessionId=reply.session).status == 404

    @pytest.mark.parametrize("channel", ["api", "widget"])
    @pytest.mark.parametrize(
        "contact",
        [
            {"email": "ada@work.example.com"},
            {"email": "ada@home.example.com"},
            {"phone": "+79161234567"},
        ],
    )
    def test_every_contact_that_a_visitor_enters_leads_to_the_dialog(
        self, contact: dict[str, str], channel: str, api: Api, bot: Bot, owner: Owner
    ) -> None:
        reply = ask(bot, "I am ada@example.com or ada@home.example.com", channel=channel)
        form = {"email": "ada@work.example.com", "phone": "8 916 123-45-67"}
        ask(bot, "My secret garden", contact=form, sessionId=reply.session)
        erased = call_operator("erase_client", workspaceId=owner.workspace.id, **contact)
        assert (erased["dialogs"], erased["leads"], len(erased["clientIds"])) == (1, 1, 1)
        stored_rows = repr(all_rows()).lower()
        for word in ("garden", "ada@", "9161234567"):
            assert word not in stored_rows

    def test_a_dialog_without_a_lead_is_found_by_contacts_in_its_text(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        row = DIALOGS.new(
            owner.workspace.id,
            agent_id=bot.id,
            channel="test",
            last_number=2,
            messages_count=2,
            words="ada@example.com",
            named_contacts=["ada@example.com"],
            last_message_at=clock.now(),
        )
        run_unit(owner.workspace.id, None, lambda unit: unit.create(row))
        erased = call_operator(
            "erase_client", workspaceId=owner.workspace.id, email="ada@example.com"
        )
        assert (erased["dialogs"], erased["leads"], erased["clientIds"]) == (1, 0, [])
        assert "ada@example" not in repr(all_rows())

    def test_an_answer_in_progress_leaves_nothing_after_erasure(
        self, api: Api, bot: Bot, owner: Owner
    ) -> None:
        stream = answer_to(request_to(bot.id, "I am ada@example.com"))
        next(iter(stream.body))  # type: ignore[call-overload]
        call_operator("erase_client", workspaceId=owner.workspace.id, email="ada@example.com")
        stream.whole_body()
        assert "ada@example" not in repr(all_rows())
        assert transcript(api, bot) == []
        assert bot.money[1] == 0


class TestExpiry:
    def test_a_dialog_expires_a_year_after_its_last_message(
        self, api: Api, bot: Bot, time: Time
    ) -> None:
        reply = ask(bot, "Hi")
        time.pass_by(days=300)
        ask(bot, "Hi again", sessionId=reply.session)
        time.pass_by(days=66)
        scheduled_functions.run_jobs()
        assert len(transcript(api, bot)) == 4
        time.pass_by(days=298, hours=23)
        scheduled_functions.run_jobs()
        assert len(list_dialogs(api, bot)) == 1
        time.pass_by(hours=2)
        scheduled_functions.run_jobs()
        assert list_dialogs(api, bot) == []
        remaining_keys = {key for key in all_rows() if "DIALOG" in key or "SESSION" in key}
        assert {key for key in remaining_keys if "COUNT" not in key} == set()
        assert counters.read(bot.workspace_id, DIALOGS.noun)[counters.TOTAL] == 0
        assert ask(bot, "Hi", sessionId=reply.session).status == 404


def report(bot: Bot, visit: str, stage: str, *, visitor: str = "v", **fields: Any) -> Answer:
    reply = invoke(
        REGISTRY["widget_event"],
        VisitorPrincipal(visitor=visitor),
        lambda: {"agentId": bot.id, "visitId": visit, "stage": stage, **fields},
        request_id=new_id(),
    )
    return Answer(200, {}, reply.body)


def funnel(api: Api, bot: Bot, **query: Any) -> tuple[dict[str, int], list[dict[str, Any]]]:
    response = api.get(f"{FUNNEL}?{urlencode({'agentId': bot.id, **query})}")
    return {stage["stage"]: stage["count"] for stage in response["stages"]}, response["topPages"]


class TestWidget:
    def test_a_visit_counts_once_per_stage_and_fills_in_missing_stages(
        self, api: Api, bot: Bot, time: Time
    ) -> None:
        page = "https://a.example/shop"
        assert report(bot, "a", "loaded", pageUrl=f"{page}?utm=1#top").data["counted"] is True
        assert report(bot, "a", "loaded").data["counted"] is False
        assert report(bot, "a", "engaged", pageUrl="https://a.example/other").data["counted"]
        assert report(bot, "a", "opened").data["counted"] is False
        time.pass_by(days=1)
        report(bot, "b", "opened", pageUrl=page)
        stages, pages = funnel(api, bot)
        assert stages == {"loaded": 2, "opened": 2, "started": 1, "engaged": 1, "lead": 0}
        assert pages == [{"url": page, "loaded": 2, "opened": 2, "started": 1, "leads": 0}]
        assert funnel(api, bot, to="2027-01-15")[0]["loaded"] == 1
        rates = api.get(f"{FUNNEL}?agentId={bot.id}")["stages"]
        assert [stage["rate"] for stage in rates] == [1.0, 1.0, 0.5, 0.5, 0.0]

    def test_a_lead_from_a_chat_is_the_last_stage_of_its_visit(self, api: Api, bot: Bot) -> None:
        report(bot, "a", "opened")
        reply = ask(bot, "Hi", channel="widget", visitId="a")
        ask(bot, "ada@example.com", sessionId=reply.session)
        assert set(funnel(api, bot)[0].values()) == {1}

    def test_a_page_cannot_report_a_lead(self, bot: Bot) -> None:
        api = Api(None)
        body = {"agentId": bot.id, "visitId": "a", "stage": "lead"}
        assert api.call_refused("POST", "/api/public/widget-event", body).status == 400

    def test_beacons_send_events_as_plain_text_and_are_not_audited(
        self, api: Api, bot: Bot
    ) -> None:
        keys_before = all_rows().keys()
        body = json.dumps({"agentId": bot.id, "visitId": "a", "stage": "loaded"}).encode()
        answer = Api(None).call(
            "POST", "/api/public/widget-event", body, {"Content-Type": "text/plain"}
        )
        assert (answer.status, answer.data["counted"]) == (200, True)
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        new_keys = all_rows().keys() - keys_before
        assert new_keys
        assert not any(key.startswith("audit/") for key in new_keys)

    def test_each_site_is_counted_separately(self, api: Api, bot: Bot) -> None:
        site = api.post("/api/projects/create", {"title": "Shop"})["project"]["id"]
        report(bot, "a", "loaded", projectId=site)
        report(bot, "b", "loaded")
        assert funnel(api, bot)[0]["loaded"] == 2
        assert funnel(api, bot, projectId=site)[0]["loaded"] == 1
        assert funnel(api, bot, projectId=new_id())[0]["loaded"] == 0

    def test_unknown_bots_and_sites_are_404(
        self, api: Api, bot: Bot, new_owner: Callable[..., Owner]
    ) -> None:
        theirs = new_owner().api().post("/api/projects/create", {"title": "X"})["project"]["id"]
        body = {"agentId": bot.id, "visitId": "a", "stage": "loaded"}
        for wrong in ({"agentId": new_id()}, {"projectId": new_id()}, {"projectId": theirs}):
            response = Api(None).call_refused("POST", "/api/public/widget-event", body | wrong)
            assert response.status == 404
        bot.change(is_active=False)
        assert Api(None).call_refused("POST", "/api/public/widget-event", body).status == 404

    @given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(STAGES[:-1])), max_size=12))
    def test_no_stage_exceeds_the_one_before(
        self, bot: Bot, api: Api, events: list[tuple[int, str]]
    ) -> None:
        fresh = new_bot(bot.owner, money=0)
        reached: dict[int, int] = {}
        for visit, stage in events:
            report(fresh, f"{visit}", stage)
            reached[visit] = max(reached.get(visit, 0), STAGES.index(stage) + 1)
        stages, _ = funnel(api, fresh)
        expected = [sum(upto > n for upto in reached.values()) for n in range(len(STAGES))]
        assert list(stages.values()) == expected
