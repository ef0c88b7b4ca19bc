"""Messages and tools for a chat model, and an estimate of their tokens."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

# No other role is ever sent to a model. ``tool`` has results of tool calls.
Role = Literal["system", "user", "assistant", "tool"]

BYTES_PER_TOKEN = 4  # of UTF-8, an average over current tokenizers, for prose in any script
# In addition to its text, for the role and the delimiters. A tool, a tool call and the result of a
# call take as many.
TOKENS_PER_MESSAGE = 4
NO_RESULT = "This call was not carried out."  # what the model receives for a call without a result


class ToolSpec(NamedTuple):
    """A tool that a model may call."""

    name: str
    description: str
    schema: dict[str, Any]  # JSON Schema of its arguments, an object


class ToolCall(NamedTuple):
    """A tool call that a model requests."""

    id: str  # unique within the messages of a turn
    name: str
    arguments: str  # the JSON text that the model wrote, which may be invalid

    def parsed(self) -> dict[str, Any] | None:
        """Return the arguments, or None if they are not a JSON object."""
        try:
            value = json.loads(self.arguments)
            # Serializing the arguments again finds the numbers and the characters that JSON cannot
            # carry.
            # JSON has no NaN and no infinite number, and a lone surrogate cannot be stored or sent.
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class ToolResult(NamedTuple):
    """Result of the tool call with the same id and name."""

    id: str
    name: str
    content: str
    is_error: bool = False


class Message(NamedTuple):
    """One message of a chat.

    An assistant message may have tool ``calls``. The next message has the role ``tool``, an empty
    content and the ``results`` of these calls. ``extra`` is ``Stop.extra`` of the answer with the
    calls. Only the adapter that created it knows its content.
    """

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    extra: Mapping[str, Any] | None = None


def complete_results(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, with exactly one result for each call, directly after the calls."""
    calls: tuple[ToolCall, ...] = ()
    results: dict[str, ToolResult] = {}
    for message in (*messages, None):
        if message is not None and message.role == "tool":
            results.update((tool_result.id, tool_result) for tool_result in message.results)
            continue
        # Providers refuse calls without results, and results without calls.
        if calls:
            yield Message("tool", "", results=tuple(_result(call, results) for call in calls))
        if message is not None:
            yield message
            calls, results = message.calls, {}


def _result(call: ToolCall, results: Mapping[str, ToolResult]) -> ToolResult:
    missing = ToolResult(call.id, call.name, NO_RESULT, is_error=True)
    return results.get(call.id, missing)


def count_tokens(text: str) -> int:
    """Return the token count of a string: exact for the demo model, an estimate for others."""
    # Counting by words means that the parts of a stream add up to the count of the whole string.
    return sum(-(-len(word.encode(errors="replace")) // BYTES_PER_TOKEN) for word in text.split())


class TokenCounter:
    """Counts a string that arrives in pieces. One thread adds pieces; any may read ``tokens``."""

    def __init__(self) -> None:
        self.tokens = 0
        self._before = 0
        self._word_bytes = 0

    def add(self, piece: str) -> None:
        """Count another piece. A piece may begin or end in the middle of a word."""
        if piece[:1].isspace():
            self._end_word()
        for index, word in enumerate(piece.split()):
            if index:
                self._end_word()
            self._word_bytes += len(word.encode(errors="replace"))
        if piece[-1:].isspace():
            self._end_word()
        self.tokens = self._before + self._tokens_of_word()

    def _tokens_of_word(self) -> int:
        return -(-self._word_bytes // BYTES_PER_TOKEN)

    def _end_word(self) -> None:
        self._before += self._tokens_of_word()
        self._word_bytes = 0


def texts(messages: Iterable[Message], tools: Sequence[ToolSpec] = ()) -> Iterator[str]:
    """Yield all strings of a request that the model reads, including calls, results and tools."""
    for message in messages:
        yield message.content
        yield from (" ".join(call) for call in message.calls)
        yield from (
            f"{tool_result.id} {tool_result.name} {tool_result.content}"
            for tool_result in message.results
        )
        if message.extra:
            text = json.dumps(message.extra, ensure_ascii=False, default=str)
            yield text.encode(errors="replace").decode()
    yield from (f"{tool.name} {tool.description} {json.dumps(tool.schema)}" for tool in tools)


def count_input(messages: Iterable[Message], tools: Sequence[ToolSpec] = ()) -> int:
    """Return the input tokens of a request, without instructions that providers add for tools."""
    return sum(TOKENS_PER_MESSAGE + count_tokens(text) for text in texts(messages, tools))
