"""The dialogue of the README with the embedded model, in Russian and English."""

import re
from pathlib import Path

import pytest

from chalicelib.lib.localized import Language
from tests.conftest import Api
from tests.factories.chat import Bot, ask
from tests.factories.salon import Salon

README = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
DIALOGUES: dict[Language, list[str]] = {
    "ru": [
        "Сколько стоит ржаной хлеб?",
        "Запишите на консультацию по торту в субботу",
        "Первое. Я Ада, +7 495 123-45-67",
    ],
    "en": [
        "How much is the rye bread?",
        "Book a cake consultation on Saturday",
        "The first one. I am Ada, +7 495 123-45-67",
    ],
}


def test_the_readme_has_one_of_these_dialogues() -> None:
    assert re.findall(r'\\"message\\": \\"(.+?)\\"', README) in DIALOGUES.values()


@pytest.mark.usefixtures("database", "all_capabilities", "monday")
@pytest.mark.parametrize(
    ("language", "product", "service", "name", "title"),
    [
        ("ru", "Хлеб ржаной", "Консультация по торту на заказ", "Ада", "Запись: "),
        ("en", "Rye bread", "Custom cake consultation", "Ada", "Book: "),
    ],
)
def test_the_dialogue_ends_in_a_booking(
    bot: Bot,
    api: Api,
    language: Language,
    product: str,
    service: str,
    name: str,
    title: str,
) -> None:
    question, request, choice = DIALOGUES[language]
    api.post("/api/products/create", {"name": product, "price": 24_000})
    saturday = [{"weekday": "sat", "start": "10:00", "end": "13:00"}]
    Salon.opened(api, [{"name": "Anna"}], saturday, name=service)
    assert "240" in ask(bot, question).text
    times = ask(bot, request, features=["actions"])
    assert re.findall(r"^(\d)\. .+, (\d\d:\d\d)\b", times.text, re.MULTILINE) == [
        ("1", "10:00"),
        ("2", "11:00"),
        ("3", "12:00"),
    ]
    choice_reply = ask(bot, choice, features=["actions"], sessionId=times.session)
    (card,) = [event for event in choice_reply.events if event["type"] == "action"]
    assert card["title"] == f"{title}{service}"
    assert card["fields"] == []
    decision = {"sessionId": times.session, "decision": "confirm"}
    decision_response = api.post(f"/api/agents/public/actions/{card['id']}", decision)
    assert decision_response["state"] == "done"
    (booking,) = api.get("/api/bookings/list")["bookings"]
    assert booking["startAt"].startswith("2026-11-28T07:00")
    assert (booking["client"]["name"], booking["client"]["phone"]) == (name, "+74951234567")
