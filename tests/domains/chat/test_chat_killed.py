"""Test that the words shown by a killed process are stored and charged, with a real process."""

import json
import os
import time as real_time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chalicelib.core import clock
from chalicelib.gateways.llm import models
from chalicelib.gateways.llm.messages import Message, ToolSpec, count_input, count_tokens
from chalicelib.transports import scheduled_functions
from tests.conftest import Api, Owner, Time
from tests.factories.chat import RICH, new_bot, read_events, transcript
from tests.fakes import lambda_runtime_api, openai_api
from tests.fakes.openai_api import OpenAiApi
from tests.support.database_over_http import endpoint  # noqa: F401  a fixture
from tests.support.patience import PATIENCE

pytestmark = [pytest.mark.store, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
WORDS = [f"word{number} " for number in range(20)]


@pytest.fixture
def provider() -> Iterator[OpenAiApi]:
    """A provider that sends twenty words, and then nothing."""
    with openai_api.serving() as server:
        events = [openai_api.event(openai_api.piece(word)) for word in WORDS]
        server.answers = [openai_api.silent_after(*events)]
        yield server


@pytest.fixture
def chat(
    endpoint: str,  # noqa: F811  the fixture
    provider: OpenAiApi,
) -> Iterator[lambda_runtime_api.Function]:
    """The streaming function in a process of its own."""
    environment = {
        "STAGE": "test",
        "LLM_PROVIDER": "openai",
        "LLM_BASE_URL": provider.url,
        "OBJECT_STORE": os.environ["OBJECT_STORE"],
        "RATE_LIMIT_SCALE": os.environ["RATE_LIMIT_SCALE"],
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_DEFAULT_REGION": os.environ["AWS_DEFAULT_REGION"],
        "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
        "no_proxy": "127.0.0.1",
    }
    bootstrap = ROOT / "vendor" / "stream_bootstrap"
    with lambda_runtime_api.function(bootstrap, environment, task=ROOT) as function:
        yield function


def test_twenty_words_shown_before_a_kill_are_stored_and_charged(
    chat: lambda_runtime_api.Function, provider: OpenAiApi, owner: Owner, api: Api, time: Time
) -> None:
    bot = new_bot(owner, model="our-own-model")
    question = "Tell me a tale"
    body = json.dumps({"agentId": bot.id, "message": question})
    visible_answer = ""
    for piece in chat.invoke(lambda_runtime_api.event(body)).pieces():
        visible_answer += "".join(event.get("content", "") for event in read_events(piece))
        if visible_answer == "".join(WORDS):
            break
    deadline = real_time.monotonic() + PATIENCE
    while transcript(api, bot)[-1]["content"] != visible_answer:
        assert real_time.monotonic() < deadline, "the shown words were not stored in time"
    chat.process.kill()
    chat.process.wait()
    # The killed process used the real clock. The job runs ten minutes after that.
    time.now = clock.moment_at(int(real_time.time() * 1000))
    time.pass_by(minutes=10, seconds=1)
    scheduled_functions.run_jobs()
    answer = transcript(api, bot)[-1]
    assert (answer["content"], answer["status"]) == (visible_answer, "partial")
    spec = models.resolve("our-own-model", ["openai"])
    (request,) = provider.asked
    functions = [tool["function"] for tool in request.body["tools"]]
    specs = [ToolSpec(tool["name"], tool["description"], tool["parameters"]) for tool in functions]
    input_tokens = count_input([Message(**message) for message in request.body["messages"]], specs)
    used = input_tokens * spec.input_price + count_tokens(visible_answer) * spec.output_price
    assert bot.money == (RICH - -(-used // 10**6), 0)
    assert bot.kinds == ["topup", "reserve", "settle"]
