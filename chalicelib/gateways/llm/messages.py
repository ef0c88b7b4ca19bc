"""Messages for a chat model, and an estimate of their tokens."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Role = Literal["system", "user", "assistant"]
"""Roles of messages. No other role is ever sent to a model."""

BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per token: an average over current tokenizers, for prose in any script."""
TOKENS_PER_MESSAGE = 4
"""Tokens of a message in addition to its text, for the role and the delimiters."""


class Message(NamedTuple):
    """One message of a chat."""

    role: Role
    content: str


def count_tokens(text: str) -> int:
    """Return the tokens of a text: for each word, its bytes of UTF-8 divided by 4, rounded up.

    Words are separated by white space. Counting by words means that the parts of a stream add up to
    the count of the whole text. The count is exact for the demo model and an estimate for others.
    """
    return sum(-(-len(word.encode(errors="replace")) // BYTES_PER_TOKEN) for word in text.split())


class TokenCounter:
    """Counter for a text that arrives in pieces, with the same result as ``count_tokens``.

    ``tokens`` is the count so far. Only one thread may add pieces; any thread may read the count.
    """

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


def count_input(messages: Iterable[Message]) -> int:
    """Return the input tokens of a request with these messages."""
    return sum(TOKENS_PER_MESSAGE + count_tokens(message.content) for message in messages)
