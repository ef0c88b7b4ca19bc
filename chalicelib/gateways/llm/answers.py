"""The answer that an adapter reads from its provider, without reasoning, its calls at the end."""

import logging
import re
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

log = logging.getLogger(__name__)

MAX_CALLS = 32
MAX_NAME = 64  # characters, the limit of OpenAI and of Bedrock
MAX_ARGUMENTS = 64 * 1024  # bytes


class CallParts:
    """A tool call that arrives in parts."""

    def __init__(self, id_: str, *, name: str) -> None:
        self.id = id_  # empty if the provider sends none
        self.name = name
        self.extra: Any = None  # what the provider sent with the call and expects to receive again
        self._pieces: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        """Add a piece of the arguments, or raise ModelError if they exceed ``MAX_ARGUMENTS``."""
        self._size += len(piece.encode(errors="replace"))
        if self._size > MAX_ARGUMENTS:
            raise _garbage("The arguments of a tool call are too large.")
        self._pieces.append(piece)

    @property
    def arguments(self) -> str:
        """The arguments, or an empty object if the model wrote none."""
        return _well_formed("".join(self._pieces)).strip() or "{}"


class Answer:
    """The part of an answer that a provider has sent so far."""

    def __init__(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, final: bool = False
    ) -> None:
        self.reason: StopReason | None = None  # The adapter sets it when the answer ends.
        self.usage: ProviderUsage | None = None  # The adapter sets it if the provider reports it.
        # What the provider expects to receive again in a turn with tool calls.
        self.extra: dict[str, Any] = {}
        self._messages, self._tools = messages, tools
        self._takes_calls = bool(tools) and not final
        self._calls: list[CallParts] = []
        # Each kind has a counter, because the pieces of several kinds may alternate.
        self._text_counter, self._reasoning_counter = TokenCounter(), TokenCounter()
        self._call_counter = TokenCounter()
        self._tags = _ReasoningTags()

    def text(self, text: str) -> Iterator[Event]:
        """Yield a piece of the answer, without the reasoning that it begins with."""
        # Some models write their reasoning into the answer, between tags.
        for is_reasoning, part in self._tags.split(text):
            yield self.reasoning(part) if is_reasoning else self._text(part)

    def _text(self, text: str) -> TextDelta:
        self._text_counter.add(text)
        return TextDelta(text)

    def reasoning(self, text: str) -> Reasoning:
        """Count a piece of the reasoning, and return its event."""
        self._reasoning_counter.add(text)
        return Reasoning(text)

    def begin_call(self, id_: str, *, name: str) -> CallParts:
        """Return a new call, dropped at the end without a name. One too many raises ModelError."""
        if len(self._calls) == MAX_CALLS:
            raise _garbage("The answer has too many tool calls.")
        call = CallParts(id_, name=name)
        self._call_counter.add(f" {name} ")
        self._calls.append(call)
        return call

    def add_arguments(self, call: CallParts, piece: str) -> None:
        self._call_counter.add(piece)
        call.add(piece)

    def end(self) -> Iterator[Event]:
        """Yield held-back text, calls, stop and usage, or raise ModelError for an early end."""
        if self.reason is None:
            raise ModelError("unavailable", "The provider's answer ended early.")
        if remaining_text := self._tags.flush():
            yield self._text(remaining_text)
        # Callers never receive a part of a call.
        is_complete = self.reason in {"end", "tools"}
        calls = self._named_calls() if is_complete and self._takes_calls else []
        yield from (call for call, _ in calls)
        if calls:
            if extras := {call.id: extra for call, extra in calls if extra}:
                self.extra["calls"] = extras
            yield Stop("tools", self.extra or None)
        else:
            yield Stop("other" if self.reason == "tools" else self.reason)
        yield self._plausible_usage()

    def _plausible_usage(self) -> ProviderUsage:
        # The own count is up to 1.7 times a tokenizer's count, for Russian. Some proxies report 0.
        counters = self._text_counter, self._reasoning_counter, self._call_counter
        input_tokens = count_input(self._messages, self._tools)
        received = sum(counter.tokens for counter in counters)
        usage = self.usage
        if usage is None:
            return ProviderUsage(input_tokens, received, estimated=True)
        if 4 * usage.output_tokens < self._text_counter.tokens:
            log.warning("a reported usage is too low", extra={"reported": usage, "own": received})
            usage = ProviderUsage(usage.input_tokens or input_tokens, received)
        return usage

    def _named_calls(self) -> list[tuple[ToolCall, Any]]:
        used_ids = {call.id for message in self._messages for call in message.calls}
        calls = []
        for call in self._calls:
            if len(call.name) > MAX_NAME:
                raise _garbage("The name of a tool is too long.")
            if call.name:
                id_ = _well_formed(call.id)
                # The next request names the call by its id, so two calls of a turn must not share
                # one.
                id_ = id_ if id_ and id_ not in used_ids else _new_id(used_ids)
                used_ids.add(id_)
                calls.append((ToolCall(id_, _well_formed(call.name), call.arguments), call.extra))
        return calls


_TAG_NAMES = ("think", "thinking", "thought", "reasoning")
_OPENING_TAG = re.compile(rf"\s*<({'|'.join(_TAG_NAMES)})(?:\s[^<>]*)?>", re.IGNORECASE)
_UNFINISHED_TAG = re.compile(rf"\s*(?:<(?:{'|'.join(_TAG_NAMES)})(?:\s[^<>]*)?)?", re.IGNORECASE)


class _ReasoningTags:
    def __init__(self) -> None:
        # Only tags at the beginning of an answer count. Later tags are content, such as HTML in an
        # answer about HTML.
        self._pending = ""
        self._closing_tag: re.Pattern[str] | None = None  # of the reasoning that has begun
        self._follows_reasoning = self._has_text = False

    def split(self, piece: str) -> Iterator[tuple[bool, str]]:
        # What may be the beginning of a tag is held back.
        if self._has_text:
            yield False, piece
            return
        self._pending += piece
        while self._pending:
            if self._closing_tag:
                end = self._closing_tag.search(self._pending)
                size = end.start() if end else len(self._pending) - self._held_back()
                if size:
                    yield True, self._pending[:size]
                self._pending = self._pending[end.end() if end else size :]
                if end is None:
                    return
                self._closing_tag = None
            elif opening := _OPENING_TAG.match(self._pending):
                # The closing tag must have the same name, because reasoning may mention the other
                # tags.
                self._closing_tag = re.compile(f"</{opening[1]}>", re.IGNORECASE)
                self._follows_reasoning = True
                self._pending = self._pending[opening.end() :]
            elif _UNFINISHED_TAG.fullmatch(self._pending) or any(
                f"<{name}".startswith(self._pending.strip().lower()) for name in _TAG_NAMES
            ):
                return
            else:
                self._has_text = True
                yield False, self.flush()
                self._pending = ""

    def flush(self) -> str:
        if self._closing_tag:
            # Reasoning that never ends leads to no answer.
            return ""
        return self._pending.lstrip() if self._follows_reasoning else self._pending

    def _held_back(self) -> int:
        tag = self._closing_tag.pattern.lower() if self._closing_tag else ""
        sizes = range(len(tag) - 1, 0, -1)
        return next((size for size in sizes if self._pending[-size:].lower() == tag[:size]), 0)


def _new_id(used_ids: set[str]) -> str:
    # Mistral accepts no other form.
    return next(id_ for number in count(1) if (id_ := f"call{number:05}") not in used_ids)


def _well_formed(text: str) -> str:
    # Halves of a character are joined, and a half without the other is replaced.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _garbage(reason: str) -> ModelError:
    return ModelError("garbage", reason)
