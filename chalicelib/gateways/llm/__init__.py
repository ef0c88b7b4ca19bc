"""Chat models behind one protocol: a stream of text, followed by the token usage.

Callers see no difference between the adapters. ``openai`` calls any server with OpenAI's API,
``bedrock`` calls Amazon Bedrock, and ``demo`` needs no key and no network.
"""

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cache
from typing import Literal, NamedTuple, Protocol

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import Provider, settings
from chalicelib.gateways.llm import models
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message
from chalicelib.gateways.llm.models import ModelSpec

STREAM_SECONDS = 300.0
"""Longest duration of a stream, from the request to its last token."""
COMPLETION_SECONDS = 20.0
"""Longest wait for a whole answer. API Gateway ends a call after 29 seconds."""
COMPLETION_BYTES = 128 * 1024

FailureKind = Literal["refused", "rate_limited", "unavailable", "timeout", "garbage", "cancelled"]


class ProviderUsage(NamedTuple):
    """Tokens of one request. ``messages`` estimates them if the provider reports none."""

    input_tokens: int
    output_tokens: int
    estimated: bool = False


class Reasoning(NamedTuple):
    """A piece of the model's reasoning. It costs output tokens and is not part of the answer."""

    text: str


Event = str | Reasoning | ProviderUsage
"""An item of a stream: a piece of the answer, a piece of reasoning, or the usage at the end."""


class Completion(NamedTuple):
    """A whole answer."""

    text: str
    usage: ProviderUsage


class ModelError(Exception):
    """A model did not answer, or its answer stopped early.

    ``kind`` is one of:

    - ``refused``: the provider does not accept the request, the key or the name of the model
    - ``rate_limited``
    - ``unavailable``: the provider is down, fails, or closed the connection
    - ``timeout``
    - ``garbage``: the response is not a valid answer
    - ``cancelled``: this service cancelled the stream

    ``reason`` is a sentence for the log. It contains neither the provider's message nor the key.
    ``retry_after`` is the wait in seconds that the provider requested.
    """

    def __init__(
        self,
        kind: FailureKind,
        reason: str,
        *,
        before_first_token: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.before_first_token = before_first_token
        self.retry_after = retry_after


class ChatModel(Protocol):
    """A chat model of one provider."""

    def stream(  # noqa: PLR0913  all of them are options of one request
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Send the messages, yield the answer's text in pieces, then one ``ProviderUsage``.

        Reasoning that the provider sends is yielded as ``Reasoning`` between the pieces.

        The request is sent at the first ``next``. Closing the generator cancels it. Another thread
        can cancel it with ``cancellation`` while this thread waits for the provider.

        Args:
            messages: the conversation.
            model: the provider's id of the model.
            max_output_tokens: largest length of the answer, in tokens.
            seconds: longest duration of the whole stream.
            json_object: whether to request a JSON object. Ignored if the provider cannot do that.
            cancellation: cancels the stream from another thread.

        Raises:
            ModelError: at any point. Only failures before the first piece have been retried.
        """


def complete(  # noqa: PLR0913  the arguments of ``stream`` and one limit
    chat_model: ChatModel,
    messages: Sequence[Message],
    *,
    model: str,
    max_output_tokens: int,
    seconds: float = COMPLETION_SECONDS,
    json_object: bool = False,
    max_bytes: int = COMPLETION_BYTES,
) -> Completion:
    """Send the messages and return the whole answer.

    Raises:
        ModelError: the model failed, or the answer exceeds ``max_bytes`` of UTF-8 (``garbage``).
    """
    events = chat_model.stream(
        messages,
        model=model,
        max_output_tokens=max_output_tokens,
        seconds=seconds,
        json_object=json_object,
    )
    pieces: list[str] = []
    size = 0
    with closing(events):
        for piece in events:
            if isinstance(piece, ProviderUsage):
                return Completion("".join(pieces), piece)
            if isinstance(piece, Reasoning):
                continue
            pieces.append(piece)
            size += len(piece.encode())
            if size > max_bytes:
                reason = f"The answer takes more than {max_bytes} bytes."
                raise ModelError("garbage", reason, before_first_token=False)
    raise ModelError("garbage", "The stream ended without usage.", before_first_token=not pieces)


def resolve(name: str) -> ModelSpec:
    """Return the provider, tariff and limits of the model that a bot names, by the settings.

    Raises:
        NotConfiguredError: no configured provider has the model (``gateways.llm.models.resolve``).
    """
    current = settings()
    return models.resolve(
        name,
        current.llm_providers,
        current.bedrock_profile,
        unknown_output=current.llm_unknown_output,
    )


def chat_model_for(spec: ModelSpec) -> ChatModel:
    """Return the adapter of a model's provider. Pass ``spec.provider_id`` to its ``stream``."""
    return _provider(spec.provider)


def drafting_model() -> tuple[ChatModel, str]:
    """Return the adapter and the provider's model id for drafting cards, as set in ``LLM_MODEL``.

    Raises:
        NotConfiguredError: the provider is ``off``, or ``LLM_MODEL`` is empty.
    """
    providers = settings().llm_providers
    if not providers:
        raise NotConfiguredError(
            "AI fill is switched off: the operator sets LLM_PROVIDER, to demo or to a provider."
        )
    if providers == ("demo",):
        return _provider("demo"), "demo"
    name = settings().llm_model
    if not name:
        raise NotConfiguredError(
            "AI fill has no model: the operator sets LLM_MODEL to the name of one."
        )
    spec = models.find(name)
    if spec is None or spec.provider not in providers:
        return _provider(providers[0]), name
    return _provider(spec.provider), resolve(name).provider_id


@cache
def _provider(name: Provider) -> ChatModel:
    match name:  # Load only the adapter in use.
        case "demo":
            from chalicelib.gateways.llm.demo import DemoModel  # noqa: PLC0415

            return DemoModel(settings().demo_word_seconds)
        case "openai":
            from chalicelib.gateways.llm.api_key import api_key  # noqa: PLC0415
            from chalicelib.gateways.llm.openai import OpenAiModel  # noqa: PLC0415

            return OpenAiModel(settings().llm_base_url, api_key())
        case "bedrock":
            from chalicelib.gateways.llm.bedrock import BedrockModel  # noqa: PLC0415

            return BedrockModel()
