"""The balance in the console, over HTTP."""

import re
from urllib.parse import quote

import pytest

from chalicelib.transports.console import balance
from tests.conftest import as_operator
from tests.factories.console import World
from tests.transports.console.forms.helpers import text


class TestBalance:
    def test_only_the_owner_sees_the_balance(self, world: World) -> None:
        path = f"{world.here.path}/balance"
        assert "10,000.00 ₽" in text(world.person("boss").get(path)).replace("\u00a0", " ")
        for name in ("manager", "member"):
            refused = world.person(name).get(path)
            assert refused.status == 403
            assert "₽" not in text(refused)
            assert "₽" not in text(world.person(name).get(world.here.path))

    def test_the_ledger_is_shown_page_by_page(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(balance, "ENTRIES", 5)
        for number in range(7):
            as_operator(
                "credit",
                account="boss@example.com",
                kopecks=100 + number,
                reason="gift",
                idempotencyKey=str(number),
            )
        boss, path = world.person("boss"), f"{world.here.path}/balance"
        first = text(boss.get(path))
        assert first.count("<tr>") == 6
        (older,) = re.findall(r'href="\?before=(\d+)"', first)
        second = text(boss.get(f"{path}?before={older}"))
        assert second.count("<tr>") == 4  # two credits as gifts, the top-up, and the table's head
        assert "gift" in first
        assert "1.01 ₽" in second
        assert "1.01 ₽" not in first  # Times may contain 1.01, too.

    @pytest.mark.parametrize("before", ["0", "-1", "x", "9" * 30, "9" * 5000, "1.5", "\u0661"])
    def test_any_start_position_is_accepted(self, before: str, world: World) -> None:
        answer = world.person("boss").get(f"{world.here.path}/balance?before={quote(before)}")
        assert answer.status == 200
