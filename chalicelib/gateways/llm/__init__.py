"""Chat models behind one protocol, a stream of ``Event`` objects, whatever the provider."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol

from chalicelib.core.errors import NotConfiguredError
from chalicelib.core.settings import Provider, settings
from chalicelib.core.test_workspaces import is_test
from chalicelib.gateways.llm import models, observed_limits
from chalicelib.gateways.llm.cancellation import Cancellation
from chalicelib.gateways.llm.messages import Message, ToolCall, ToolSpec
from chalicelib.gateways.llm.models import ModelSpec

STREAM_SECONDS = 300.0  # from the request of a stream to its last token
# The longest wait for a whole answer; API Gateway ends a call after 29 seconds.
COMPLETION_SECONDS = 20.0
COMPLETION_BYTES = 128 * 1024

FailureKind = Literal[
    "refused",
    "too_long",
    "no_tools",
    "filtered",
    "rate_limited",
    "unavailable",
    "timeout",
    "garbage",
    "cancelled",
]


StopReason = Literal["end", "tools", "length", "filtered", "other"]
"""Why an answer ended:

- ``end``: the model finished it
- ``tools``: the model waits for the results of its tool calls
- ``length``: the limit of output tokens or the model's context is used up
- ``filtered``: a filter of the provider withheld the rest
- ``other``: any other reason, such as calls that the provider could not parse
"""


class TextDelta(NamedTuple):
    text: str


class Reasoning(NamedTuple):
    """A piece of the model's reasoning. It costs output tokens and is not part of the answer."""

    text: str


class Stop(NamedTuple):
    reason: StopReason
    # belongs into the assistant message that has the answer's tool calls
    extra: Mapping[str, Any] | None = None


class ProviderUsage(NamedTuple):
    """Tokens of one request. ``messages`` estimates them if the provider reports none."""

    input_tokens: int
    output_tokens: int
    estimated: bool = False


# A stream yields pieces of content and of reasoning, then tool calls, one ``Stop`` and one usage.
# The stop reason is ``tools`` if and only if there are tool calls.
Event = TextDelta | Reasoning | ToolCall | Stop | ProviderUsage


class Completion(NamedTuple):
    text: str
    usage: ProviderUsage


class ModelError(Exception):
    """A model did not answer, or its answer stopped early.

    ``kind`` is one of:

    - ``refused``: the provider does not accept the request, the key or the name of the model
    - ``too_long``: the messages exceed the model's context. ``context_tokens`` is its size, if the
      provider states it
    - ``no_tools``: the model cannot call tools
    - ``filtered``: a filter of the provider refuses the messages
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
        context_tokens: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.before_first_token = before_first_token
        self.retry_after = retry_after
        self.context_tokens = context_tokens


class ChatModel(Protocol):
    def stream(  # noqa: PLR0913  all of them are options of one request
        self,
        messages: Sequence[Message],
        *,
        model: str,
        max_output_tokens: int,
        seconds: float = STREAM_SECONDS,
        json_object: bool = False,
        tools: Sequence[ToolSpec] = (),
        final: bool = False,
        cancellation: Cancellation | None = None,
    ) -> Generator[Event, None, None]:
        """Send the messages, and yield the answer as it arrives.

        Tool calls are yielded when the answer is complete. An answer that was cut off, filtered or
        too long has none, because its last call may be cut off as well.

        The request is sent at the first ``next``. Closing the generator cancels it. Another thread
        can cancel it with ``cancellation`` while this thread waits for the provider.

        Args:
            messages: the conversation.
            model: the provider's id of the model.
            max_output_tokens: largest length of the answer, in tokens.
            seconds: longest duration of the whole stream.
            json_object: whether to request a JSON object. Ignored if the provider cannot do that.
            tools: the tools that the model may call, the same ones in all requests of a turn.
            final: whether the model must answer without further calls. Calls are then dropped.
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
    """Return the whole answer, or raise ModelError, also if it exceeds ``max_bytes`` of UTF-8."""
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
        for event in events:
            if isinstance(event, ProviderUsage):
                return Completion("".join(pieces), event)
            if not isinstance(event, TextDelta):
                continue
            pieces.append(event.text)
            size += len(event.text.encode())
            # A server may ignore the limit of tokens, so the size is bounded as well.
            if size > max_bytes:
                reason = f"The answer takes more than {max_bytes} bytes."
                raise ModelError("garbage", reason, before_first_token=False)
    raise ModelError("garbage", "The stream ended without usage.", before_first_token=not pieces)


def resolve(name: str, *, tenant: str) -> ModelSpec:
    """Return the provider, tariff and current limits of the model that a bot of a tenant names.

    In a test workspace the model ``demo`` stands in for every model, and costs nothing. Raises
    NotConfiguredError if no configured provider has it (``gateways.llm.models.resolve``).
    """
    if is_test(tenant):
        spec = models.resolve(name, ("demo",))
        return spec._replace(input_price=0, output_price=0)
    current = settings()
    spec = models.resolve(
        name,
        current.llm_providers,
        current.bedrock_profile,
        unknown_context=current.llm_unknown_context,
        unknown_output=current.llm_unknown_output,
    )
    observed = observed_limits.context_tokens(spec.provider_id)
    # A server may offer a smaller context than the catalogue states.
    return spec._replace(
        context_tokens=min(spec.context_tokens, observed or spec.context_tokens),
        takes_tools=spec.takes_tools
        and "tools" not in observed_limits.refused_parts(spec.provider_id),
    )


def takes_tools(name: str, *, tenant: str) -> bool:
    """Return whether a bot's model can call tools. Without a provider, every model can."""
    try:
        return resolve(name, tenant=tenant).takes_tools
    except NotConfiguredError:
        return True


def is_known(name: str, *, tenant: str) -> bool:
    """Return whether the catalogue has the model of a name."""
    try:
        return resolve(name, tenant=tenant).known
    except NotConfiguredError:
        return models.find(name) is not None


def chat_model_for(spec: ModelSpec) -> ChatModel:
    """Return the adapter of a model's provider. Pass ``spec.provider_id`` to its ``stream``."""
    return _provider(spec.provider)


def drafting_model(tenant: str) -> tuple[ChatModel, str]:
    """Return the adapter and the model id for drafting cards, or raise NotConfiguredError."""
    providers = ("demo",) if is_test(tenant) else settings().llm_providers
    if not providers:
        raise NotConfiguredError(
            "AI drafts are switched off. The operator can set LLM_PROVIDER to demo or to a "
            "provider.",
            key="models",
        )
    if providers == ("demo",):
        return _provider("demo"), "demo"
    name = settings().llm_model
    if not name:
        raise NotConfiguredError(
            "AI drafts have no model. The operator can set LLM_MODEL to the name of a model.",
            key="model",
        )
    spec = models.find(name)
    if spec is None or spec.provider not in providers:
        return _provider(providers[0]), name
    return _provider(spec.provider), resolve(name, tenant=tenant).provider_id


@cache
def _provider(name: Provider) -> ChatModel:
    match name:  # Load only the adapter in use.
        case "demo":
            from chalicelib.gateways.llm.demo import DemoModel

            return DemoModel(settings().demo_word_seconds, has_endings=settings().demo_endings)
        case "openai":
            from chalicelib.gateways.llm.api_key import api_key
            from chalicelib.gateways.llm.openai import OpenAiModel

            return OpenAiModel(settings().llm_base_url, api_key())
        case "bedrock":
            from chalicelib.gateways.llm.bedrock import BedrockModel

            return BedrockModel()
