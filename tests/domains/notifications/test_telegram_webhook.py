"""Updates that Telegram sends to the webhook."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chalicelib.core import clock
from chalicelib.gateways import secrets_manager
from chalicelib.gateways import telegram as gateway
from tests import fakes
from tests.conftest import Api, Owner, all_rows
from tests.domains.notifications.helpers import (
    HELP,
    LINKED,
    PATH,
    STOPPED,
    WRONG,
    answer_to,
    is_linked,
    link,
    new_code,
    post,
    send_text,
)
from tests.fakes import openai_api
from tests.fakes.telegram import TOKEN, FakeTelegram, update
from tests.support import aws_calls

TOO_MANY = "Too many wrong codes"


@pytest.fixture(autouse=True)
def _bot(telegram: FakeTelegram, database: None) -> None:
    """A configured bot, and an empty database."""


@pytest.mark.parametrize("secret", ["", "wrong", "секрет"])
def test_a_request_without_the_secret_is_refused(owner: Owner, secret: str) -> None:
    code = new_code(owner)
    assert post(update(1, 7, f"/start {code}"), secret).status == 403
    assert not is_linked(owner)


def test_webhook_requires_a_bot(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> None:
    monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
    reload_settings()
    assert Api(None).call("POST", PATH, update(1, 7, "/stop")).status == 404


GROUP = update(1, -100, "/start x")
GROUP["message"]["chat"]["type"] = "group"
NONSENSE: list[Any] = [
    *fakes.GARBAGE,
    {},
    {"update_id": "1", "message": {}},
    {"update_id": 1, "edited_message": {}},
    {"update_id": 1, "message": {"chat": {"id": "7", "type": "private"}, "from": {}}},
    update(1, 7, "/stop", is_bot=True),
    update(1, 7, "/start \ud83d"),
    update(1, 10**300, "/start x"),
    GROUP,
]


@pytest.mark.parametrize("content", NONSENSE, ids=range(len(NONSENSE)))
def test_malformed_updates_get_200_and_change_nothing(content: Any) -> None:
    answer = post(content)
    assert (answer.status, answer.body) == (200, b"")
    assert not [key for key in all_rows() if "TELEGRAM" in key]


@pytest.mark.parametrize("text", ["hello", "/start", "/start  ", "/help", "/stopp", ""])
def test_other_messages_are_answered_with_help(text: str) -> None:
    assert HELP in send_text(7, text)


def test_a_message_without_a_text_is_answered_with_help() -> None:
    content = update(1, 7, "")
    del content["message"]["text"]
    assert HELP in answer_to(content)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ru", "создайте код в консоли"),
        ("ru-RU", "создайте код в консоли"),
        ("de", HELP),
        (None, HELP),
    ],
)
def test_bot_answers_in_the_senders_language(code: str | None, expected: str) -> None:
    assert expected in send_text(7, "hello", language_code=code)


@pytest.mark.parametrize("code", ["nonsense", "x" * 4000, "a b c", "ё"])
def test_an_unknown_code_is_wrong(code: str) -> None:
    assert send_text(7, f"/start {code}").startswith(WRONG)


@pytest.fixture
def production_limits(monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]) -> None:
    """Rate limits as in production."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()


@pytest.mark.usefixtures("production_limits")
def test_a_chat_may_send_five_wrong_codes_an_hour(owner: Owner) -> None:
    begun = datetime(2026, 6, 1, 12, 10, tzinfo=UTC)
    with clock.using(lambda: begun):
        code = new_code(owner)
        assert all(send_text(7, f"/start wrong{n}").startswith(WRONG) for n in range(5))
        assert send_text(7, "/start wrong").startswith(TOO_MANY)
        assert send_text(7, f"/start {code}").startswith(TOO_MANY)
        assert send_text(8, f"/start {code}").startswith(LINKED)
    with clock.using(lambda: begun + timedelta(hours=1)):
        assert send_text(7, f"/start {new_code(owner)}").startswith(LINKED)


@pytest.mark.usefixtures("production_limits")
def test_a_repeated_wrong_code_counts_once() -> None:
    for _ in range(9):
        assert answer_to(update(5, 7, "/start wrong")).startswith(WRONG)


def test_a_repeated_start_gets_the_same_answer_and_links_once(owner: Owner) -> None:
    start = update(5, 7, f"/start {new_code(owner)}")
    assert answer_to(start).startswith(LINKED)
    send_text(7, "/stop")
    rows_before = all_rows()
    assert answer_to(start).startswith(LINKED)
    assert all_rows() == rows_before
    assert not is_linked(owner)


def test_repeated_stop_does_not_end_a_newer_link(owner: Owner) -> None:
    link(owner, 7)
    stop = update(10**6, 7, "/stop")
    assert answer_to(stop).startswith(STOPPED)
    link(owner, 7)
    assert answer_to(stop).startswith(STOPPED)
    assert is_linked(owner)


def test_bot_answers_in_the_response_without_a_request(telegram: FakeTelegram) -> None:
    answer = post(update(1, 7, "hello"))
    body = json.loads(answer.body)
    assert body == {"method": "sendMessage", **gateway.message(7, body["text"])}
    assert telegram.requests == []


@pytest.fixture
def secrets(
    monkeypatch: pytest.MonkeyPatch, reload_settings: Callable[[], None]
) -> Iterator[openai_api.OpenAiApi]:
    """Secrets Manager of a deployed stage, whose settings name the secret with the bot's token."""
    with openai_api.serving() as server:
        url = server.url.removesuffix("/v1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        monkeypatch.delenv("TELEGRAM_BOT_TOKEN")
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN_SECRET", aws_calls.TELEGRAM_TOKEN)
        reload_settings()
        yield server
        secrets_manager._kept.cache_clear()


def secret_value(text: str) -> openai_api.Answering:
    return openai_api.plain(json.dumps({"ARN": "arn", "SecretString": text}).encode())


def test_a_deployed_stage_reads_the_token_from_its_secret(secrets: openai_api.OpenAiApi) -> None:
    known = gateway.webhook_secret  # The sender's secret follows from the same token.
    secrets.answers = [secret_value(f"{TOKEN}\n")]
    headers = {gateway.SECRET_HEADER: "wrong"}
    assert Api(None).call("POST", PATH, update(1, 7, "hello"), headers).status == 403
    headers = {gateway.SECRET_HEADER: known()}
    assert Api(None).call("POST", PATH, update(1, 7, "hello"), headers).status == 200
    assert len(secrets.asked) == 1


def test_empty_secret_disables_the_bot(secrets: openai_api.OpenAiApi) -> None:
    refusal = json.dumps({"__type": "ResourceNotFoundException", "message": "No."}).encode()
    secrets.answers = [openai_api.refusing(400, refusal)]
    assert Api(None).call("POST", PATH, update(1, 7, "hello")).status == 404


def test_unreadable_secret_makes_telegram_repeat_the_update(
    secrets: openai_api.OpenAiApi,
) -> None:
    refusal = json.dumps({"__type": "AccessDeniedException", "message": "No."}).encode()
    secrets.answers = [openai_api.refusing(400, refusal)] * 9
    assert Api(None).call("POST", PATH, update(1, 7, "hello")).status == 502
