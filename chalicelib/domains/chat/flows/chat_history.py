"""What of a dialog a model is told again, and how much it may answer."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from chalicelib.core.errors import ValidationError
from chalicelib.gateways.llm.messages import TOKENS_PER_MESSAGE, Message, count_input

MAX_TURNS = 40
MAX_OUTPUT = 4_096
"""Tokens of an answer, of models that could say more: a chat is no essay."""
LEAST_OUTPUT = 64
"""Tokens that there must be room for; an answer that may be no longer is not worth its price."""
_BYTES_PER_TOKEN = 2

Count = Callable[[Iterable[Message]], int]
"""Counts the input tokens of messages."""


class MessageTooLongError(ValidationError):
    """A chat message does not fit what the bot's model takes, even without the dialog so far."""

    code = "message_too_long"


class Turn(NamedTuple):
    """A visitor's message and the answer to it."""

    question: str
    answer: str


def count_safely(messages: Iterable[Message]) -> int:
    """Return the most input tokens that messages may come to with any tokenizer.

    One for two bytes: for what is reserved before a provider has counted.
    """
    return sum(
        TOKENS_PER_MESSAGE + -(-len(each.content.encode()) // _BYTES_PER_TOKEN) for each in messages
    )


def counter(provider: str) -> Count:
    """Return how to count what a provider is sent: the embedded model's tokens are known."""
    return count_input if provider == "demo" else count_safely


def room_for_answer(
    fixed: Sequence[Message], count: Count, context_tokens: int, max_output_tokens: int
) -> int | None:
    """Return how many tokens an answer may have, or None if the message alone fills the context."""
    room = context_tokens - count(fixed)
    return min(room, max_output_tokens, MAX_OUTPUT) if room >= LEAST_OUTPUT else None


def fit(
    before: Sequence[Message],
    turns: Iterable[Turn],
    question: Message,
    count: Count,
    room: int,
) -> tuple[list[Message], int]:
    """Return the messages that a model is sent, and their input tokens: at most ``room``.

    ``turns`` come newest first; as many as fit, ``MAX_TURNS`` at most, are told again, each whole.
    Those without an answer are left out: two user messages in a row make providers refuse.
    """
    spent = count([*before, question])
    told: list[Message] = []
    answered = (turn for turn in turns if turn.answer.strip())
    for turn in islice(answered, MAX_TURNS):
        pair = [Message("user", turn.question), Message("assistant", turn.answer)]
        cost = count(pair)
        if spent + cost > room:
            break
        spent += cost
        told = [*pair, *told]
    return [*before, *told, question], spent
