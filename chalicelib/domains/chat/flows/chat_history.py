"""Select the part of a dialog that is sent to the model, and the room for its answer."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from chalicelib.core.errors import ValidationError
from chalicelib.gateways.llm.messages import (
    TOKENS_PER_MESSAGE,
    Message,
    ToolSpec,
    count_input,
    texts,
)

MAX_TURNS = 40
MAX_OUTPUT = 4_096  # output tokens per answer, even if the model supports more
MIN_CONTEXT = 2_000  # tokens of a model's context, whatever its server reports
# Minimum context, in tokens, of a model whose server refuses long messages without a number.
LEAST_ASSUMED_CONTEXT = 8_000
MIN_OUTPUT = 64  # output tokens; with less room, the message is refused
_BYTES_PER_TOKEN = 2


class Count(Protocol):
    """Counts the input tokens of messages and of tools."""

    def __call__(self, messages: Iterable[Message], tools: Sequence[ToolSpec] = ()) -> int:
        """Return the tokens."""


class MessageTooLongError(ValidationError):
    """A message exceeds the context of the bot's model, even without the dialog's history."""

    code = "message_too_long"


class Turn(NamedTuple):
    """A visitor's message and its answer, with the replies of members that followed."""

    question: str
    answer: str


def count_upper_bound(messages: Iterable[Message], tools: Sequence[ToolSpec] = ()) -> int:
    """Return an upper bound of the input tokens for any tokenizer: one per two bytes.

    Money is held for this number before the provider counts.
    """
    return sum(
        TOKENS_PER_MESSAGE + -(-len(text.encode()) // _BYTES_PER_TOKEN)
        for text in texts(messages, tools)
    )


def counter(provider: str) -> Count:
    """Return the function that counts a provider's input. It is exact for the embedded model."""
    return count_input if provider == "demo" else count_upper_bound


def room_for_answer(
    fixed: Sequence[Message], count: Count, context_tokens: int, *, max_output_tokens: int
) -> int | None:
    """Return the maximum tokens of an answer, or None if the message alone fills the context."""
    room = context_tokens - count(fixed)
    return min(room, max_output_tokens, MAX_OUTPUT) if room >= MIN_OUTPUT else None


def fit_history(
    preamble: Sequence[Message],
    turns: Iterable[Turn],
    question: Message,
    count: Count,
    room: int,
) -> tuple[list[Message], int]:
    """Return the messages to send to the model, and their input tokens: at most ``room``.

    As many complete ``turns``, newest first, as fit are sent, at most ``MAX_TURNS``. Turns without
    an answer are left out, because providers refuse two user messages in a row.
    """
    spent = count([*preamble, question])
    messages: list[Message] = []
    answered = (turn for turn in turns if turn.answer.strip())
    for turn in islice(answered, MAX_TURNS):
        pair = [Message("user", turn.question), Message("assistant", turn.answer)]
        cost = count(pair)
        # A turn in the middle must not be missing, so the first one that does not fit ends the
        # history.
        if spent + cost > room:
            break
        spent += cost
        messages = [*pair, *messages]
    return [*preamble, *messages, question], spent
