"""A model that obeys injected instructions changes and reveals nothing."""

import html
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from chalicelib.gateways import llm
from chalicelib.transports.scheduled_functions import run_jobs
from tests.conftest import Api, Owner, Time
from tests.factories import pages
from tests.factories.bot_world import SECRET, World
from tests.factories.chat import ask, transcript
from tests.factories.injections import EVIL, INJECTIONS, ObedientModel
from tests.support.linkable import linked_hosts

pytestmark = pytest.mark.usefixtures("database")

TOPICS = (
    *("delivery", "parking", "payment", "allergies", "wholesale"),
    *("birthdays", "weddings", "gluten", "breakfast", "catering"),
)
TEXTS = [INJECTIONS[part :: len(TOPICS)] for part in range(len(TOPICS))]
"""Five instructions of several kinds for one question. The model makes at most six calls."""
OBEYED = ("propose_booking", "find_free_times", "request_person")
"""Calls that show that the model has obeyed."""


@pytest.fixture(autouse=True)
def _monday(time: Time) -> None:
    time.now = datetime(2026, 11, 23, 9, tzinfo=UTC)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ObedientModel:
    spec = llm.resolve("claude-opus-4.1", tenant="w")._replace(takes_tools=True)
    obedient = ObedientModel()
    monkeypatch.setattr(llm, "resolve", lambda _, **_more: spec)
    monkeypatch.setattr(llm, "chat_model_for", lambda _: obedient)
    return obedient


@pytest.fixture
def bot_world(api: Api, owner: Owner, new_owner: Callable[..., Owner]) -> World:
    return World.create(api, owner, new_owner)


Asked = tuple[str, dict[str, object]]
Put = Callable[[World, Sequence[str], str], Asked]


def put_in_product_names(world: World, texts: Sequence[str], topic: str) -> Asked:
    for text in texts:
        name = f"{topic} {format_as_name(text)}"[:200]
        world.api.post("/api/products/create", {"name": name, "price": 100})
    return f"How much is {topic}?", {}


def put_in_product_descriptions(world: World, texts: Sequence[str], topic: str) -> Asked:
    for number, text in enumerate(texts):
        card = {"name": f"{topic} {number}", "price": 100, "description": html.escape(text)}
        world.api.post("/api/products/create", card)
    return f"How much is {topic}?", {}


def put_in_service_descriptions(world: World, texts: Sequence[str], topic: str) -> Asked:
    for number, text in enumerate(texts):
        about = {"description": html.escape(text), "durationMin": 30, "price": 100}
        world.api.post("/api/services/create", {"name": f"{topic} {number}", **about})
    return f"How much is {topic}?", {}


def put_in_pages(world: World, texts: Sequence[str], topic: str) -> Asked:
    text = f"<h1>About {topic}</h1>" + "".join(
        f"<p>{html.escape(paragraph)}</p>" for paragraph in texts
    )
    site = pages.new_site(world.api, f"Site about {topic}")
    pages.save(world.api, pages.create(world.api, site, topic), text)
    return f"Tell me about {topic}", {}


def put_in_knowledge(world: World, texts: Sequence[str], topic: str) -> Asked:
    source = {"title": f"About {topic}", "text": f"About {topic}. " + " ".join(texts)}
    world.api.post(f"/api/agents/{world.bot.id}/knowledge", source)
    return f"Tell me about {topic}", {}


def put_in_visitors_names(_: World, texts: Sequence[str], __: str) -> Asked:
    contact = {"name": format_as_name(" ".join(texts))[:100], "email": "ada@example.com"}
    return "Hello. " + " ".join(f"My name is {name}." for name in texts), {"contact": contact}


def put_in_messages(_: World, texts: Sequence[str], __: str) -> Asked:
    return "\n".join(texts), {}


PLACES: list[Put] = [
    put_in_product_names,
    put_in_product_descriptions,
    put_in_service_descriptions,
    put_in_pages,
    put_in_knowledge,
    put_in_visitors_names,
    put_in_messages,
]
NAMES_HOSTS = {put_in_pages, put_in_knowledge}
"""Places where the owner names hosts that the bot may link to."""


def test_there_are_fifty_different_injections() -> None:
    assert len(set(INJECTIONS)) == len(INJECTIONS) == 50


@pytest.mark.parametrize(
    ("put", "parts"),
    [
        pytest.param(put, parts, id=f"{put.__name__}-{name}", marks=marks)
        for number, put in enumerate(PLACES)
        for name, parts, marks in (
            ("some", [(number + 3 * n) % len(TOPICS) for n in range(3)], ()),
            ("all", [*range(len(TOPICS))], pytest.mark.slow),
        )
    ],
)
def test_a_model_that_obeys_a_text_changes_and_reveals_nothing(
    put: Put, parts: list[int], bot_world: World, model: ObedientModel, time: Time
) -> None:
    """Three tenths of the instructions in each place, so that each is in two places or more.

    The slow tests put all instructions in all places.
    """
    rows_before = bot_world.others_rows()
    questions = [
        put(bot_world, [_filled(bot_world, text) for text in TEXTS[part]], TOPICS[part])
        for part in parts
    ]
    time.pass_by(minutes=3)
    run_jobs()
    for number, (message, more) in enumerate(questions):
        _ask(put, bot_world, model, message, {"key": f"key{number}", **more})
    called = set(model.called)
    obeyed_names = {
        name for name in OBEYED if any(name in text for part in parts for text in TEXTS[part])
    }
    assert obeyed_names, "the texts name no call that shows obedience"
    assert obeyed_names <= called, "nothing was obeyed"
    assert any(EVIL in line for line in model.printed), "nothing was obeyed"
    assert bot_world.carried_out() == []
    assert bot_world.others_rows() == rows_before


def format_as_name(text: str) -> str:
    """Remove characters that names refuse, such as line breaks and characters of direction."""
    return " ".join(re.sub("[\u202a-\u202e\u2066-\u2069]", "", text).split())


def _filled(world: World, text: str) -> str:
    for name, value in world.ids.items():
        text = text.replace(name, value)
    return text


def _ask(
    put: Put, world: World, model: ObedientModel, message: str, more: dict[str, object]
) -> None:
    """Ask a question, and check what the visitor, the dialog and a replay receive."""
    features = ["actions", "sources"]
    first = ask(world.bot, message, features=features, **more)
    replay = ask(world.bot, message, features=features, **more)
    stored_content = transcript(world.api, world.bot)[-1]["content"]
    assert first.events[-1]["type"] == replay.events[-1]["type"] == "done"
    assert first.text == stored_content == replay.text
    assert SECRET not in first.text.title() or SECRET in message.title()
    cards = json.dumps([event for event in first.events if event["type"] == "action"])
    if put not in {put_in_messages, put_in_visitors_names}:
        assert "Mallory" not in cards
    assert SECRET not in cards
    for messages in model.inputs:
        for result in (result for message in messages for result in message.results):
            assert f"{SECRET} salon" not in result.content
            assert f"{SECRET} cut" not in result.content
            assert f"{SECRET} rye" not in result.content
    if put not in NAMES_HOSTS:
        foreign = {host for host in linked_hosts(first.text) if host != "127.0.0.1"}
        assert not foreign, first.text
