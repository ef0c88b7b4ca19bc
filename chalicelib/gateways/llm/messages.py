"""What is said to a chat model, and how its tokens are counted where nobody says."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Role = Literal["system", "user", "assistant"]
"""The only roles that models are sent (chat.md, The stream)."""

BYTES_PER_TOKEN = 4
"""Of UTF-8: about what the tokenizers of today's models make of prose, in any script."""
TOKENS_PER_MESSAGE = 4
"""What a message costs beside its text: its role and its ends."""


class Message(NamedTuple):
    """One message of a chat."""

    role: Role
    content: str


def count_tokens(text: str) -> int:
    """Return the tokens of a text: one for every four bytes of UTF-8, or part of them, of a word.

    A word is what stands between white space. So the count of a text is the sum of the counts of
    its words, and a stream that is cut between words is counted alike by its parts and as a whole.
    The demo model's tokens are these exactly; of another model's they are an estimate.
    """
    return sum(-(-len(word.encode(errors="replace")) // BYTES_PER_TOKEN) for word in text.split())


class TokenCounter:
    """Counts the tokens of a text that comes in pieces, exactly as ``count_tokens`` does of it all.

    ``tokens`` is the count so far. One thread adds; any may read.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._before = 0
        self._word_bytes = 0

    def add(self, piece: str) -> None:
        """Count another piece, which may begin or end within a word."""
        if piece[:1].isspace():
            self._end_word()
        for number, word in enumerate(piece.split()):
            if number:
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
    """Return the tokens of what a model is sent."""
    return sum(TOKENS_PER_MESSAGE + count_tokens(message.content) for message in messages)
