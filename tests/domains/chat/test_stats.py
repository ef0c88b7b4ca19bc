"""Statistics of bots."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError
from chalicelib.transports.chat import chat_route, chat_stream
from chalicelib.transports.console import access
from tests.conftest import Api, Owner, Time
from tests.domains.chat.helpers import FUNNEL, STATS, stats
from tests.factories.chat import Bot, ScriptedModel, ask, newest_dialog
from tests.factories.examples import request_to

pytestmark = pytest.mark.usefixtures("database")


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
        assert newest_dialog(api, bot)["channel"] == "test"
        counts = stats(api, bot)
        assert (counts["dialogs"], counts["messages"], counts["leads"]) == (0, 0, 0)
        assert counts["byChannel"]["test"]["messages"] == 2
        assert api.get("/api/forms/collection-list")["total"] == 0
        ask(bot, "Hi", channel="test")
        assert newest_dialog(api, bot)["channel"] == "api"

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
