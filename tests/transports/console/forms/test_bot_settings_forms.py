"""Bots are created, changed and placed on a page in the console, over HTTP."""

import re
from typing import Any

from chalicelib.domains.bots.rules import answer_costs
from chalicelib.domains.bots.store.agents import AGENTS
from tests.conftest import call_console
from tests.factories.console import HOSTILE, World
from tests.transports.console.forms.helpers import error_beside, text, value_of

FORM = {
    "name": "Anna",
    "systemPrompt": "You answer for a bakery.\r\nBe brief.",
    "welcomeMessage": "",
    "model": "demo",
    "isActive": "on",
    "allowedOrigins": "https://bakery.example\r\n",
    "once": "form-1",
}


def bots(world: World) -> list[dict[str, Any]]:
    found_bots: list[dict[str, Any]] = call_console(world.here.workspace_id, "list_agents")[
        "agents"
    ]
    return found_bots


def bot_of(world: World) -> Any:
    return call_console(world.here.workspace_id, "get_agent", id=world.here.bot)["agent"]


def settings_of(world: World) -> str:
    return f"{world.here.path}/bots/{world.here.bot}/settings"


def embed_of(world: World) -> str:
    return f"{world.here.path}/bots/{world.here.bot}/embed"


def html_of(world: World) -> str:
    page = call_console(world.here.workspace_id, "get_page", id=world.here.page)["page"]
    return str(page["html"])


class TestCreating:
    def test_a_form_that_is_sent_twice_creates_one_bot(self, world: World) -> None:
        console_owner, path = world.person("boss"), f"{world.here.path}/bots"
        count_before = len(bots(world))
        first, second = console_owner.post(path, FORM), console_owner.post(path, FORM)
        assert first.status == second.status == 303
        assert first.headers["Location"] == second.headers["Location"]
        assert "Bot created" in text(console_owner.get(first.headers["Location"]))
        new_bot, *others = bots(world)
        assert len(others) == count_before
        bot = call_console(world.here.workspace_id, "get_agent", id=new_bot["id"])["agent"]
        assert bot["systemPrompt"] == "You answer for a bakery.\nBe brief."
        assert bot["allowedOrigins"] == ["https://bakery.example"]
        assert (bot["isActive"], bot["isPrivate"], bot["welcomeMessage"]) == (True, False, None)

    def test_wrong_fields_are_reported_beside_them_and_what_was_typed_stays(
        self, world: World
    ) -> None:
        fields = FORM | {"name": " ", "systemPrompt": " ", "allowedOrigins": "bakery"}
        answer = world.person("boss").post(f"{world.here.path}/bots", fields)
        assert answer.status == 400
        assert "1 to 100" in error_beside(answer, "name")
        assert "how the bot should answer" in error_beside(answer, "systemPrompt", "textarea")
        assert "one per line" in error_beside(answer, "allowedOrigins", "textarea")
        assert ">\nbakery</textarea>" in text(answer)
        assert 'name="isActive" checked' in text(answer)
        assert len(bots(world)) == 1

    def test_models_have_their_price_in_words(self, world: World) -> None:
        page = text(world.person("boss").get(f"{world.here.path}/bots/new"))
        assert "demo: for testing, about 360 ₽ per 1,000 answers" in page


class TestSettings:
    def test_settings_are_saved_together(self, world: World) -> None:
        console_owner, path = world.person("boss"), settings_of(world)
        answer = console_owner.post(path, FORM | {"welcomeMessage": HOSTILE, "isPrivate": "on"})
        assert answer.headers["Location"] == f"{path}?done=bot_saved"
        bot = bot_of(world)
        assert (bot["name"], bot["welcomeMessage"], bot["isPrivate"]) == ("Anna", HOSTILE, True)
        page = console_owner.get(path)
        assert value_of(page, "name") == "Anna"
        assert 'name="isPrivate" checked' in text(page)
        assert console_owner.post(path, FORM | {"isActive": ""}).status == 303
        bot = bot_of(world)
        assert (bot["isActive"], bot["isPrivate"], bot["welcomeMessage"]) == (False, False, None)
        assert "The bot is off" in text(console_owner.get(path))

    def test_a_model_outside_the_list_stays_chosen(self, world: World) -> None:
        bot = AGENTS.require(world.here.workspace_id, record_id=world.here.bot)
        bot.model = "model-of-2031"
        bot.save()
        page = text(world.person("boss").get(settings_of(world)))
        assert '<option value="model-of-2031" selected>' in page
        assert "at the highest price" in page

    def test_a_limit_that_is_reached_is_explained_with_a_link_to_the_limits(
        self, world: World
    ) -> None:
        console_owner, limits = (
            world.person("boss"),
            f"{world.here.path}/bots/{world.here.bot}/limits",
        )
        console_owner.post(limits, {"daily": "0"})
        page = text(console_owner.get(settings_of(world)))
        assert "A spending limit is 0, so the bot does not answer." in page
        assert f'<a href="{limits}">' in page
        manager = text(world.person("manager").get(settings_of(world)))
        assert f'<a href="{limits}">' in manager


class TestEmbedding:
    def test_the_code_is_placed_once_and_can_be_undone(self, world: World) -> None:
        console_owner, html_before = world.person("boss"), html_of(world)
        form = {"page": world.here.page, "once": "1"}
        answer = console_owner.post(embed_of(world), form)
        page = f"{world.here.path}/sites/{world.here.site}/pages/{world.here.page}"
        assert answer.headers["Location"] == f"{page}?done=placed"
        html = html_of(world)
        assert html.startswith(html_before)
        assert html.count(f'data-agent="{world.here.bot}"') == 1
        second_response = console_owner.post(embed_of(world), form)
        assert second_response.headers["Location"] == f"{page}?done=placed_already"
        assert html_of(world) == html
        assert "Nothing changed" in text(console_owner.get(second_response.headers["Location"]))

    def test_a_page_of_another_workspace_is_not_found(self, world: World) -> None:
        answer = world.person("boss").post(embed_of(world), {"page": world.there.page})
        assert answer.status == 404
        assert "no longer exists" in error_beside(answer, "page", "select")

    def test_the_look_of_the_chat_is_part_of_the_code(self, world: World) -> None:
        query = (
            "?color=%23ff8800&position=left&theme=blue&questions=Prices%3F%0AHours+%26+%22map%22"
        )
        page = text(world.person("boss").get(embed_of(world) + query))
        look = 'data-color="#ff8800" data-position="left" data-questions="Prices?|Hours &amp; '
        assert f'data-agent="{world.here.bot}" {look}&quot;map&quot;" async></script>' in page
        assert "data-theme" not in page
        form = {"page": world.here.page, "once": "1"}
        world.person("boss").post(embed_of(world) + query, form)
        assert 'data-position="left"' in html_of(world)

    def test_the_preview_is_in_a_sandbox_without_the_consoles_cookies(self, world: World) -> None:
        console_owner = world.person("boss")
        assert "<iframe" not in text(console_owner.get(f"{embed_of(world)}?preview=1")), (
            "it is private"
        )
        console_owner.post(settings_of(world), FORM | {"allowedOrigins": ""})
        assert "<iframe" not in text(console_owner.get(embed_of(world)))
        page = console_owner.get(f"{embed_of(world)}?preview=1").body.decode()
        (frame,) = re.findall("<iframe[^>]*>", page)
        assert 'sandbox="allow-scripts"' in frame
        assert "data-preview async&gt;" in frame


def test_the_cost_of_answers_is_rounded_up_to_rubles() -> None:
    assert answer_costs.rubles_per_thousand(0, output_price=0) == 0
    assert answer_costs.rubles_per_thousand(1, output_price=0) == 1
    assert answer_costs.rubles_per_thousand(30_000, output_price=120_000) == 1_140
