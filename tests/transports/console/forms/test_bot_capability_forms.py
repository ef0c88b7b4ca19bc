"""The capabilities of a bot, in the console over HTTP."""

import re
from typing import Any

import pytest

from chalicelib.core.ids import new_id
from chalicelib.domains.leads.store.forms import FORMS
from chalicelib.gateways.llm.models import CATALOGUE
from tests.conftest import call_console
from tests.factories.console import World
from tests.transports.console.forms.helpers import error_beside, text, value_of


def path_of(world: World) -> str:
    return f"{world.here.path}/bots/{world.here.bot}/capabilities"


def bot_of(world: World) -> Any:
    return call_console(world.here.workspace_id, "get_agent", id=world.here.bot)["agent"]


def form_of(world: World) -> str:
    (form,) = call_console(world.here.workspace_id, "list_forms")["forms"]
    return str(form["id"])


def test_capabilities_the_order_form_and_the_privacy_url_are_saved_together(world: World) -> None:
    console_owner, path, form = world.person("boss"), path_of(world), form_of(world)
    url = "https://bakery.example/privacy"
    fields = [("capabilities", "order"), ("capabilities", "booking")]
    answer = console_owner.post(path, [*fields, ("orderFormId", form), ("privacyUrl", f" {url} ")])
    assert answer.headers["Location"] == f"{path}?done=capabilities_saved"
    page = console_owner.get(answer.headers["Location"])
    assert "Capabilities saved." in text(page)
    assert value_of(page, "privacyUrl") == url
    assert f'<option value="{form}" selected>' in text(page)
    ticked = re.findall(r'name="capabilities" value="(\w+)"[^>]* checked>', text(page))
    assert ticked == ["slots", "booking", "order"]
    bot = bot_of(world)
    assert bot["capabilities"] == ["slots", "booking", "order"], "bookings need free times"
    assert (bot["orderFormId"], bot["privacyUrl"]) == (form, url)
    assert console_owner.post(path, {"orderFormId": "", "privacyUrl": ""}).status == 303
    bot = bot_of(world)
    assert (bot["capabilities"], bot["orderFormId"], bot["privacyUrl"]) == ([], None, None)


@pytest.mark.parametrize("url", ["http://bakery.example", "bakery", "https://", "javascript:x"])
def test_a_wrong_privacy_url_is_reported_beside_its_field_and_nothing_is_saved(
    url: str, world: World
) -> None:
    console_owner, path, bot_before = world.person("boss"), path_of(world), bot_of(world)
    answer = console_owner.post(path, {"capabilities": "handover", "privacyUrl": url})
    assert answer.status == 400
    assert "https://example.com/privacy" in error_beside(answer, "privacyUrl")
    assert value_of(answer, "privacyUrl") == url
    assert 'value="handover" aria-labelledby="may-handover" ' in text(answer)
    assert text(answer).count(" checked>") == 1, "what was ticked stays ticked"
    assert bot_of(world) == bot_before


def test_a_form_that_is_gone_is_reported_beside_its_field(world: World) -> None:
    console_owner, path, bot_before = world.person("boss"), path_of(world), bot_of(world)
    theirs = call_console(world.there.workspace_id, "list_forms")["forms"][0]["id"]
    for form in (new_id(), theirs):
        answer = console_owner.post(path, {"capabilities": "order", "orderFormId": form})
        assert answer.status == 404
        assert "no longer exists" in error_beside(answer, "orderFormId", "select")
    assert bot_of(world) == bot_before


def test_a_chosen_form_that_is_not_listed_stays_chosen(world: World) -> None:
    console_owner, path, form = world.person("boss"), path_of(world), form_of(world)
    console_owner.post(path, {"capabilities": "order", "orderFormId": form})
    FORMS.require(world.here.workspace_id, record_id=form).delete()
    assert f'<option value="{form}" selected>' in text(console_owner.get(path))


def test_the_page_warns_of_orders_without_a_form(world: World) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    warning = "The bot does not propose orders yet"
    assert warning not in text(console_owner.get(path))
    console_owner.post(path, {"capabilities": "order"})
    assert warning in text(console_owner.get(path))
    console_owner.post(path, {"capabilities": "order", "orderFormId": form_of(world)})
    assert warning not in text(console_owner.get(path))


def test_the_page_warns_of_a_model_that_calls_no_tools(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    console_owner, path = world.person("boss"), path_of(world)
    for takes_tools in (False, True):
        spec = CATALOGUE["demo"]._replace(takes_tools=takes_tools)
        monkeypatch.setattr("chalicelib.gateways.llm.resolve", lambda _, spec=spec, **_more: spec)
        warned = "The model demo cannot call tools" in text(console_owner.get(path))
        assert warned != takes_tools
