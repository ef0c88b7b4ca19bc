"""A chat model on loopback, and the answers of a request."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from chalicelib.gateways.llm import (
    ChatModel,
    Event,
    ModelError,
    Stop,
    TextDelta,
    chat_completions,
    converse,
    event_stream,
)
from chalicelib.gateways.llm.answers import Answer
from chalicelib.gateways.llm.messages import Message, ToolSpec
from chalicelib.gateways.llm.openai import OpenAiModel
from tests.fakes import bedrock_api
from tests.fakes.openai_api import OpenAiApi
from tests.support.patience import FOR_EVER

KEY = "sk-test-0123456789abcdef"
ASKED = [Message("system", "Be brief."), Message("user", "Ёж 🦔?")]


def read_chunks(
    blocks: Iterable[bytes],
    tools: Sequence[ToolSpec] = (),
    *,
    messages: Sequence[Message] = ASKED,
    final: bool = False,
) -> Iterator[Event]:
    """Read an answer in the format of chat completions."""
    answer = Answer(messages, tools, final=final)
    return chat_completions.read_stream(event_stream.read(blocks), answer)


def read_frames(
    blocks: Iterable[bytes], tools: Sequence[ToolSpec] = (), *, final: bool = False
) -> Iterator[Event]:
    """Read an answer in the format of ConverseStream."""
    return converse.read_stream(bedrock_api.parsed(blocks), Answer(ASKED, tools, final=final))


def model(openai: OpenAiApi, **bounds: float) -> OpenAiModel:
    return OpenAiModel(openai.url, lambda: KEY, **bounds)


Said = str | Event
"""An event of a model. A ``TextDelta`` is a str."""


def spoken(events: Iterable[Event]) -> Iterator[Said]:
    """Yield the events, with strings for text deltas and without the stop."""
    for event in events:
        if not isinstance(event, Stop):
            yield event.text if isinstance(event, TextDelta) else event


def events(chat_model: ChatModel, seconds: float = FOR_EVER, **options: Any) -> list[Event]:
    arguments: dict[str, Any] = {
        "messages": ASKED,
        "model": "m-1",
        "max_output_tokens": 50,
        **options,
    }
    with closing(chat_model.stream(seconds=seconds, **arguments)) as stream:
        return list(stream)


def speak(chat_model: ChatModel, seconds: float = FOR_EVER, **options: Any) -> list[Said]:
    return list(spoken(events(chat_model, seconds, **options)))


def fail(
    chat_model: ChatModel, seconds: float = FOR_EVER, **options: Any
) -> tuple[list[Said], ModelError]:
    """Return the events received before the failure, and the failure."""
    calls: list[Said] = []
    stream = chat_model.stream(ASKED, model="m-1", max_output_tokens=50, seconds=seconds, **options)
    received = spoken(stream)
    try:
        while True:
            calls.append(next(received))
    except ModelError as error:
        return calls, error
