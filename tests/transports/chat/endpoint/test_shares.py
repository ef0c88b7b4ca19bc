"""Limits of the money, messages and dialogs that one visitor may use."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domains.billing.store import budgets, ledger
from chalicelib.domains.chat.flows import accept_message, checked_message
from chalicelib.engine import limits, visitors
from chalicelib.gateways.llm import ProviderUsage
from tests.conftest import Api, Owner, Time, run_concurrently
from tests.factories.chat import Bot, ask, new_bot, new_key
from tests.factories.examples import top_up
from tests.transports.chat.endpoint.conftest import OUT, Script

pytestmark = pytest.mark.usefixtures("database")
ANSWER = ProviderUsage(0, 4_000_000 // OUT * 10)
"""The usage of an answer that costs 38 kopecks."""


@pytest.fixture
def become_visitor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the next requests come from another address."""

    def change(name: str) -> None:
        monkeypatch.setattr(visitors, "visitor_hash", lambda *_: name)

    return change


def spent(bot: Bot) -> int:
    """Return what a bot has spent or holds today, in kopecks."""
    return int(budgets.budget(bot.workspace_id, agent_id=bot.id).daily_used)


class TestMoney:
    def test_a_visitor_spends_at_most_a_quarter_of_the_daily_limit(
        self, bot: Bot, model_prices: None, script: Script, become_visitor: Any, time: Time
    ) -> None:
        """The attack: one visitor empties the bot's limit, so that it answers nobody."""
        bot.limit(daily=4_000)
        script("word " * 20, ANSWER)
        become_visitor("attacker")
        statuses = [ask(bot, "Tell me everything.").status for _ in range(40)]
        assert statuses[0] == 200
        assert statuses[-1] == 429
        assert statuses == sorted(statuses)
        assert 0 < spent(bot) <= 1_000
        refusal = ask(bot, "Hi").answer
        assert refusal.data["code"] == "rate_limited"
        assert int(refusal.headers["Retry-After"]) > 0
        become_visitor("customer")
        assert ask(bot, "Hi").status == 200
        become_visitor("attacker")
        time.pass_by(days=1)
        become_visitor("attacker-tomorrow")
        assert ask(bot, "Hi").status == 200

    def test_parallel_answers_do_not_exceed_the_share(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.limit(daily=1_200)
        script("word " * 20, ANSWER)
        run_concurrently(12, lambda _: ask(bot, "Hi").status)
        assert spent(bot) <= 300

    @pytest.mark.parametrize("window", ["weekly", "monthly"])
    def test_the_share_is_that_of_the_lowest_limit(
        self, window: str, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.limit(**{"daily": None, window: 1_200})
        script("word " * 20, ANSWER)
        assert [ask(bot, "Hi").status for _ in range(12)][-1] == 429
        assert spent(bot) <= 300

    def test_what_an_answer_did_not_use_returns_to_the_share(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.limit(daily=2_000)
        script("Yes", ProviderUsage(1, 1))
        assert [ask(bot, "Hi").status for _ in range(20)] == [200] * 20

    def test_a_bot_without_limits_has_no_shares(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        script("word " * 20, ANSWER)
        assert [ask(bot, "Hi").status for _ in range(3)] == [200] * 3

    def test_a_caller_with_the_key_of_a_private_bot_is_no_visitor(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.change(is_private=True)
        bot.limit(daily=1_200)
        script("word " * 20, ANSWER)
        key = new_key(bot)
        while ask(bot, "Hi", apiKey=key).status == 200:
            assert spent(bot) <= 1_200
        assert spent(bot) > 900


class TestNewBots:
    @pytest.mark.parametrize(
        ("balance", "daily"), [(0, 10_000), (99_999, 10_000), (1_000_009, 100_000)]
    )
    def test_a_new_bot_has_a_daily_limit_of_a_tenth_of_the_balance(
        self, balance: int, daily: int, owner: Owner, api: Api
    ) -> None:
        if balance:
            top_up(owner.workspace.owner_id, balance)
        body = {"name": "Baker", "systemPrompt": "You sell bread.", "model": "demo"}
        bot_fields = api.post("/api/agents/create", body)["agent"]
        budget = budgets.budget(owner.workspace.id, agent_id=bot_fields["id"])
        assert budget.limits == {"daily": daily, "weekly": None, "monthly": None}
        top_up(owner.workspace.owner_id, 10_000_000)
        assert (
            budgets.budget(owner.workspace.id, agent_id=bot_fields["id"]).limits["daily"] == daily
        )

    def test_a_bot_of_before_keeps_its_limits(self, owner: Owner, api: Api) -> None:
        bot = new_bot(owner)
        api.call("PUT", f"/api/agents/{bot.id}", {"name": "Miller"})
        assert set(budgets.budget(owner.workspace.id, agent_id=bot.id).limits.values()) == {None}


class TestMessages:
    @pytest.fixture(autouse=True)
    def _few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert accept_message.MESSAGES_PER_DAY.max_requests == 200
        assert checked_message.MAX_MESSAGES == 300
        few = replace(accept_message.MESSAGES_PER_DAY, max_requests=4)
        monkeypatch.setattr(accept_message, "MESSAGES_PER_DAY", few)
        chat_limits = replace(limits.settings(), rate_limit_scale=1)
        monkeypatch.setattr(limits, "settings", lambda: chat_limits)
        monkeypatch.setattr(checked_message, "MAX_MESSAGES", 3)

    def test_a_visitor_sends_a_bot_so_many_messages_a_day(
        self, bot: Bot, owner: Owner, become_visitor: Any, time: Time
    ) -> None:
        become_visitor("attacker")
        assert [ask(bot, "Hi").status for _ in range(6)] == [200] * 4 + [429] * 2
        assert ask(bot, "Hi").answer.data["code"] == "rate_limited"
        assert ask(new_bot(owner), "Hi").status == 200
        become_visitor("customer")
        assert ask(bot, "Hi").status == 200

    def test_concurrent_messages_do_not_exceed_the_number(self, bot: Bot) -> None:
        statuses = run_concurrently(8, lambda _: ask(bot, "Hi").status)
        assert sorted(statuses) == [200] * 4 + [429] * 4
        assert [hold.state for hold in ledger.holds(bot.account_id)] == [ledger.SETTLED] * 4

    def test_a_dialog_has_so_many_messages(self, bot: Bot) -> None:
        session = ask(bot, "Hi").session
        more = [ask(bot, "Hi", sessionId=session) for _ in range(3)]
        assert [answer.status for answer in more] == [200, 200, 429]
        assert "omit sessionId" in more[-1].answer.data["message"]
        assert ask(bot, "Hi").status == 200

    def test_a_private_bots_key_has_no_daily_number(self, bot: Bot) -> None:
        bot.change(is_private=True)
        key = new_key(bot)
        assert [ask(bot, "Hi", apiKey=key).status for _ in range(6)] == [200] * 6


class TestNetworks:
    """The attack: an IPv6 network of 48 bits, in which each of 65,536 parts is a visitor."""

    def test_a_network_spends_at_most_half_of_the_daily_limit(
        self, bot: Bot, model_prices: None, script: Script
    ) -> None:
        bot.limit(daily=2_400)
        script("word " * 20, ANSWER)
        chats = [ask(bot, "Hi", ip=f"2001:db8:1:{n:x}::1") for n in range(60)]
        assert chats[0].status == 200
        assert chats[-1].answer.data["code"] == "rate_limited"
        assert 600 < spent(bot) <= 1_200
        assert ask(bot, "Hi", ip="2001:db8:2::1").status == 200
        assert ask(bot, "Hi", ip="198.51.100.1").status == 200

    def test_a_network_sends_ten_times_the_messages_of_a_visitor_a_day(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            accept_message,
            "MESSAGES_PER_DAY",
            replace(accept_message.MESSAGES_PER_DAY, max_requests=1),
        )
        chat_limits = replace(limits.settings(), rate_limit_scale=1)
        monkeypatch.setattr(limits, "settings", lambda: chat_limits)
        statuses = [ask(bot, "Hi", ip=f"2001:db8:1:{n:x}::1").status for n in range(12)]
        assert statuses == [200] * 10 + [429] * 2
        assert ask(bot, "Hi", ip="2001:db8:2::1").status == 200

    def test_a_network_does_not_use_up_the_messages_of_a_bot_in_a_minute(
        self, bot: Bot, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chat_settings = replace(accept_message.settings(), edge_secret="secret", rate_limit_scale=1)
        for module in (accept_message, limits):
            monkeypatch.setattr(module, "settings", lambda: chat_settings)
        for name, max_requests in (("MESSAGES", 1), ("MESSAGES_OF_BOT", 8)):
            monkeypatch.setattr(
                accept_message,
                name,
                replace(getattr(accept_message, name), max_requests=max_requests),
            )
        statuses = [ask(bot, "Hi", ip=f"2001:db8:1:{n:x}::1").status for n in range(9)]
        assert statuses == [200] * 4 + [429] * 5
        assert ask(bot, "Hi", ip="198.51.100.1").status == 200
