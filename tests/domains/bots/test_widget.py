"""Events of a bot's widget, and its funnel."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.bots.store.bot_metrics import STAGES
from tests.conftest import Answer, Api, Owner, Time, all_rows
from tests.factories.chat import Bot, ask, new_bot

pytestmark = pytest.mark.usefixtures("database")
FUNNEL = "/api/agents/widget-stats"


@pytest.fixture
def bot(owner: Owner) -> Bot:
    return new_bot(owner)


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
