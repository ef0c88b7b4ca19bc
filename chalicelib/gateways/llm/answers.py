"""An answer that is being read from a provider, shared by the adapters of all providers.

Tool calls arrive in pieces. They are yielded at the end, and only if the provider completed the
answer, so callers never receive a part of a call.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from chalicelib.gateways.llm import (
    Event,
    ModelError,
    ProviderUsage,
    Reasoning,
    Stop,
    StopReason,
    TextDelta,
)
from chalicelib.gateways.llm.messages import (
    Message,
    TokenCounter,
    ToolCall,
    ToolSpec,
    count_input,
)

MAX_CALLS = 32
MAX_NAME = 64
"""Longest name of a tool, in characters. It is the limit of OpenAI and of Bedrock."""
MAX_ARGUMENTS = 64 * 1024
"""Largest arguments of a call, in bytes."""


class CallParts:
    """A tool call that arrives in parts. ``id`` is empty if the provider sends none.

    ``extra`` is what the provider sent with the call and expects to receive again.
    """

    def __init__(self, id_: str, name: str) -> None:
        self.id = id_
        self.name = name
        self.extra: Any = None
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        """Add a piece of the arguments.

        Raises:
            ModelError: ``garbage``, if the arguments exceed ``MAX_ARGUMENTS``.
        """
        self._size += len(piece.encode(errors="replace"))
        if self._size > MAX_ARGUMENTS:
            raise _garbage("The arguments of a tool call are too large.")
        self._pieces.append(piece)

    @property
    def arguments(self) -> str:
        """The arguments, or an empty object if the model wrote none."""
        return _well_formed("".join(self._pieces)).strip() or "{}"


class Answer:
    """The part of an answer that a provider has sent so far.

    The adapter sets ``reason`` when the answer ends, and ``usage`` if the provider reports it. It
    adds to ``extra`` what the provider expects to receive again in a turn with tool calls.
    """

    def __init__(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, final: bool = False
    ) -> None:
        self.reason: StopReason | None = None
        self.usage: ProviderUsage | None = None
        self.extra: dict[str, Any] = {}
        self._messages, self._tools = messages, tools
        self._takes_calls = bool(tools) and not final
        self._calls: list[CallParts] = []
        # Each kind has a counter, because the pieces of several kinds may alternate.
        self._text_counter, self._reasoning_counter = TokenCounter(), TokenCounter()
        self._call_counter = TokenCounter()

    def text(self, text: str) -> TextDelta:
        """Count a piece of the answer, and return its event."""
        self._text_counter.add(text)
        return TextDelta(text)

    def reasoning(self, text: str) -> Reasoning:
        """Count a piece of the reasoning, and return its event."""
        self._reasoning_counter.add(text)
        return Reasoning(text)

    def begin_call(self, id_: str, name: str) -> CallParts:
        """Return a new call. Without a name, it is dropped at the end.

        Raises:
            ModelError: ``garbage``, if it is one call too many.
        """
        if len(self._calls) == MAX_CALLS:
            raise _garbage("The answer has too many tool calls.")
        call = CallParts(id_, name)
        self._call_counter.add(f" {name} ")
        self._calls.append(call)
        return call

    def add_arguments(self, call: CallParts, piece: str) -> None:
        """Count a piece of a call's arguments, and add it to the call."""
        self._call_counter.add(piece)
        call.add(piece)

    def end(self) -> Iterator[Event]:
        """Yield the tool calls, the stop and the usage.

        Raises:
            ModelError: ``unavailable`` if the answer did not end, ``garbage`` for a long name.
        """
        if self.reason is None:
            raise ModelError("unavailable", "The provider's answer ended early.")
        is_complete = self.reason in {"end", "tools"}
        calls = self._named_calls() if is_complete and self._takes_calls else []
        yield from (call for call, _ in calls)
        if calls:
            if extras := {call.id: extra for call, extra in calls if extra}:
                self.extra["calls"] = extras
            yield Stop("tools", self.extra or None)
        else:
            yield Stop("other" if self.reason == "tools" else self.reason)
        counters = self._text_counter, self._reasoning_counter, self._call_counter
        yield self.usage or ProviderUsage(
            count_input(self._messages, self._tools),
            sum(counter.tokens for counter in counters),
            estimated=True,
        )

    def _named_calls(self) -> list[tuple[ToolCall, Any]]:
        """Return the calls that have a name, with their extra. Their ids are unique in the turn."""
        taken = {call.id for message in self._messages for call in message.calls}
        found = []
        for call in self._calls:
            if len(call.name) > MAX_NAME:
                raise _garbage("The name of a tool is too long.")
            if call.name:
                id_ = _well_formed(call.id)
                id_ = id_ if id_ and id_ not in taken else _new_id(taken)
                taken.add(id_)
                found.append((ToolCall(id_, _well_formed(call.name), call.arguments), call.extra))
        return found


def _new_id(taken: set[str]) -> str:
    """Return an id of nine letters and digits. Mistral accepts no other form."""
    return next(id_ for number in count(1) if (id_ := f"call{number:05}") not in taken)


def _well_formed(text: str) -> str:
    """Return the text with halves of a character joined. A half without the other is replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _garbage(reason: str) -> ModelError:
    return ModelError("garbage", reason)
