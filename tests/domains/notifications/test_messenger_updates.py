"""Updates of the bots at messengers, and the fields that the service reads."""

import re
from typing import Any

import pytest

from chalicelib.domains.notifications.rules import messenger_updates
from chalicelib.domains.notifications.rules.messenger_updates import MAX_ID, MAX_NAME, parse
from tests import fakes
from tests.fakes.max_messenger import said, started


def update(text: object = "/stop", chat_id: int = 7, **person: Any) -> dict[str, Any]:
    return {
        "update_id": 5,
        "message": {
            "chat": {"id": chat_id, "type": "private"},
            "from": {"is_bot": False, **person},
            "text": text,
        },
    }


@pytest.mark.parametrize(
    ("text", "command", "argument"),
    [
        ("/start code", "start", "code"),
        (" /start  a b ", "start", "a b"),
        ("/start", "other", ""),
        ("/start@bot code", "other", ""),
        ("/stop", "stop", ""),
        ("/stop now", "stop", ""),
        ("hello there", "other", ""),
        ("", "other", ""),
        (None, "other", ""),
    ],
)
def test_a_message_has_a_command_and_its_argument(
    text: object, command: str, argument: str
) -> None:
    assert parse("telegram", update(text)) == ("5", 7, command, argument, "en", "")


@pytest.mark.parametrize("chat_id", [MAX_ID, -MAX_ID])
def test_the_id_of_a_chat_has_at_most_52_bits(chat_id: int) -> None:
    parsed = parse("telegram", update(chat_id=chat_id))
    assert parsed is not None
    assert parsed.chat_id == chat_id
    assert parse("telegram", update(chat_id=chat_id + (1 if chat_id > 0 else -1))) is None


@pytest.mark.parametrize(
    ("person", "name"),
    [
        ({"username": "ada", "first_name": "Ada"}, "@ada"),
        ({"username": "", "first_name": "Ada", "last_name": "L"}, "Ada L"),
        ({"first_name": "Ada"}, "Ada"),
        ({"last_name": 5}, "5"),
        ({}, ""),
        ({"username": "a" * 99}, "@" + "a" * (MAX_NAME - 1)),
        ({"first_name": "a" * 99}, "a" * MAX_NAME),
    ],
)
def test_a_message_has_the_name_that_telegram_shows(person: dict[str, Any], name: str) -> None:
    parsed = parse("telegram", update(**person))
    assert parsed is not None
    assert parsed.name == name


@pytest.mark.parametrize(
    ("code", "language"), [("ru", "ru"), ("RU-ru", "ru"), ("en", "en"), ("", "en"), (None, "en")]
)
def test_message_has_the_language_of_the_sender(code: str | None, language: str) -> None:
    parsed = parse("telegram", update(language_code=code))
    assert parsed is not None
    assert parsed.language == language


def test_answers_are_in_the_language_with_their_values() -> None:
    messenger_updates._catalogue.cache_clear()  # The files are read again here.
    assert "the workspace “Bakery”" in messenger_updates.text("en", "linked", workspace="Bakery")
    assert "Bakery" in messenger_updates.text("ru", "linked", workspace="Bakery")


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (started(7, "code", 5), ("bot_started-1790000000005-7", 7, "start", "code", "ru", "Ада")),
        (started(7, None, 5), ("bot_started-1790000000005-7", 7, "other", "", "ru", "Ада")),
        (
            started(7, "x", update_type="bot_stopped", user_locale="en-US"),
            ("bot_stopped-1790000000001-7", 7, "left", "", "en", "Ада"),
        ),
        (said(7, "/start code", "mid.1"), ("mid.1", 7, "start", "code", "ru", "Ада")),
        (said(7, "/stop_0a1b", "mid.2"), ("mid.2", 7, "stop", "0a1b", "ru", "Ада")),
        (said(7, None, "mid.3", user_locale=None), ("mid.3", 7, "other", "", "ru", "Ада")),
    ],
)
def test_an_update_of_max_is_the_same_command(update: Any, expected: Any) -> None:
    assert parse("max", update) == expected


def in_group(update: Any) -> Any:
    update["message"]["recipient"]["chat_type"] = "chat"
    return update


@pytest.mark.parametrize(
    "update",
    [
        *fakes.GARBAGE,
        {},
        in_group(said(7, "/start x", "m")),
        said(7, "/stop", "m", update_type="message_edited"),
        started(7, "x", user={"user_id": "7"}),
        started(7, "x", user={"user_id": 7, "is_bot": True}),
        started(7, "x", user={"user_id": 10**300}),
        {"update_type": "message_created", "timestamp": 1},
    ],
    ids=str,
)
def test_other_updates_of_max_are_ignored(update: Any) -> None:
    assert parse("max", update) is None


def test_the_mark_of_a_workspace_is_a_command_that_telegram_links() -> None:
    command = f"/stop_{messenger_updates.stop_mark('workspace')}"
    assert re.fullmatch(r"/[a-z0-9_]{1,32}", command)
    assert messenger_updates._command(command) == ("stop", command.removeprefix("/stop_"))
