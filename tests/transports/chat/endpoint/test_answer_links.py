"""The visitor, the stored dialog, replays and the model see the same links."""

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from chalicelib.core.errors import UnavailableError
from chalicelib.core.settings import settings
from chalicelib.domains.billing.rules.pricing import Prices, TokenUsage, cost
from chalicelib.domains.sites.store import sites
from chalicelib.domains.sites.store.sites import ACTIVE, SITES, domain_request
from chalicelib.engine.unit import UnitOfWork, run_unit
from chalicelib.gateways import llm
from chalicelib.gateways.llm import ModelError, ProviderUsage
from chalicelib.gateways.llm.messages import ToolCall, count_tokens
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.factories.chat import RICH, Bot, answer_to, ask, new_bot, read_events, transcript
from tests.factories.examples import request_to
from tests.transports.chat.endpoint.conftest import IN, OUT, Script

pytestmark = pytest.mark.usefixtures("database", "model_prices")

END = ProviderUsage(10, 5)
EVIL = "See [our prices](https://evil.example/x) or https://evil.example."
SAFE = "See our prices or [link removed]."


def pieces(text: str, length: int = 3) -> Iterator[str]:
    return (text[at : at + length] for at in range(0, len(text), length))


def test_a_foreign_link_is_in_no_place_where_the_answer_is_kept(
    bot: Bot, api: Api, script: Script
) -> None:
    model = script(*pieces(EVIL), END)
    reply = ask(bot, "Prices?", key="one")
    assert reply.text == SAFE
    assert transcript(api, bot)[-1]["content"] == SAFE
    assert ask(bot, "Prices?", key="one").text == SAFE
    assert len(model.inputs) == 1
    ask(bot, "And now?", sessionId=reply.session)
    assert model.dialogs[-1][2] == ("assistant", SAFE)


def test_the_next_call_of_the_same_answer_receives_the_text_without_the_link(
    bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = llm.resolve("x", tenant="w")._replace(takes_tools=True)
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
    model = script(EVIL, ToolCall("1", "find_products", '{"query": "rye"}'), END, "Done.", END)
    assert ask(bot, "Prices?").text == f"{SAFE}\n\nDone."
    assert model.inputs[1][-2].content == SAFE


def test_the_text_in_place_of_a_link_is_in_the_visitors_language(bot: Bot, script: Script) -> None:
    script("Смотрите www.evil.example", END)
    assert ask(bot, "Где цены?").text == "Смотрите [ссылка удалена]"


def test_links_to_the_hosts_of_prompt_passages_sites_and_service_are_kept(
    bot: Bot, api: Api, script: Script, time: Time
) -> None:
    bot.change(
        system_prompt="A bakery. Prices are at https://prices.example/today. Not mail@x.example."
    )
    site = api.post("/api/projects/create", {"title": "Bakery"})["project"]["id"]

    def bind(unit: UnitOfWork) -> None:
        row = SITES.require(unit.tenant, record_id=site)
        row.domain_binding = domain_request("rye.example", token="token", apex=True)
        row.domain_binding.status = ACTIVE
        unit.save(row)

    run_unit(bot.workspace_id, None, bind)
    text = "Delivery of bread is described at https://delivery.example/rules on weekdays."
    api.post(f"/api/agents/{bot.id}/knowledge", {"title": "Delivery", "text": text})
    time.pass_by(seconds=10)
    run_jobs()
    reply = (
        "[a](https://prices.example/x) https://rye.example/shop https://delivery.example/a "
        f"{settings().public_url}/s/bakery"
    )
    script(f"{reply} https://x.example", END)
    assert ask(bot, "Delivery of bread?").text == f"{reply} [link removed]"
    assert "delivery.example" not in ask(bot, "Hello").text


def test_an_answer_goes_on_without_links_to_sites_that_cannot_be_read(
    bot: Bot, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_workspace_id: str) -> list[str]:
        raise UnavailableError

    monkeypatch.setattr(sites, "find_urls", fail)
    script(f"See https://rye.example or {settings().public_url}.", END)
    assert ask(bot, "Prices?").text == f"See [link removed] or {settings().public_url}."


def test_text_before_a_possible_link_is_sent_while_the_model_still_writes(
    bot: Bot, script: Script
) -> None:
    goes_on = Event()
    model = script("Our prices are here: [pri", goes_on, "ces](https://evil.example)", END)
    response = answer_to(request_to(bot.id, "Prices?"))
    body = iter(response.body)  # type: ignore[arg-type]
    events = [next(body) for _ in range(2)]
    assert model.waiting.wait(10)
    assert list(read_events(b"".join(events)))[-1]["content"] == "Our prices are here: "
    goes_on.set()
    *_, last, done_event = read_events(b"".join(body))
    assert (last["content"], done_event["type"]) == ("prices", "done")


@pytest.mark.parametrize("end", ["end", "failure"])
def test_the_owner_pays_for_what_the_model_has_written(
    owner: Owner, script: Script, end: str
) -> None:
    bot = new_bot(owner)
    address = "https://evil.example/" + "x/" * 500
    problem: Any = ModelError("unavailable", "x") if end == "failure" else ProviderUsage(10, 300)
    model = script(f"See {address}.", problem)
    reply = ask(bot, "Prices?")
    assert reply.text == "See [link removed]."
    output = count_tokens(f"See {address}.") if end == "failure" else 300
    available, reserved = bot.money
    min_charge = cost(Prices(IN, OUT), TokenUsage(10 if end == "end" else 0, output))
    assert reserved == 0
    assert RICH - available >= min_charge
    assert len(model.inputs) == 1
