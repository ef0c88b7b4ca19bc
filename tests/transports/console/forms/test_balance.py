"""The balance in the console, over HTTP."""

import re
from urllib.parse import quote

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.billing.flows import charging
from chalicelib.domains.billing.flows.charging import Terms
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage
from chalicelib.transports.console.settings import balance
from tests.conftest import Owner, call_operator
from tests.factories.chat import new_bot
from tests.factories.console import World, person
from tests.factories.examples import top_up
from tests.transports.console.forms.helpers import text


class TestBalance:
    def test_only_the_owner_sees_the_balance(self, world: World) -> None:
        path = f"{world.here.path}/balance"
        assert "10,000 ₽" in text(world.person("boss").get(path)).replace("\u00a0", " ")
        for name in ("manager", "member"):
            refusal = world.person(name).get(path)
            assert refusal.status == 403
            assert "₽" not in text(refusal)
            assert "10,000 ₽" not in text(world.person(name).get(world.here.path)).replace(
                "\u00a0", " "
            )
        assert "₽" not in text(world.person("member").get(world.here.path))

    def test_the_ledger_is_shown_page_by_page(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(balance, "ENTRIES", 5)
        for number in range(7):
            call_operator(
                "credit",
                account="boss@example.com",
                kopecks=100 + number,
                reason="gift",
                idempotencyKey=str(number),
            )
        console_owner, path = world.person("boss"), f"{world.here.path}/balance"
        first = text(console_owner.get(path))
        assert first.count("<tr>") == 6
        (older,) = re.findall(r'href="\?before=(\d+)"', first)
        second = text(console_owner.get(f"{path}?before={older}"))
        assert second.count("<tr>") == 4  # two credits as gifts, the top-up, and the table's head
        assert "gift" in first
        assert "1.01 ₽" in second
        assert "1.01 ₽" not in first  # Times may contain 1.01, too.

    @pytest.mark.parametrize("position", ["0", "-1", "x", "9" * 30, "9" * 5000, "1.5", "\u0661"])
    def test_any_start_position_is_accepted(self, position: str, world: World) -> None:
        answer = world.person("boss").get(f"{world.here.path}/balance?before={quote(position)}")
        assert answer.status == 200


class TestSpending:
    def test_the_chart_and_its_table_show_what_bots_spent(
        self, owner: Owner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        top_up(owner.workspace.owner_id, 1_000_000)
        monkeypatch.setattr(balance, "MAX_SERIES", 1)
        bots = [new_bot(owner, name=f"Baker {number}").id for number in range(3)]
        for number, bot in enumerate(bots):
            answer(owner, bot, 10 * (number + 1))
        page = text(person(owner).get(f"/console/w/{owner.workspace.slug}/balance"))
        assert page.count('class="base"') == 30
        assert page.count('<rect class="s') == 2  # The first bot, and the others together.
        assert "2 other bots" in page
        assert re.search(r"Baker 2</a></td><td class=\"n\">1</td><td class=\"n\">0.40", page)
        assert "3 paid answers" in page

    def test_an_answer_is_one_row_and_the_whole_ledger_is_a_second_view(self, owner: Owner) -> None:
        bot = new_bot(owner).id
        answer(owner, bot, 10)
        console_owner, path = person(owner), f"/console/w/{owner.workspace.slug}/balance"
        page = text(console_owner.get(path))
        assert "large-model · 20 tokens" in page
        assert ">Hold<" not in page
        assert "Hold</td>" in text(console_owner.get(f"{path}?view=ledger"))

    def test_a_workspace_without_paid_answers_shows_no_chart(self, owner: Owner) -> None:
        page = text(person(owner).get(f"/console/w/{owner.workspace.slug}/balance"))
        assert '<svg class="chart' not in page
        assert "have spent nothing" in page


def answer(owner: Owner, agent_id: str, tokens: int) -> None:
    """Let a bot receive 10 tokens and send some tokens, at one kopeck each."""
    place, prices = owner.workspace, Prices(10**6, 10**6)
    terms = Terms(place.owner_id, place.id, agent_id, place.timezone, prices, "large-model")
    charging.settle(
        charging.reserve(terms, new_id(), 10, max_output_tokens=100), TokenUsage(10, tokens)
    )
