"""A chat model on loopback, and the answers of a request."""

from contextlib import closing
from typing import Any

from chalicelib.gateways.llm import ChatModel, ModelError, ProviderUsage
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.openai import OpenAiModel
from tests.fakes.openai_api import OpenAiApi
from tests.support.patience import FOR_EVER

KEY = "sk-test-0123456789abcdef"
ASKED = [Message("system", "Be request."), Message("user", "Ёж 🦔?")]


def model(openai: OpenAiApi, **bounds: float) -> OpenAiModel:
    return OpenAiModel(openai.url, lambda: KEY, **bounds)


def speak(
    chat_model: ChatModel, seconds: float = FOR_EVER, **options: Any
) -> list[str | ProviderUsage]:
    with closing(
        chat_model.stream(ASKED, model="m-1", max_output_tokens=50, seconds=seconds, **options)
    ) as stream:
        return list(stream)


def fail(
    chat_model: ChatModel, seconds: float = FOR_EVER
) -> tuple[list[str | ProviderUsage], ModelError]:
    """Return the text received before the failure, and the failure."""
    said: list[str | ProviderUsage] = []
    stream = chat_model.stream(ASKED, model="m-1", max_output_tokens=50, seconds=seconds)
    try:
        while True:
            said.append(next(stream))
    except ModelError as error:
        return said, error
