"""Chat models behind one protocol: the text as it is spoken, then what it took.

The adapters differ in nothing that a caller sees: ``openai`` speaks to any server of that shape,
``bedrock`` to AWS, and ``demo`` needs no key and no network.
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
"""The longest that a stream may take, from the request to its last token (chat.md, The stream)."""
COMPLETION_SECONDS = 20.0
"""The longest that a caller waits for a whole answer: an API call has 29 seconds (API Gateway)."""
COMPLETION_BYTES = 128 * 1024

FailureKind = Literal["refused", "rate_limited", "unavailable", "timeout", "garbage", "cancelled"]


class ProviderUsage(NamedTuple):
    """The tokens of one request, estimated by ``messages`` if the provider reports none."""

    input_tokens: int
    output_tokens: int
    estimated: bool = False


class Reasoning(NamedTuple):
    """A piece of the model's reasoning: it takes output tokens and is no part of the answer."""

    text: str


Event = str | Reasoning | ProviderUsage
"""What a stream yields: pieces of the answer or of the reasoning before it, at last the usage."""


class Completion(NamedTuple):
    """A whole answer."""

    text: str
    usage: ProviderUsage


class ModelError(Exception):
    """A model did not answer, or stopped midway.

    ``kind`` is ``refused`` (the request, the key or the model's name is not accepted),
    ``rate_limited``, ``unavailable`` (down, failing or cut off), ``timeout``, ``garbage`` (what
    came is no answer) or ``cancelled`` (by us). ``reason`` is a sentence of ours for the log: it
    holds neither the provider's words nor the key. ``retry_after`` is how many seconds the provider
    asks to wait.
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
    """Where answers come from."""

    def stream(  # noqa: PLR0913  what an answer is to be, and who may end it
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Ask, and yield the answer's text in pieces as they come, then one ``ProviderUsage``.

        Reasoning that the provider shows comes as ``Reasoning``, between the pieces.

        Nothing is asked before the first ``next``; closing the generator cancels the request, and
        so does ``cancellation`` from another thread, while this one waits for the provider.
        ``model`` is the provider's name of the model; ``seconds`` bounds the whole stream;
        ``json_object`` asks for a JSON object, where the provider knows how to.

        Raises:
            ModelError: at any point. Only failures before the first piece have been retried.
        """


def complete(  # noqa: PLR0913  what a stream takes, and one bound more
    chat_model: ChatModel,
    messages: Sequence[Message],
    *,
    model: str,
    max_output_tokens: int,
    seconds: float = COMPLETION_SECONDS,
    json_object: bool = False,
    max_bytes: int = COMPLETION_BYTES,
) -> Completion:
    """Ask, and return the whole answer.

    Raises:
        ModelError: there is none, or it takes more than ``max_bytes`` of UTF-8 (``garbage``).
    """
    asked = chat_model.stream(
        messages,
        model=model,
        max_output_tokens=max_output_tokens,
        seconds=seconds,
        json_object=json_object,
    )
    pieces: list[str] = []
    size = 0
    with closing(asked) as stream:
        for piece in stream:
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
    """Return the model that a bot's model name stands for here: provider, tariff and limits.

    Raises:
        NotConfiguredError: nobody answers for it (``gateways.llm.models.resolve``).
    """
    chosen = settings()
    return models.resolve(
        name,
        chosen.llm_providers,
        chosen.bedrock_profile,
        unknown_output=chosen.llm_unknown_output,
    )


def chat_model_for(spec: ModelSpec) -> ChatModel:
    """Return who answers for a model; ``stream`` is given its ``provider_id``."""
    return _provider(spec.provider)


def drafting_model() -> tuple[ChatModel, str]:
    """Return the model that drafts cards, and its provider's name of it, by ``LLM_MODEL``.

    Raises:
        NotConfiguredError: the provider is ``off``, or lacks the name of a model.
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
    match name:  # Only what is used is loaded.
        case "demo":
            from chalicelib.gateways.llm.demo import DemoModel  # noqa: PLC0415

            return DemoModel(settings().demo_word_seconds)
        case "openai":
            from chalicelib.gateways.llm.openai import OpenAiModel  # noqa: PLC0415

            return OpenAiModel(settings().llm_base_url, settings().llm_api_key)
        case "bedrock":
            from chalicelib.gateways.llm.bedrock import BedrockModel  # noqa: PLC0415

            return BedrockModel()
