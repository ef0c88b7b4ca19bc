"""Spending of bots, by bot and by day."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from chalicelib.core.errors import ForbiddenError
from chalicelib.core.ids import new_id
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from infra.bench.dynamodb.usage import metering
from tests.conftest import Owner, Time, call_console
from tests.factories.chat import new_bot
from tests.factories.examples import top_up

pytestmark = pytest.mark.store


@pytest.fixture
def payer(owner: Owner) -> Owner:
    """An owner whose wallet has 1,000 rubles."""
    top_up(owner.workspace.owner_id, 100_000)
    return owner


def hold(owner: Owner, agent_id: str, price: int = 10**6) -> charging.Hold:
    place, prices = owner.workspace, Prices(price, price)
    terms = Terms(place.owner_id, place.id, agent_id, place.timezone, prices, "large-model")
    return charging.reserve(terms, new_id(), 10, max_output_tokens=100)


def answer(owner: Owner, agent_id: str, tokens: int = 30) -> None:
    """Charge a request of a bot at one kopeck per token."""
    charging.settle(hold(owner, agent_id), TokenUsage(10, tokens))


def spending(owner: Owner) -> Any:
    return call_console(owner.workspace.id, "get_spending", account_id=owner.workspace.owner_id)


class TestSpending:
    def test_each_bot_has_its_sum_and_its_days(self, payer: Owner, time: Time) -> None:
        first, second = (new_bot(payer).id for _ in "ab")
        answer(payer, first, 30)
        time.pass_by(days=1)
        answer(payer, second, 50)
        answer(payer, second, 40)
        report = spending(payer)
        assert (report["kopecks"], report["answers"], len(report["days"])) == (150, 3, 30)
        assert [(bot["agentId"], bot["kopecks"], bot["answers"]) for bot in report["bots"]] == [
            (second, 110, 2),
            (first, 40, 1),
        ]
        assert report["bots"][0]["days"] == [0] * 29 + [110]
        assert report["bots"][1]["days"] == [0] * 28 + [40, 0]
        assert all(bot["agentName"] for bot in report["bots"])

    def test_the_sum_equals_the_ledgers(self, payer: Owner) -> None:
        bot = new_bot(payer).id
        for tokens in (1, 7, 60):
            answer(payer, bot, tokens)
        charging.release(hold(payer, bot))
        who = {"account_id": payer.workspace.owner_id}
        lines = call_console(payer.workspace.id, "get_statement", **who)["lines"]
        charged = -sum(line["amount"] for line in lines if line["kind"] == "settle")
        assert spending(payer)["kopecks"] == charged
        assert spending(payer)["answers"] == 3

    def test_an_answer_settled_twice_is_counted_once(self, payer: Owner) -> None:
        open_hold = hold(payer, new_bot(payer).id)
        for _ in "12":
            charging.settle(open_hold, TokenUsage(10, 30))
        assert (spending(payer)["kopecks"], spending(payer)["answers"]) == (40, 1)

    def test_free_answers_and_older_days_are_left_out(self, payer: Owner, time: Time) -> None:
        bot = new_bot(payer).id
        charging.settle(hold(payer, bot, price=0), TokenUsage(10, 30))
        assert spending(payer)["bots"] == []
        answer(payer, bot)
        time.pass_by(days=timedelta(days=29).days)
        assert spending(payer)["kopecks"] == 40
        time.pass_by(days=1)
        assert spending(payer)["bots"] == []

    def test_a_bot_that_is_gone_keeps_its_sum(self, payer: Owner) -> None:
        answer(payer, new_id())
        (bot,) = spending(payer)["bots"]
        assert (bot["agentName"], bot["kopecks"]) == (None, 40)

    def test_another_workspace_of_the_owner_is_left_out(
        self, payer: Owner, new_owner: Callable[..., Owner]
    ) -> None:
        answer(payer, new_bot(payer).id)
        assert spending(new_owner())["bots"] == []

    @pytest.mark.parametrize("membership", ["member", "manager"])
    def test_only_the_owner_reads_spending(self, membership: str, payer: Owner) -> None:
        with pytest.raises(ForbiddenError):
            call_console(payer.workspace.id, "get_spending", membership=membership)

    def test_spending_takes_a_query_of_chats_one_of_sms_and_one_batch_read(
        self, payer: Owner
    ) -> None:
        answer(payer, new_bot(payer).id)
        with metering() as usage:
            spending(payer)
        assert usage.calls == ["GetItem", "Query", "Query", "BatchGetItem"]


class TestOutcomes:
    def read(self, owner: Owner, **arguments: Any) -> Any:
        who = {"account_id": owner.workspace.owner_id}
        return call_console(owner.workspace.id, "get_statement", **who, outcomes=True, **arguments)

    def test_an_answer_is_one_entry(self, payer: Owner) -> None:
        bot = new_bot(payer).id
        answer(payer, bot)
        charging.release(hold(payer, bot))
        hold(payer, bot)  # A request in progress has no outcome yet.
        kinds = [line["kind"] for line in self.read(payer)["lines"]]
        assert kinds[:2] == ["release", "settle"]
        assert "reserve" not in kinds

    def test_pages_together_have_every_outcome_once(self, payer: Owner) -> None:
        bot = new_bot(payer).id
        for _ in range(5):
            answer(payer, bot)
            hold(payer, bot)
        line_ids, cursor = [], None
        while True:
            page = self.read(payer, limit=2, before=cursor)
            assert len(page["lines"]) <= 2
            line_ids += [line["id"] for line in page["lines"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(line_ids) == len(set(line_ids))
        statement_lines = call_console(
            payer.workspace.id, "get_statement", account_id=payer.workspace.owner_id, limit=100
        )["lines"]
        assert line_ids == [line["id"] for line in statement_lines if line["kind"] != "reserve"]
