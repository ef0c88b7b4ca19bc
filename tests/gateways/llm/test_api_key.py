"""The key of the model provider in Secrets Manager, read from a fake server on loopback."""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from chalicelib.core import clock
from chalicelib.domains.chat.rules.endings import ERRORS
from chalicelib.gateways.llm import ChatModel, drafting_model
from chalicelib.gateways.secrets_manager import KEPT
from tests.conftest import Owner
from tests.factories.chat import RICH, ask, new_bot
from tests.factories.llm import KEY, fail, speak
from tests.fakes import openai_api
from tests.fakes.openai_api import Answering, OpenAiApi
from tests.support.aws_calls import MODEL_KEY

pytestmark = pytest.mark.usefixtures("pauses")


def value(key: str) -> Answering:
    return openai_api.plain(json.dumps({"ARN": MODEL_KEY, "SecretString": f"{key}\n"}).encode())


def refusal(code: str) -> Answering:
    return openai_api.refusing(400, json.dumps({"__type": code, "message": "No."}).encode())


@pytest.fixture
def secrets() -> Iterator[OpenAiApi]:
    """A fake Secrets Manager with the model's key."""
    with openai_api.serving() as server:
        yield server


@pytest.fixture
def provider(
    openai: OpenAiApi,
    secrets: OpenAiApi,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> ChatModel:
    """The model of a deployed function, which has the secret's name instead of a key."""
    url = secrets.url.removesuffix("/v1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
    for name, setting in {
        "LLM_PROVIDER": "openai",
        "LLM_BASE_URL": openai.url,
        "LLM_MODEL": "m-1",
        "LLM_API_KEY_SECRET": MODEL_KEY,
    }.items():
        monkeypatch.setenv(name, setting)
    reload_settings()
    openai.answers = [openai_api.saying("x")] * 9
    return drafting_model("w")[0]


def keys(openai: OpenAiApi) -> list[str]:
    """Return the keys of the requests to the provider."""
    headers = (request.headers.get("authorization", "none") for request in openai.asked)
    return [header.removeprefix("Bearer ") for header in headers]


def test_the_key_is_read_at_the_first_request_and_kept(
    provider: ChatModel, secrets: OpenAiApi, openai: OpenAiApi
) -> None:
    secrets.answers = [value(KEY)]
    assert secrets.asked == []
    speak(provider)
    speak(provider)
    assert keys(openai) == [KEY, KEY]
    (request,) = secrets.asked
    assert request.headers["x-amz-target"] == "secretsmanager.GetSecretValue"
    assert request.body == {"SecretId": MODEL_KEY}


def test_a_replaced_key_is_used_after_five_minutes_without_a_deployment(
    provider: ChatModel, secrets: OpenAiApi, openai: OpenAiApi
) -> None:
    secrets.answers = [value("old"), value("new")]
    begun = clock.now()
    for passed in (timedelta(), KEPT - timedelta(milliseconds=1), KEPT):
        with clock.using(lambda passed=passed: begun + passed):  # type: ignore[misc]
            speak(provider)
    assert keys(openai) == ["old", "old", "new"]
    assert timedelta(minutes=5) == KEPT


def test_a_secret_without_a_value_means_that_no_key_is_sent(
    provider: ChatModel, secrets: OpenAiApi, openai: OpenAiApi
) -> None:
    secrets.answers = [refusal("ResourceNotFoundException")]
    speak(provider)
    assert keys(openai) == ["none"]


@pytest.mark.parametrize(
    "answer",
    [
        refusal("AccessDeniedException"),
        openai_api.refusing(503, b"{}"),
        lambda wire, _: wire.reset(),
    ],
    ids=["refused", "down", "cut off"],
)
def test_a_key_that_cannot_be_read_makes_the_model_unavailable(
    answer: Answering,
    provider: ChatModel,
    secrets: OpenAiApi,
    openai: OpenAiApi,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secrets.answers = [answer] * 6
    with caplog.at_level(logging.ERROR, "chalicelib"):
        text, error = fail(provider)
    assert (text, error.kind) == ([], "unavailable")
    assert openai.asked == []
    assert "the API key of the model provider cannot be read" in caplog.text
    secrets.answers = [value(KEY)]
    speak(provider)
    assert keys(openai) == [KEY]


def test_chat_without_a_readable_key_fails_and_is_not_charged(
    provider: ChatModel, secrets: OpenAiApi, openai: OpenAiApi, owner: Owner
) -> None:
    secrets.answers = [refusal("AccessDeniedException")]
    bot = new_bot(owner, model="our-own-model")
    start, failed = ask(bot, "What do you bake?").events
    assert (start["type"], failed) == (
        "start",
        {"type": "error", "error": ERRORS["provider_failed"], "code": "provider_failed"},
    )
    assert bot.money == (RICH, 0)
    secrets.answers = [value(KEY)]
    assert ask(bot, "What do you bake?").text == "x"
    assert keys(openai) == [KEY]


def test_the_setting_takes_precedence_over_the_secret(
    provider: ChatModel,
    secrets: OpenAiApi,
    openai: OpenAiApi,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Callable[[], None],
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "local")
    reload_settings()
    speak(drafting_model("w")[0])
    assert keys(openai) == ["local"]
    assert secrets.asked == []
